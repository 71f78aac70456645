//! The store whose calls are timed.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage, ClaimRequest, Claimed,
    ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage, InterruptQuery, InterruptRecord,
    Lease, NewCheckpoint, OpenRun, Park, Placement, Pruned, Record, Recorded, Renewed, Retention, Rollback,
    RollbackOutcome, RunHistory, RunPage, RunQuery, RunRecord, SessionPage, SessionQuery, Signals, Store, StoreError,
    StoreErrorKind, StoreStats, Suspend, Suspended,
};

use super::{names, quietly};

/// A store whose calls are timed and whose failures are counted, by the name of the call. It changes nothing else.
///
/// Put it around all other layers to see what a run waits for, or within a cache or a codec to see what the store itself takes. A call whose
/// caller stops waiting is not counted.
///
/// ```
/// use kortyx_memory::MemoryStore;
/// use kortyx_orchestrator::Agent;
/// use kortyx_telemetry::metrics::MeteredStore;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder().store(MeteredStore::new("memory", MemoryStore::new())).build().await?;
/// # Ok(())
/// # }
/// ```
pub struct MeteredStore<S: ?Sized> {
    name: &'static str,
    inner: Arc<S>,
}

impl<S: Store> MeteredStore<S> {
    /// Times the calls of a store. The name is the label `store`.
    pub fn new(name: &'static str, store: S) -> Self {
        Self::over(name, Arc::new(store))
    }
}

impl<S: Store + ?Sized> MeteredStore<S> {
    /// As [`new`](MeteredStore::new), of a store that others use too.
    pub fn over(name: &'static str, store: Arc<S>) -> Self {
        quietly(names::describe);
        Self { name, inner: store }
    }

    async fn timed<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let begun = Instant::now();
        let result = call.await;
        let seconds = begun.elapsed().as_secs_f64();
        quietly(|| {
            names::STORE_CALLS.observe([self.name.into(), operation.into()], seconds);
            if let Err(error) = &result {
                names::STORE_ERRORS.add([self.name.into(), operation.into(), word(error.kind()).into()], 1);
            }
        });
        result
    }
}

#[async_trait]
impl<S: Store + ?Sized> Store for MeteredStore<S> {
    async fn setup(&self) -> Result<(), StoreError> {
        self.timed("setup", self.inner.setup()).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.timed("now", self.inner.now()).await
    }

    async fn open(&self, request: OpenRun) -> Result<Lease, StoreError> {
        self.timed("open", self.inner.open(request)).await
    }

    async fn record(&self, request: Record) -> Result<Recorded, StoreError> {
        self.timed("record", self.inner.record(request)).await
    }

    async fn suspend(&self, request: Suspend) -> Result<Suspended, StoreError> {
        self.timed("suspend", self.inner.suspend(request)).await
    }

    async fn answer(&self, request: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        self.timed("answer", self.inner.answer(request)).await
    }

    async fn finish(&self, request: Finish) -> Result<Finished, StoreError> {
        self.timed("finish", self.inner.finish(request)).await
    }

    async fn park(&self, request: Park) -> Result<(), StoreError> {
        self.timed("park", self.inner.park(request)).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration, answers_seen: u64) -> Result<Renewed, StoreError> {
        self.timed("renew", self.inner.renew(lease, ttl, answers_seen)).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.timed("release", self.inner.release(lease)).await
    }

    async fn claim_orphans(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        self.timed("claim_orphans", self.inner.claim_orphans(request)).await
    }

    async fn expire_due(&self, request: ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        self.timed("expire_due", self.inner.expire_due(request)).await
    }

    async fn cancel(&self, request: CancelRequest) -> Result<Vec<CancelOutcome>, StoreError> {
        self.timed("cancel", self.inner.cancel(request)).await
    }

    async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.timed("run", self.inner.run(run_id)).await
    }

    async fn chunks(&self, run_id: &RunId, after: u64, limit: u32) -> Result<Option<ChunkPage>, StoreError> {
        self.timed("chunks", self.inner.chunks(run_id, after, limit)).await
    }

    async fn interrupt(&self, request_id: &RequestId) -> Result<Option<InterruptRecord>, StoreError> {
        self.timed("interrupt", self.inner.interrupt(request_id)).await
    }

    async fn list_interrupts(&self, query: InterruptQuery) -> Result<InterruptPage, StoreError> {
        self.timed("list_interrupts", self.inner.list_interrupts(query)).await
    }

    async fn list_runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        self.timed("list_runs", self.inner.list_runs(query)).await
    }

    async fn history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        self.timed("history", self.inner.history(run_id)).await
    }

    async fn list_sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        self.timed("list_sessions", self.inner.list_sessions(query)).await
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        self.timed("stats", self.inner.stats()).await
    }

    async fn append_checkpoint(
        &self,
        session_id: &SessionId,
        checkpoint: NewCheckpoint,
    ) -> Result<CheckpointRecord, StoreError> {
        self.timed("append_checkpoint", self.inner.append_checkpoint(session_id, checkpoint)).await
    }

    async fn head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError> {
        self.timed("head", self.inner.head(session_id)).await
    }

    async fn list_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError> {
        self.timed("list_checkpoints", self.inner.list_checkpoints(session_id)).await
    }

    async fn checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRecord>, StoreError> {
        self.timed("checkpoint", self.inner.checkpoint(id)).await
    }

    async fn rollback(&self, request: Rollback) -> Result<RollbackOutcome, StoreError> {
        self.timed("rollback", self.inner.rollback(request)).await
    }

    async fn fork(&self, request: Fork) -> Result<ForkOutcome, StoreError> {
        self.timed("fork", self.inner.fork(request)).await
    }

    async fn prune(&self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError> {
        self.timed("prune", self.inner.prune(retention, limit)).await
    }

    fn placement(&self, session_id: &SessionId) -> Option<Placement> {
        self.inner.placement(session_id)
    }

    fn signals(&self) -> Signals {
        self.inner.signals()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

/// The kind of an error as the value of a label.
fn word(kind: StoreErrorKind) -> &'static str {
    match kind {
        StoreErrorKind::LeaseLost => "lease_lost",
        StoreErrorKind::AlreadyExists => "already_exists",
        StoreErrorKind::Abandoned => "abandoned",
        StoreErrorKind::ScopeRequired => "scope_required",
        StoreErrorKind::InvalidRequest => "invalid_request",
        StoreErrorKind::TooLarge => "too_large",
        StoreErrorKind::Schema => "schema",
        StoreErrorKind::Corrupt => "corrupt",
        StoreErrorKind::Unavailable => "unavailable",
        StoreErrorKind::Closed => "closed",
        StoreErrorKind::Backend => "backend",
        _ => "other",
    }
}

impl<S: ?Sized> fmt::Debug for MeteredStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeteredStore").field("name", &self.name).finish_non_exhaustive()
    }
}
