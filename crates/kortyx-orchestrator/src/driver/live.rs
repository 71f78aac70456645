//! A run under way in this process: its lease, where its chunks and durable steps go, and how it is reached.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    mem,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use kortyx_protocol::{RunId, StreamChunk};
use kortyx_runtime::{
    Batch, ChunkSink, Io, IoFuture, OpenQuestion, RecordError, RecordReply, Recorder, RunInfo, TurnState,
};
use kortyx_store::{
    AskKey, CancelTarget, Claimed, Driver, Lease, NewCheckpoint, NewRun, OpenRun, Record, RunRef, Scalar, Scope,
    StoreError, StoreErrorKind, WorkflowPin,
};
use tokio::sync::Notify;

use super::{
    Output, delivered,
    log::{self, Log},
    publish,
    reader::Reader,
    response::last_message,
    span::transition,
};
use crate::{agent::Inner, telemetry::Correlation};

/// How much of a turn's text is kept to show it again to a client that repeats its answer.
const TEXT_KEPT: usize = 64 * 1024;

/// A run under way.
pub(crate) struct Live {
    pub(crate) agent: Arc<Inner>,
    pub(crate) run: RunInfo,
    hold: Mutex<Hold>,
    pub(super) reader: Reader,
    /// What it said and storage does not hold yet.
    pub(super) log: Log,
    /// What the turn said so far, when somebody reads it.
    said: Mutex<String>,
    /// The context values of a run that storage knows.
    context: OnceLock<BTreeMap<String, Scalar>>,
    /// What facts about it are about; nothing when nobody is told.
    pub(super) about: Mutex<Option<Correlation>>,
    /// Why it is cancelled, when storage does not know.
    reason: Mutex<Option<String>>,
    /// Wakes the keeper: an answer, a cancellation, a client that went away.
    pub(super) attention: Notify,
    /// Wakes those who wait for the driver to stop.
    pub(crate) ended: Notify,
    flags: Flags,
}

/// What the driver and its recorder tell each other.
#[derive(Default)]
struct Flags {
    cancelled: AtomicBool,
    abandoned: AtomicBool,
    answered: AtomicBool,
    published: AtomicBool,
}

/// The right to write.
enum Hold {
    /// Storage does not know the run yet.
    New(NewRun),
    Leased(Lease),
}

impl Live {
    pub(super) fn begin(agent: &Arc<Inner>, run: RunInfo, new: NewRun, output: Output) -> Arc<Self> {
        let about = agent.telemetry.is_on().then(|| about_new(&new));
        Self::new(agent, run, (Hold::New(new), about), output, Flags::default())
    }

    pub(super) fn go_on(agent: &Arc<Inner>, claimed: &Claimed, output: Output) -> Arc<Self> {
        let run = RunInfo { run_id: claimed.run.run_id.clone(), session_id: claimed.run.session_id.clone() };
        let flags = Flags {
            answered: AtomicBool::new(!claimed.answers.is_empty()),
            // Other questions of the run may still be open.
            published: AtomicBool::new(true),
            ..Flags::default()
        };
        let about = agent.telemetry.is_on().then(|| Correlation::of_run(&claimed.run));
        Self::new(agent, run, (Hold::Leased(claimed.lease.clone()), about), output, flags)
    }

    fn new(
        agent: &Arc<Inner>,
        run: RunInfo,
        (hold, about): (Hold, Option<Correlation>),
        output: Output,
        flags: Flags,
    ) -> Arc<Self> {
        Arc::new(Self {
            agent: agent.clone(),
            run,
            hold: Mutex::new(hold),
            reader: Reader::new(output),
            log: Log::default(),
            said: Mutex::default(),
            context: OnceLock::new(),
            about: Mutex::new(about),
            reason: Mutex::default(),
            attention: Notify::new(),
            ended: Notify::new(),
            flags,
        })
    }

    /// What the engine is given.
    pub(super) fn io(self: &Arc<Self>) -> Io {
        let io = Io::new(self.clone(), self.clone(), self.agent.host.clone());
        if self.agent.telemetry.watches_nodes() { io.observed_by(self.clone()) } else { io }
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run as transitions name it.
    pub(super) fn run_ref(&self) -> RunRef {
        match &*self.hold() {
            Hold::New(new) => RunRef::New(new.clone(), self.agent.driver()),
            Hold::Leased(lease) => RunRef::Held(lease.clone()),
        }
    }

    /// Notes the context values of a run that storage knows.
    pub(super) fn set_context(&self, context: BTreeMap<String, Scalar>) {
        let _ = self.context.set(context);
    }

    /// The checkpoint that a turn of the run leaves behind.
    pub(super) fn checkpoint(&self, workflow: &WorkflowPin, turn: TurnState) -> Result<NewCheckpoint, StoreError> {
        let new = match &*self.hold() {
            Hold::New(new) => Some(new.context.clone()),
            Hold::Leased(_) => None,
        };
        let known = BTreeMap::new();
        let context = new.as_ref().or(self.context.get()).unwrap_or(&known);
        self.agent.turn_checkpoint(&self.run.session_id, workflow, context, turn)
    }

    /// The lease, once storage knows the run.
    pub(super) fn lease(&self) -> Option<Lease> {
        match &*self.hold() {
            Hold::New(_) => None,
            Hold::Leased(lease) => Some(lease.clone()),
        }
    }

    /// Fresh ids for questions of the run, which say where its session lives.
    pub(super) fn minted(
        &self,
        questions: &[OpenQuestion],
        response_completed: bool,
    ) -> Result<publish::Minted, StoreError> {
        let placement = self.agent.store.placement(&self.run.session_id);
        publish::minted(questions, self.agent.settings.question_ttl, placement, response_completed)
    }

    /// Asks the driver to look at storage.
    pub(crate) fn attend(&self) {
        self.attention.notify_one();
    }

    /// The client went away: the run is cancelled unless it holds an accepted answer.
    pub(crate) fn abandon(&self) {
        self.flags.abandoned.store(true, Ordering::Release);
        self.attend();
    }

    pub(super) fn cancel(&self) {
        self.flags.cancelled.store(true, Ordering::Release);
    }

    /// Cancels a run that storage may not know yet.
    pub(crate) fn cancel_here(&self, reason: Option<&str>) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason.map(str::to_owned);
        self.cancel();
        self.attend();
    }

    pub(super) fn reason(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the run lies in a scope, as far as this process knows: what it began and storage does not know yet does.
    pub(crate) fn is_new_in(&self, scope: Option<&Scope>) -> bool {
        match &*self.hold() {
            Hold::New(new) => scope.is_none_or(|scope| scope.contains(&new.session_id, &new.context)),
            Hold::Leased(_) => false,
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.flags.cancelled.load(Ordering::Acquire)
    }

    /// Whether it stops because its client has gone: one that nobody's answer or response depends on.
    pub(super) fn is_abandoned(&self) -> bool {
        self.flags.abandoned.load(Ordering::Acquire)
            && !self.flags.answered.load(Ordering::Acquire)
            && !self.reader.is_completing()
    }

    pub(super) fn note_answers(&self, has_answers: bool) {
        if has_answers {
            self.flags.answered.store(true, Ordering::Release);
        }
    }

    /// Whether questions are open while the run goes on.
    pub(super) fn has_published(&self) -> bool {
        self.flags.published.load(Ordering::Acquire)
    }

    /// What the turn said, if anything.
    pub(super) fn said(&self) -> Option<String> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        (!said.is_empty()).then(|| said.clone())
    }

    /// Whether storage gets what the run says: until its response is complete, as the client does.
    fn keeps_output(&self) -> bool {
        self.agent.settings.keep_output && !self.reader.is_complete()
    }

    /// Tells those who follow the run that storage holds more of it.
    pub(super) fn tell(&self) {
        self.agent.followers.tell(&self.run.run_id);
    }

    pub(super) fn hear(&self, chunk: &StreamChunk) {
        let text = match chunk {
            StreamChunk::Message { content, .. } => content,
            StreamChunk::TextDelta(text) => &text.delta,
            _ => return,
        };
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len().saturating_add(text.len()) <= TEXT_KEPT {
            let _ = said.write_str(text);
        }
    }

    async fn open(&self, snapshot: Vec<u8>) -> Result<(), StoreError> {
        let RunRef::New(run, driver) = self.run_ref() else { return Ok(()) };
        let chunks = self.log.take();
        let opened = self.agent.store.open(OpenRun { run, driver, snapshot: Bytes::from(snapshot), chunks });
        let lease = transition("open", opened).await?;
        let before = mem::replace(&mut *self.hold(), Hold::Leased(lease));
        if let Hold::New(new) = before {
            self.set_context(new.context);
        }
        self.tell();
        Ok(())
    }

    async fn record(&self, batch: Batch) -> Result<RecordReply, RecordError> {
        let Some(lease) = self.lease() else { return Err(not_open()) };
        if batch.response.is_some() {
            self.reader.begin_completing();
        }
        let (publish, _) = self.minted(&batch.publish, batch.response_completed).map_err(refused)?;
        let is_publishing = !publish.is_empty();
        let last = batch.response.as_ref().and_then(last_message).filter(|_| self.keeps_output());
        if let Some(text) = last.and_then(|last| log::text(&last)) {
            self.log.note(text);
        }
        let (seen, response) = (batch.answers_seen, batch.response);
        let response = response.map(|completed| self.responding(completed, seen, is_publishing)).transpose();
        let (response, new_response) = response.map_err(refused)?.unzip();
        let recorded = self.agent.store.record(Record {
            lease,
            entries: batch.entries.into_iter().map(Bytes::from).collect(),
            publish,
            withdraw: batch.withdraw.into_iter().map(AskKey).collect(),
            chunks: self.log.take(),
            answers_seen: seen,
            response: new_response,
        });
        let recorded = transition("record", recorded).await.map_err(refused)?;
        self.tell();
        for record in &recorded.published {
            self.tell_created(record, None);
        }
        if recorded.cancel_requested {
            self.cancel();
        }
        if is_publishing {
            self.flags.published.store(true, Ordering::Release);
        }
        if is_publishing || recorded.cancel_requested {
            self.attend();
        }
        self.note_answers(!recorded.answers.is_empty());
        if let Some(response) = response {
            self.respond(response);
        }
        Ok(RecordReply { answers: delivered(&recorded.answers).map_err(refused)? })
    }
}

impl ChunkSink for Live {
    fn send(&self, chunk: StreamChunk) -> IoFuture<'_, ()> {
        Box::pin(async move {
            let kept = self.keeps_output().then(|| log::text(&chunk));
            if let Some(output) = self.reader.output() {
                self.hear(&chunk);
                output.send(chunk).await;
            }
            // Last: the engine notes an emission when it was delivered, and storage gets both together.
            if let Some(text) = kept.flatten() {
                self.log.note(text);
            }
        })
    }
}

impl Recorder for Live {
    fn open(&self, snapshot: Vec<u8>) -> IoFuture<'_, Result<(), RecordError>> {
        Box::pin(async move { self.open(snapshot).await.map_err(refused) })
    }

    fn record(&self, batch: Batch) -> IoFuture<'_, Result<RecordReply, RecordError>> {
        Box::pin(self.record(batch))
    }
}

fn about_new(new: &NewRun) -> Correlation {
    Correlation::new(new.run_id.clone(), new.session_id.clone())
        .bound_to(new.workflow.clone())
        .with_context(new.context.clone())
}

fn refused(error: StoreError) -> RecordError {
    RecordError { message: "the store refused".into(), source: Some(error.into()) }
}

fn not_open() -> RecordError {
    refused(StoreError::new(StoreErrorKind::InvalidRequest, "record", "the run is not open"))
}

/// The runs under way in this process.
#[derive(Default)]
pub(crate) struct Drivers(Arc<Mutex<HashMap<RunId, Arc<Live>>>>);

impl Drivers {
    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Live>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, run_id: &RunId) -> Option<Arc<Live>> {
        self.lock().get(run_id).cloned()
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// The runs under way that storage does not know yet, in a session or under an id, within a scope.
    pub(crate) fn new_runs(&self, target: &CancelTarget, scope: Option<&Scope>) -> Vec<Arc<Live>> {
        let is_meant = |live: &Live| match target {
            CancelTarget::Run(run_id) => live.run.run_id == *run_id,
            CancelTarget::Session(session_id) => live.run.session_id == *session_id,
        };
        self.lock().values().filter(|live| is_meant(live) && live.is_new_in(scope)).cloned().collect()
    }

    /// Wakes every driver.
    pub(crate) fn attend_all(&self) {
        for live in self.lock().values() {
            live.attend();
        }
    }

    /// Keeps the run reachable until the guard is dropped.
    pub(super) fn enter(&self, live: Arc<Live>) -> Registered {
        self.lock().insert(live.run.run_id.clone(), live.clone());
        Registered { drivers: Self(self.0.clone()), live }
    }
}

/// Takes the run out again, also when its task panics.
pub(super) struct Registered {
    drivers: Drivers,
    live: Arc<Live>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut drivers = self.drivers.lock();
        if drivers.get(&self.live.run.run_id).is_some_and(|known| Arc::ptr_eq(known, &self.live)) {
            drivers.remove(&self.live.run.run_id);
        }
        drop(drivers);
        // Of a task that ends without a word, whoever waits hears just that.
        drop(self.live.reader.take_waiter());
        self.live.ended.notify_waiters();
    }
}

impl Inner {
    /// This process, when it asks for a lease.
    pub(crate) fn driver(&self) -> Driver {
        Driver { id: self.driver_id.clone(), ttl: self.settings.lease_ttl }
    }
}
