//! The store: a lock, a clock, and the port's methods as transitions.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage, ClaimRequest, Claimed,
    Clock, ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage, InterruptQuery,
    InterruptRecord, Lease, NewCheckpoint, OpenRun, Park, Pruned, Record, Recorded, Renewed, Retention, Rollback,
    RollbackOutcome, RunHistory, RunPage, RunQuery, RunRecord, SessionPage, SessionQuery, Signal, Signals, Store,
    StoreError, StoreErrorKind, StoreStats, Suspend, Suspended, SystemClock,
};
use tokio::sync::broadcast;

use crate::state::{State, Transition};

/// How large a payload may be unless the builder says otherwise.
const PAYLOAD_LIMIT: usize = 64 * 1024 * 1024;
/// How many hints wait for a receiver that lags; older ones are lost to it.
const SIGNALS: usize = 256;

/// The store that lives in this process and ends with it.
///
/// Every transition is one short critical section; none waits for anything. A clone of the [`Arc`] that holds it is all
/// that sharing takes.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use kortyx_memory::MemoryStore;
/// use kortyx_store::{InterruptQuery, Scope, Store};
///
/// let store = MemoryStore::new();
/// let scope = Scope::session("session-1".parse()?);
/// let page = store.list_interrupts(InterruptQuery { scope, ..InterruptQuery::default() }).await?;
/// assert!(page.interrupts.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemoryStore {
    /// `None` once closed.
    state: Mutex<Option<Box<State>>>,
    clock: Arc<dyn Clock>,
    signals: broadcast::Sender<Signal>,
}

/// Settings of a [`MemoryStore`].
pub struct MemoryStoreBuilder {
    clock: Arc<dyn Clock>,
    payload_limit: usize,
}

impl MemoryStore {
    /// An empty store on the machine's clock, for payloads of at most 64 MiB.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Starts from the settings of [`new`](Self::new).
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder { clock: Arc::new(SystemClock), payload_limit: PAYLOAD_LIMIT }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<State>>> {
        // No transition panics; should one, its checks came first, so the state is as good as any.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&State) -> T) -> Option<T> {
        self.lock().as_deref().map(look)
    }

    /// Runs one transition, alone.
    fn transition<T>(
        &self,
        operation: &'static str,
        transition: impl FnOnce(&mut Transition<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut state = self.lock();
        let Some(state) = state.as_deref_mut() else {
            return Err(StoreError::new(StoreErrorKind::Closed, operation, "the store was closed"));
        };
        transition(&mut Transition { state, now: self.clock.now(), operation })
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl MemoryStoreBuilder {
    /// Takes the time from this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Refuses snapshots, entries, questions, answers, outcomes and states over this many bytes, each, with
    /// [`TooLarge`](StoreErrorKind::TooLarge).
    #[must_use]
    pub fn with_payload_limit(mut self, bytes: usize) -> Self {
        self.payload_limit = bytes;
        self
    }

    /// An empty store.
    pub fn build(self) -> MemoryStore {
        let signals = broadcast::Sender::new(SIGNALS);
        let state = State::new(self.payload_limit, signals.clone());
        MemoryStore { state: Mutex::new(Some(Box::new(state))), clock: self.clock, signals }
    }
}

impl fmt::Debug for MemoryStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStoreBuilder").field("payload_limit", &self.payload_limit).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn setup(&self) -> Result<(), StoreError> {
        self.transition("setup", |_| Ok(()))
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.transition("now", |t| Ok(t.now))
    }

    async fn open(&self, request: OpenRun) -> Result<Lease, StoreError> {
        self.transition("open", |t| t.open(request))
    }

    async fn record(&self, request: Record) -> Result<Recorded, StoreError> {
        self.transition("record", |t| t.record(request))
    }

    async fn suspend(&self, request: Suspend) -> Result<Suspended, StoreError> {
        self.transition("suspend", |t| t.suspend(request))
    }

    async fn answer(&self, request: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        self.transition("answer", |t| t.answer(request))
    }

    async fn finish(&self, request: Finish) -> Result<Finished, StoreError> {
        self.transition("finish", |t| t.finish(request))
    }

    async fn park(&self, request: Park) -> Result<(), StoreError> {
        self.transition("park", |t| t.park(request))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration, answers_seen: u64) -> Result<Renewed, StoreError> {
        self.transition("renew", |t| t.renew(lease, ttl, answers_seen))
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.transition("release", |t| t.release(lease))
    }

    async fn claim_orphans(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        self.transition("claim orphans", |t| t.claim_orphans(&request))
    }

    async fn expire_due(&self, request: ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        self.transition("expire due", |t| t.expire_due(&request))
    }

    async fn cancel(&self, request: CancelRequest) -> Result<Vec<CancelOutcome>, StoreError> {
        self.transition("cancel", |t| t.cancel(&request))
    }

    async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.transition("run", |t| t.run(run_id))
    }

    async fn chunks(&self, run_id: &RunId, after: u64, limit: u32) -> Result<Option<ChunkPage>, StoreError> {
        self.transition("chunks", |t| t.chunks(run_id, after, limit))
    }

    async fn interrupt(&self, request_id: &RequestId) -> Result<Option<InterruptRecord>, StoreError> {
        self.transition("interrupt", |t| t.interrupt(request_id))
    }

    async fn list_interrupts(&self, query: InterruptQuery) -> Result<InterruptPage, StoreError> {
        self.transition("list interrupts", |t| t.list_interrupts(&query))
    }

    async fn list_runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        self.transition("list runs", |t| t.list_runs(&query))
    }

    async fn history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        self.transition("history", |t| t.history(run_id))
    }

    async fn list_sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        self.transition("list sessions", |t| t.list_sessions(&query))
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        self.transition("stats", |t| Ok(t.stats()))
    }

    async fn append_checkpoint(
        &self,
        session_id: &SessionId,
        checkpoint: NewCheckpoint,
    ) -> Result<CheckpointRecord, StoreError> {
        self.transition("append checkpoint", |t| t.append_checkpoint(session_id, checkpoint))
    }

    async fn head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError> {
        self.transition("head", |t| t.head(session_id))
    }

    async fn list_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError> {
        self.transition("list checkpoints", |t| t.list_checkpoints(session_id))
    }

    async fn checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRecord>, StoreError> {
        self.transition("checkpoint", |t| Ok(t.checkpoint(id)))
    }

    async fn rollback(&self, request: Rollback) -> Result<RollbackOutcome, StoreError> {
        self.transition("rollback", |t| t.rollback(&request))
    }

    async fn fork(&self, request: Fork) -> Result<ForkOutcome, StoreError> {
        self.transition("fork", |t| t.fork(request))
    }

    async fn prune(&self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError> {
        self.transition("prune", |t| t.prune(retention, limit))
    }

    fn signals(&self) -> Signals {
        self.signals.subscribe()
    }

    async fn close(&self) {
        let state = self.lock().take();
        // Freed after the lock is.
        drop(state);
    }
}
