//! The engine: takes a run from where it stands to its next pause or its end.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use kortyx_contracts::Question;
use kortyx_protocol::{ChatMessage, Failure, FailureCode, RawJson, ResumeResponse, RunId, SessionId};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::{
    event::EventBatch,
    flow::{self, FrameEnd},
    io::{Io, IoFuture, RecordError},
    scheduler::{FrameDriver, FrameStatus},
    shared::{Halt, Shared},
    state::{Asked, Frame, Pin, ROOT, RunState, SNAPSHOT_VERSION},
    trace::TurnState,
    workflow::{Definition, DefinitionPin, Registry},
};

/// Bounds on what a run may do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// How deep child workflows may nest. 16 by default.
    pub call_depth: u32,
    /// How many children one activation may call. 64 by default.
    pub calls_per_activation: u32,
    /// How long nodes may take to finish once the run was asked to stop. Five seconds by default.
    pub cancel_grace: Duration,
    /// How long a branch's questions wait for the other branches to pause too, before they are published on their own.
    /// 20 ms by default.
    pub publish_delay: Duration,
    /// How long a node that is replayed may take to make the calls that it made before, while it waits for something that
    /// the engine does not know of. A node that waits for nothing else is not waited for. Five seconds by default.
    pub replay_patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_depth: 16,
            calls_per_activation: 64,
            cancel_grace: Duration::from_secs(5),
            publish_delay: Duration::from_millis(20),
            replay_patience: Duration::from_secs(5),
        }
    }
}

/// Runs workflows of a registry. It has no clock, randomness, storage or transport of its own: [`Io`] brings them.
#[derive(Clone)]
pub struct Engine {
    registry: Arc<Registry>,
    limits: Limits,
}

/// Which run it is.
#[derive(Debug, Clone)]
pub struct RunInfo {
    /// The run.
    pub run_id: RunId,
    /// The session that it belongs to.
    pub session_id: SessionId,
}

/// A run to begin.
#[derive(Debug, Clone)]
pub struct Start {
    /// Which run.
    pub run: RunInfo,
    /// Its workflow.
    pub workflow: Arc<Definition>,
    /// Its input; checked against the workflow's schema.
    pub input: RawJson,
    /// Data to begin with.
    pub data: BTreeMap<String, RawJson>,
    /// Workflow state to begin with.
    pub workflow_state: BTreeMap<String, RawJson>,
    /// The request context, an object or null.
    pub context: RawJson,
    /// Earlier messages of the conversation.
    pub history: Vec<ChatMessage>,
    /// Whether the run tells what a session keeps of each of its turns ([`Suspension::turn`], [`Ending::turn`]), through every
    /// pause and recovery.
    pub tracked: bool,
}

impl Start {
    /// A run without data, state, context or history, not tracked.
    pub fn new(run: RunInfo, workflow: Arc<Definition>, input: RawJson) -> Self {
        let (data, workflow_state, history) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { run, workflow, input, data, workflow_state, context: RawJson::null(), history, tracked: false }
    }
}

/// A run to go on with.
#[derive(Debug, Clone)]
pub struct Restore<'a> {
    /// Which run.
    pub run: RunInfo,
    /// Its last snapshot.
    pub snapshot: &'a [u8],
    /// Entries recorded after the snapshot, oldest first.
    pub entries: &'a [&'a [u8]],
    /// Answers that the snapshot does not hold, in the order of their acceptance.
    pub answers: Vec<DeliveredAnswer>,
}

/// An accepted answer, or the default of a question whose time ran out.
#[derive(Debug, Clone)]
pub struct DeliveredAnswer {
    /// Its number among the run's answers, from 1.
    pub seq: u64,
    /// [`OpenQuestion::ask`] of its question.
    pub ask: String,
    /// The answer.
    pub response: ResumeResponse,
}

/// A question to publish.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenQuestion {
    /// Where in the run it was asked: opaque, unique among the run's open questions.
    pub ask: String,
    /// The workflow where it was asked.
    pub workflow: String,
    /// The node where it was asked.
    pub node: String,
    /// The question; its author's id is [`OpenQuestion::id`].
    pub question: Question,
    pub(crate) activation: u32,
    pub(crate) asked: Asked,
}

impl OpenQuestion {
    /// The author's id of the question.
    pub fn id(&self) -> &str {
        &self.asked.key.id
    }
}

/// A run that was stored cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The stored state does not read back. It is left as it is.
    #[error("the stored state of the run does not read: {0}")]
    Corrupt(String),
    /// The code at hand does not fit: park the run.
    #[error("the run cannot go on with this code")]
    Parked(#[source] Failure),
}

/// The engine stopped in the middle of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Storage refused a durable step. The run goes on later, from its last durable point.
    #[error("a durable step was not stored")]
    Storage(#[source] RecordError),
    /// Replay does not match the journal: park the run.
    #[error("the run cannot go on with this code")]
    Parked(#[source] Failure),
}

/// Where a run got to.
#[derive(Debug)]
pub enum Turn {
    /// It waits for people.
    Suspended(Suspension),
    /// It ended.
    Finished(Ending),
}

/// A pause to store.
#[derive(Debug)]
pub struct Suspension {
    /// The whole state, as it is once the questions are published.
    pub snapshot: Vec<u8>,
    /// Questions to publish.
    pub publish: Vec<OpenQuestion>,
    /// The ask keys of published questions that nobody waits for any more.
    pub withdraw: Vec<String>,
    /// The highest answer number that the snapshot holds.
    pub answers_seen: u64,
    /// The workflow that the run is bound to now.
    pub workflow: DefinitionPin,
    /// What a session keeps of the turn; only of [tracked](Start::tracked) runs.
    pub turn: Option<TurnState>,
    /// Whether [`Recorder::open`](crate::Recorder::open) was called in this execution or the run was restored.
    pub durable: bool,
    /// The response is complete: the questions are asked after it.
    pub response_completed: bool,
}

/// An end to store.
#[derive(Debug)]
pub struct Ending {
    /// How it ended.
    pub outcome: Outcome,
    /// The highest answer number received.
    pub answers_seen: u64,
    /// The workflow that the run was bound to at its end.
    pub workflow: DefinitionPin,
    /// Whether storage knows the run.
    pub durable: bool,
    /// What a session keeps of the turn; only of [tracked](Start::tracked) runs.
    pub turn: Option<TurnState>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It ended well, with this data (an object).
    Completed(RawJson),
    /// It failed.
    Failed(Failure),
    /// It was asked to stop and did.
    Cancelled,
}

impl Engine {
    /// An engine for these workflows.
    pub fn new(registry: Arc<Registry>, limits: Limits) -> Self {
        Self { registry, limits }
    }

    /// The workflows.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Begins a run. Nothing happens before [`Execution::advance`].
    ///
    /// # Errors
    /// `UNKNOWN_WORKFLOW` when the workflow is not registered, `INVALID_INPUT` with issues when its input does not fit.
    pub fn start(&self, start: Start, io: Io) -> Result<Execution, Failure> {
        let definition = start.workflow;
        self.check_pin(&Pin::of(&definition)).map_err(|failure| {
            let message = format!("the workflow `{}` is not registered with the engine", definition.id());
            Failure::new(FailureCode::UnknownWorkflow, message).with_cause(failure)
        })?;
        definition.validate_input(&start.input).map_err(|issues| {
            let message = format!("the input does not fit the workflow `{}`", definition.id());
            Failure::new(FailureCode::InvalidInput, message).with_issues(issues)
        })?;
        let history = RawJson::of(&start.history);
        let history = history.map_err(|error| Failure::new(FailureCode::InvalidRequest, error.to_string()))?;
        let mut root = Frame::new(None, 0, Pin::of(&definition), start.input);
        root.data = start.data;
        root.workflow_state = start.workflow_state;
        let state = RunState {
            v: SNAPSHOT_VERSION,
            context: start.context,
            history,
            frames: BTreeMap::from([(ROOT, Box::new(root))]),
            activations: BTreeMap::new(),
            next_frame: ROOT + 1,
            next_activation: 1,
            executions: 0,
            allowance: definition.max_node_executions().map_or(u64::MAX, u64::from),
            answers_seen: 0,
            response_completed: false,
            trace: start.tracked.then(Box::default),
        };
        let execution = self.execution(start.run, state, io, false);
        flow::begin_frame(&mut execution.shared.lock(), &definition, ROOT);
        Ok(execution)
    }

    /// Goes on with a stored run.
    pub fn restore(&self, restore: Restore<'_>, io: Io) -> Result<Execution, RestoreError> {
        let mut state: RunState = read(restore.snapshot)?;
        check_version(state.v)?;
        for entry in restore.entries {
            let batch: EventBatch = read(entry)?;
            check_version(batch.v)?;
            batch.events.into_iter().for_each(|event| state.apply(event));
        }
        for frame in state.frames.values() {
            self.check_pin(&frame.workflow).map_err(RestoreError::Parked)?;
        }
        state.check(&self.registry).map_err(RestoreError::Corrupt)?;
        let execution = self.execution(restore.run, state, io, true);
        execution.shared.lock().deliver(restore.answers);
        Ok(execution)
    }

    fn execution(&self, run: RunInfo, state: RunState, io: Io, is_restored: bool) -> Execution {
        let shared = Shared::new(run, io, self.registry.clone(), self.limits.clone(), state, is_restored);
        let shared = Arc::new(shared);
        let root = FrameDriver::new(shared.clone(), ROOT);
        Execution {
            shared,
            root,
            writing: None,
            publishing: Publishing::Idle,
            cancelled: None,
            grace: None,
            grace_over: false,
        }
    }

    fn check_pin(&self, pin: &Pin) -> Result<(), Failure> {
        let what = match self.registry.get(&pin.id, &pin.version) {
            Some(known) if *known.fingerprint() == *pin.fingerprint => return Ok(()),
            Some(_) => "is registered with another definition (nodes, edges or conditions differ)",
            None if self.registry.latest(&pin.id).is_some() => "is not registered, though other versions are",
            None => "is not registered",
        };
        let message = format!(
            "version `{}` of the workflow `{}`, which the run is bound to, {what}; deploy that version beside newer ones, \
             or cancel the run",
            pin.version, pin.id
        );
        Err(Failure::new(FailureCode::WorkflowChanged, message))
    }
}

fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, RestoreError> {
    #[derive(serde::Deserialize)]
    struct Version {
        v: u32,
    }
    // Looked through for what is not UTF-8 once, rather than text by text.
    let text = str::from_utf8(bytes).map_err(|error| RestoreError::Corrupt(error.to_string()))?;
    serde_json::from_str(text).map_err(|error| match serde_json::from_str::<Version>(text) {
        Ok(Version { v }) if v > SNAPSHOT_VERSION => newer(v),
        _ => RestoreError::Corrupt(error.to_string()),
    })
}

fn check_version(version: u32) -> Result<(), RestoreError> {
    if version <= SNAPSHOT_VERSION { Ok(()) } else { Err(newer(version)) }
}

fn newer(version: u32) -> RestoreError {
    let message = format!(
        "the run was stored by a newer release (snapshot version {version}, this one knows {SNAPSHOT_VERSION}); let a process \
         of that release drive it"
    );
    RestoreError::Parked(Failure::new(FailureCode::WorkflowChanged, message))
}

/// A run under way. Dropping it leaves the run at its last durable point.
pub struct Execution {
    shared: Arc<Shared>,
    root: FrameDriver,
    /// The write on its way to storage.
    writing: Option<IoFuture<'static, Result<(), RecordError>>>,
    publishing: Publishing,
    /// Wakes the execution when somebody asks the run to stop.
    cancelled: Option<std::pin::Pin<Box<WaitForCancellationFutureOwned>>>,
    grace: Option<IoFuture<'static, ()>>,
    grace_over: bool,
}

/// Questions of a branch that waits while others work.
enum Publishing {
    Idle,
    /// Others may pause too.
    Delayed(IoFuture<'static, ()>),
    /// The next batch carries them.
    Due,
}

/// Reaches an execution from outside while it advances.
#[derive(Clone)]
pub struct ExecutionHandle(Arc<Shared>);

impl ExecutionHandle {
    /// Hands over answers. Those received before are ignored.
    pub fn deliver(&self, answers: Vec<DeliveredAnswer>) {
        self.0.lock().deliver(answers);
    }

    /// Asks the run to stop: nodes see it through their token.
    pub fn cancel(&self) {
        self.0.cancel.cancel();
    }

    /// Has the recorder called soon, with whatever there is to store, be it nothing: for one that stores more than batches. A
    /// run that storage does not know is opened.
    pub fn flush(&self) {
        self.0.flush();
    }

    /// The highest answer number received.
    pub fn answers_seen(&self) -> u64 {
        self.0.lock().state.answers_seen
    }

    /// Whether the run has completed its response.
    pub fn is_response_completed(&self) -> bool {
        self.0.lock().state.response_completed
    }

    /// The workflow that the run is in now, and what a session would keep of the turn under way; `None` unless the run is
    /// [tracked](Start::tracked), and once its response is complete.
    pub fn turn(&self) -> Option<(DefinitionPin, TurnState)> {
        let core = self.0.lock();
        Some((core.state.pin(), core.state.turn()?))
    }
}

impl Execution {
    /// A handle for other tasks.
    pub fn handle(&self) -> ExecutionHandle {
        ExecutionHandle(self.shared.clone())
    }

    /// Runs until the run waits for people or has ended. When storage says that answers have arrived meanwhile, hand them
    /// over with [`ExecutionHandle::deliver`] and advance again.
    pub async fn advance(&mut self) -> Result<Turn, EngineError> {
        poll_fn(|cx| self.poll_advance(cx)).await
    }

    fn poll_advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<Turn, EngineError>> {
        loop {
            self.poll_grace(cx);
            let status = self.root.poll(cx);
            if let Some(error) = self.shared.lock().take_halt() {
                return Poll::Ready(Err(error));
            }
            match status {
                _ if self.writing.is_some() || self.shared.lock().is_completing_response() => {}
                FrameStatus::Ended(end) => return Poll::Ready(Ok(Turn::Finished(self.ending(end)))),
                FrameStatus::Waiting if !self.shared.cancel.is_cancelled() => return Poll::Ready(self.suspension()),
                FrameStatus::Live if !self.grace_over => {}
                FrameStatus::Waiting | FrameStatus::Live => {
                    return Poll::Ready(Ok(Turn::Finished(self.ended(Outcome::Cancelled))));
                }
            }
            if !self.poll_storage(cx) && !self.poll_cancelled(cx) {
                return Poll::Pending;
            }
        }
    }

    fn poll_grace(&mut self, cx: &mut Context<'_>) {
        if !self.shared.cancel.is_cancelled() || self.grace_over {
            return;
        }
        let grace = self.grace.get_or_insert_with(|| {
            self.shared.lock().wake_frames();
            self.shared.io.host.sleep(self.shared.limits.cancel_grace)
        });
        self.grace_over = grace.as_mut().poll(cx).is_ready();
    }

    /// Whether somebody has asked the run to stop since the last look. Else the execution is woken when somebody does.
    fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> bool {
        let token = &self.shared.cancel;
        let cancelled = self.cancelled.get_or_insert_with(|| Box::pin(token.clone().cancelled_owned()));
        self.grace.is_none() && cancelled.as_mut().poll(cx).is_ready()
    }

    /// Goes on with the write on its way, or begins the next one. `true`: something changed, look again.
    fn poll_storage(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(write) = &mut self.writing {
            let Poll::Ready(written) = write.as_mut().poll(cx) else { return false };
            self.writing = None;
            if let Err(error) = written {
                self.shared.lock().halt_with(Halt::Storage(error));
            }
            return true;
        }
        // Who completes the response says which questions are open then.
        let publish = self.poll_publish_delay(cx) || self.shared.lock().is_completing_response();
        if !publish && !self.shared.lock().is_write_wanted() {
            return false;
        }
        if publish && self.shared.lock().is_durable() {
            self.publishing = Publishing::Idle;
        }
        let shared = self.shared.clone();
        self.writing = Some(Box::pin(async move { shared.write(publish).await }));
        true
    }

    /// Whether the questions of waiting branches are to be published while others work.
    fn poll_publish_delay(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.shared.lock().has_news() {
            self.publishing = Publishing::Idle;
            return false;
        }
        if let Publishing::Idle = self.publishing {
            self.publishing = Publishing::Delayed(self.shared.io.host.sleep(self.shared.limits.publish_delay));
        }
        if let Publishing::Delayed(delay) = &mut self.publishing {
            if delay.as_mut().poll(cx).is_pending() {
                return false;
            }
            self.publishing = Publishing::Due;
        }
        true
    }

    fn suspension(&mut self) -> Result<Turn, EngineError> {
        self.publishing = Publishing::Idle;
        self.shared.lock().suspension().map(Turn::Suspended).map_err(EngineError::Storage)
    }

    fn ending(&self, end: FrameEnd) -> Ending {
        self.ended(match end {
            _ if self.shared.cancel.is_cancelled() => Outcome::Cancelled,
            Ok(data) => Outcome::Completed(data),
            Err(failure) => Outcome::Failed(failure),
        })
    }

    fn ended(&self, outcome: Outcome) -> Ending {
        let core = self.shared.lock();
        let (answers_seen, durable) = (core.state.answers_seen, core.is_durable());
        Ending { outcome, answers_seen, workflow: core.state.pin(), durable, turn: core.state.turn() }
    }
}
