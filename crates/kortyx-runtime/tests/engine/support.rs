//! A world for the engine: storage that can be crashed, a clock that stands still, a sink that remembers.

use std::{
    future::{pending, poll_fn},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use kortyx_protocol::{Failure, Issue, RawJson, ResumeResponse, RunId, SessionId, StreamChunk, Timestamp};
use kortyx_runtime::{
    Allowances, Batch, ChunkSink, CompletedResponse, DeliveredAnswer, Engine, EngineError, Execution, Host, Io,
    IoFuture, Limits, Observer, OpenQuestion, Outcome, RecordError, RecordReply, Recorder, Registry, Restore,
    RestoreError, RunInfo, Start, Turn, Workflow,
};
use serde_json::Value;

/// What storage knows of the run.
#[derive(Clone, Default)]
pub(crate) struct Stored {
    pub(crate) snapshot: Option<Vec<u8>>,
    pub(crate) entries: Vec<Vec<u8>>,
    pub(crate) open: Vec<OpenQuestion>,
    pub(crate) answers: Vec<DeliveredAnswer>,
    pub(crate) superseded: Vec<String>,
    /// The responses that were completed, each with the questions open then.
    pub(crate) responses: Vec<(CompletedResponse, Vec<String>)>,
    /// The questions that were published after the response was completed.
    pub(crate) after_response: Vec<String>,
    pub(crate) writes: u64,
}

/// The recorder, the sink and the host of a run.
pub(crate) struct World {
    pub(crate) stored: Mutex<Stored>,
    pub(crate) chunks: Mutex<Vec<StreamChunk>>,
    /// Storage accepts this many writes and then takes the process down.
    pub(crate) writes_left: AtomicU64,
    /// Called wherever the engine waits for the world; says for how long, and may act on the world meanwhile.
    pub(crate) meddler: Mutex<Option<Meddler>>,
    pub(crate) observer: Mutex<Option<Arc<dyn Observer>>>,
    millis: AtomicU64,
    engine: Engine,
    info: RunInfo,
}

/// Somebody who acts while the engine waits.
pub(crate) type Meddler = Box<dyn FnMut() -> Wait + Send>;

/// How long the world makes the engine wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wait {
    /// So many polls, each of which wakes at once.
    Polls(u8),
    /// So many rounds of the executor.
    Rounds(u8),
    /// Time.
    Millis(u8),
}

impl Wait {
    pub(crate) async fn pass(self) {
        match self {
            Self::Polls(polls) => {
                for _ in 0..polls {
                    self_wake().await;
                }
            }
            Self::Rounds(rounds) => {
                for _ in 0..rounds {
                    tokio::task::yield_now().await;
                }
            }
            Self::Millis(millis) => tokio::time::sleep(Duration::from_millis(millis.into())).await,
        }
    }
}

/// Pending once, woken at once.
async fn self_wake() {
    let mut woken = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut woken, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How far a drive came.
#[derive(Debug)]
pub(crate) enum Drive {
    Waiting,
    Ended(Outcome),
    Parked(Failure),
    Crashed,
}

impl World {
    pub(crate) fn new(workflows: &[&Workflow]) -> Arc<Self> {
        Self::with_limits(workflows, Limits::default())
    }

    pub(crate) fn with_limits(workflows: &[&Workflow], limits: Limits) -> Arc<Self> {
        let mut registry = Registry::new();
        for workflow in workflows {
            registry.register(workflow).unwrap();
        }
        Arc::new(Self {
            stored: Mutex::default(),
            chunks: Mutex::default(),
            writes_left: AtomicU64::new(u64::MAX),
            meddler: Mutex::default(),
            observer: Mutex::default(),
            millis: AtomicU64::new(1_000),
            engine: Engine::new(Arc::new(registry), limits),
            info: RunInfo { run_id: RunId::new("run-1").unwrap(), session_id: SessionId::new("session-1").unwrap() },
        })
    }

    /// The same storage seen by other code: a new process with other workflows.
    pub(crate) fn redeploy(&self, workflows: &[&Workflow]) -> Arc<Self> {
        let world = Self::new(workflows);
        *world.stored.lock().unwrap() = self.stored.lock().unwrap().clone();
        world
    }

    fn io(self: &Arc<Self>) -> Io {
        let mut io = Io::new(self.clone(), self.clone(), self.clone());
        io.observer.clone_from(&self.observer.lock().unwrap());
        io
    }

    pub(crate) fn start(self: &Arc<Self>, workflow: &Workflow, input: &Value) -> Execution {
        self.try_start(workflow, input).unwrap()
    }

    pub(crate) fn try_start(self: &Arc<Self>, workflow: &Workflow, input: &Value) -> Result<Execution, Failure> {
        let start = Start::new(self.info.clone(), workflow.definition().clone(), RawJson::of(input).unwrap());
        self.engine.start(start, self.io())
    }

    /// Starts a run that tells what a session keeps of its turns.
    pub(crate) fn start_tracked(self: &Arc<Self>, workflow: &Workflow) -> Execution {
        let mut start = Start::new(self.info.clone(), workflow.definition().clone(), RawJson::null());
        start.tracked = true;
        self.engine.start(start, self.io()).unwrap()
    }

    /// Starts a run with limits of its own.
    pub(crate) fn start_within(self: &Arc<Self>, workflow: &Workflow, limits: Allowances) -> Execution {
        let mut start = Start::new(self.info.clone(), workflow.definition().clone(), RawJson::null());
        start.limits = limits;
        self.engine.start(start, self.io()).unwrap()
    }

    /// Goes on from what storage knows, as another process would.
    pub(crate) fn restore(self: &Arc<Self>) -> Result<Execution, RestoreError> {
        let stored = self.stored.lock().unwrap();
        let snapshot = stored.snapshot.clone().expect("the run is durable");
        let entries = stored.entries.clone();
        let entries: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
        let answers = stored.answers.clone();
        drop(stored);
        self.engine
            .restore(Restore { run: self.info.clone(), snapshot: &snapshot, entries: &entries, answers }, self.io())
    }

    /// Runs to the next pause, end or crash, and stores it as a driver would.
    pub(crate) async fn drive(self: &Arc<Self>, execution: &mut Execution) -> Drive {
        loop {
            match execution.advance().await {
                Ok(Turn::Suspended(pause)) => {
                    self.meddle().await;
                    if self.write().is_err() {
                        return Drive::Crashed;
                    }
                    let mut stored = self.stored.lock().unwrap();
                    let missed: Vec<_> =
                        stored.answers.iter().filter(|answer| answer.seq > pause.answers_seen).cloned().collect();
                    if !missed.is_empty() {
                        drop(stored);
                        execution.handle().deliver(missed);
                        continue;
                    }
                    stored.snapshot = Some(pause.snapshot);
                    stored.entries.clear();
                    stored.publish(pause.publish, &pause.withdraw, pause.response_completed);
                    return Drive::Waiting;
                }
                Ok(Turn::Finished(ending)) => {
                    return if self.write().is_err() { Drive::Crashed } else { Drive::Ended(ending.outcome) };
                }
                Err(EngineError::Storage(_)) => return Drive::Crashed,
                Err(EngineError::Parked(failure)) => return Drive::Parked(failure),
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Starts the run and drives it to its first stop.
    pub(crate) async fn run(self: &Arc<Self>, workflow: &Workflow, input: Value) -> Drive {
        self.drive(&mut self.start(workflow, &input)).await
    }

    /// Restores the run and drives it to its next stop.
    pub(crate) async fn resume(self: &Arc<Self>) -> Drive {
        match self.restore() {
            Ok(mut execution) => self.drive(&mut execution).await,
            Err(RestoreError::Parked(failure)) => Drive::Parked(failure),
            Err(other) => panic!("{other}"),
        }
    }

    /// Accepts an answer to the open question with this id (`"id"` or `"node/id"`), then resumes in a new process.
    pub(crate) async fn answer(self: &Arc<Self>, id: &str, response: ResumeResponse) -> Drive {
        self.accept(id, response);
        self.resume().await
    }

    /// Accepts an answer to the first open question with this id.
    pub(crate) fn accept(&self, id: &str, response: ResumeResponse) {
        let mut stored = self.stored.lock().unwrap();
        let named =
            |question: &OpenQuestion| question.id() == id || format!("{}/{}", question.node, question.id()) == id;
        let at = stored.open.iter().position(named).unwrap_or_else(|| panic!("no open question `{id}`"));
        let question = stored.open.remove(at);
        let seq = stored.answers.len() as u64 + 1;
        stored.answers.push(DeliveredAnswer { seq, ask: question.ask, response });
    }

    /// What is wrong with an answer to the first open question with this id.
    pub(crate) fn issues(&self, id: &str, response: &ResumeResponse) -> Vec<Issue> {
        let stored = self.stored.lock().unwrap();
        let question = stored.open.iter().find(|question| question.id() == id).expect("an open question");
        question.question.validate(response).err().unwrap_or_default()
    }

    /// The ids of the open questions, in the order of their publication.
    pub(crate) fn open(&self) -> Vec<String> {
        self.stored.lock().unwrap().open.iter().map(|question| question.id().to_owned()).collect()
    }

    /// The concatenated text chunks.
    pub(crate) fn text(&self) -> String {
        let chunks = self.chunks.lock().unwrap();
        let texts = chunks.iter().filter_map(|chunk| match chunk {
            StreamChunk::TextDelta(delta) => Some(delta.delta.as_str()),
            StreamChunk::Message { content, .. } => Some(content.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn append(&self, batch: Batch) -> RecordReply {
        let mut stored = self.stored.lock().unwrap();
        assert!(stored.snapshot.is_some(), "recorded before it was opened");
        stored.entries.extend(batch.entries);
        stored.publish(batch.publish, &batch.withdraw, batch.response_completed);
        if let Some(response) = batch.response {
            let open = stored.open.iter().map(|question| question.id().to_owned()).collect();
            stored.responses.push((response, open));
        }
        let answers = stored.answers.iter().filter(|answer| answer.seq > batch.answers_seen).cloned().collect();
        RecordReply { answers }
    }

    /// Lets the meddler act.
    async fn meddle(&self) {
        let wait = self.meddler.lock().unwrap().as_mut().map(|meddler| meddler());
        if let Some(wait) = wait {
            wait.pass().await;
        }
    }

    fn write(&self) -> Result<(), RecordError> {
        let left = self.writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        self.stored.lock().unwrap().writes += 1;
        left.map(drop).map_err(|_| RecordError { message: "the process died".into(), source: None })
    }
}

impl Stored {
    fn publish(&mut self, publish: Vec<OpenQuestion>, withdraw: &[String], response_completed: bool) {
        self.open.retain(|question| !withdraw.contains(&question.ask));
        self.superseded.extend(withdraw.iter().cloned());
        for question in publish {
            assert!(!self.open.iter().any(|open| open.ask == question.ask), "published twice: {}", question.ask);
            if response_completed {
                self.after_response.push(question.id().to_owned());
            }
            self.open.push(question);
        }
    }
}

impl ChunkSink for World {
    fn send(&self, chunk: StreamChunk) -> IoFuture<'_, ()> {
        Box::pin(async move {
            self.meddle().await;
            self.chunks.lock().unwrap().push(chunk);
        })
    }
}

impl Recorder for World {
    fn open(&self, snapshot: Vec<u8>) -> IoFuture<'_, Result<(), RecordError>> {
        Box::pin(async move {
            self.meddle().await;
            self.write()?;
            let before = self.stored.lock().unwrap().snapshot.replace(snapshot);
            assert!(before.is_none(), "opened twice");
            self.meddle().await;
            Ok(())
        })
    }

    fn record(&self, batch: Batch) -> IoFuture<'_, Result<RecordReply, RecordError>> {
        Box::pin(async move {
            self.meddle().await;
            self.write()?;
            let reply = self.append(batch);
            self.meddle().await;
            Ok(reply)
        })
    }
}

impl Host for World {
    fn now(&self) -> Timestamp {
        let millis = self.millis.fetch_add(1, Ordering::SeqCst);
        Timestamp::from_millis(i64::try_from(millis).unwrap())
    }

    fn random(&self) -> Result<[u8; 16], RecordError> {
        let mut bytes = [7; 16];
        bytes[..8].copy_from_slice(&self.millis.fetch_add(1, Ordering::SeqCst).to_le_bytes());
        Ok(bytes)
    }

    fn sleep(&self, duration: Duration) -> IoFuture<'static, ()> {
        if duration >= Duration::from_hours(1) { Box::pin(pending()) } else { Box::pin(tokio::time::sleep(duration)) }
    }
}

/// An answer by option ids.
pub(crate) fn select(ids: &[&str]) -> ResumeResponse {
    ResumeResponse::Select { ids: ids.iter().map(ToString::to_string).collect() }
}

/// A text answer.
pub(crate) fn text(text: &str) -> ResumeResponse {
    ResumeResponse::Text { text: text.into() }
}

/// The output of a run that has completed.
pub(crate) fn completed(drive: Drive) -> Value {
    match drive {
        Drive::Ended(Outcome::Completed(data)) => data.to_value().unwrap(),
        other => panic!("expected a completed run, found {other:?}"),
    }
}

/// The failure of a run that has failed.
pub(crate) fn failed(drive: Drive) -> Failure {
    match drive {
        Drive::Ended(Outcome::Failed(failure)) => failure,
        other => panic!("expected a failed run, found {other:?}"),
    }
}
