//! The store with a cache of snapshots beside it.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CacheableStore, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage,
    ClaimRequest, Claimed, ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage,
    InterruptQuery, InterruptRecord, Lease, NewCheckpoint, OpenRun, Park, PayloadCache, Placement, Pruned, Record,
    Recorded, Renewed, Retention, Rollback, RollbackOutcome, RunHistory, RunPage, RunQuery, RunRecord, SessionPage,
    SessionQuery, Signals, Store, StoreError, StoreStats, Suspend, Suspended,
};

use crate::{CacheConfig, CacheCounts, guard::Guard};

/// A store whose snapshots are also in a cache, from where a lease gets them.
///
/// The store decides everything; the cache only saves it from sending a snapshot. See the [crate](crate) for what it is good
/// for and what it costs when it fails.
pub struct CachedStore<S, C> {
    inner: S,
    cache: Guard<C>,
}

impl<S: CacheableStore, C: PayloadCache> CachedStore<S, C> {
    /// Puts a cache beside a store.
    pub fn new(store: S, cache: C, config: CacheConfig) -> Self {
        Self { inner: store, cache: Guard::new(cache, config) }
    }

    /// How the cache does, for metrics.
    pub fn counts(&self) -> CacheCounts {
        self.cache.counts()
    }

    /// The store without the cache.
    pub fn store(&self) -> &S {
        &self.inner
    }
}

#[async_trait]
impl<S: CacheableStore, C: PayloadCache> Store for CachedStore<S, C> {
    async fn setup(&self) -> Result<(), StoreError> {
        self.inner.setup().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }

    async fn open(&self, request: OpenRun) -> Result<Lease, StoreError> {
        self.inner.open_beside(&self.cache, request).await
    }

    async fn record(&self, request: Record) -> Result<Recorded, StoreError> {
        self.inner.record(request).await
    }

    async fn suspend(&self, request: Suspend) -> Result<Suspended, StoreError> {
        self.inner.suspend_beside(&self.cache, request).await
    }

    async fn answer(&self, request: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        self.inner.answer_beside(&self.cache, request).await
    }

    async fn finish(&self, request: Finish) -> Result<Finished, StoreError> {
        self.inner.finish(request).await
    }

    async fn park(&self, request: Park) -> Result<(), StoreError> {
        self.inner.park(request).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration, answers_seen: u64) -> Result<Renewed, StoreError> {
        self.inner.renew(lease, ttl, answers_seen).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.inner.release(lease).await
    }

    async fn claim_orphans(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        self.inner.claim_orphans_beside(&self.cache, request).await
    }

    async fn expire_due(&self, request: ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        self.inner.expire_due_beside(&self.cache, request).await
    }

    async fn cancel(&self, request: CancelRequest) -> Result<Vec<CancelOutcome>, StoreError> {
        self.inner.cancel(request).await
    }

    async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.inner.run(run_id).await
    }

    async fn chunks(&self, run_id: &RunId, after: u64, limit: u32) -> Result<Option<ChunkPage>, StoreError> {
        self.inner.chunks(run_id, after, limit).await
    }

    async fn interrupt(&self, request_id: &RequestId) -> Result<Option<InterruptRecord>, StoreError> {
        self.inner.interrupt(request_id).await
    }

    async fn list_interrupts(&self, query: InterruptQuery) -> Result<InterruptPage, StoreError> {
        self.inner.list_interrupts(query).await
    }

    async fn list_runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        self.inner.list_runs(query).await
    }

    async fn history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        self.inner.history(run_id).await
    }

    async fn list_sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        self.inner.list_sessions(query).await
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        self.inner.stats().await
    }

    async fn append_checkpoint(
        &self,
        session_id: &SessionId,
        checkpoint: NewCheckpoint,
    ) -> Result<CheckpointRecord, StoreError> {
        self.inner.append_checkpoint(session_id, checkpoint).await
    }

    async fn head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError> {
        self.inner.head(session_id).await
    }

    async fn list_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError> {
        self.inner.list_checkpoints(session_id).await
    }

    async fn checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRecord>, StoreError> {
        self.inner.checkpoint(id).await
    }

    async fn rollback(&self, request: Rollback) -> Result<RollbackOutcome, StoreError> {
        self.inner.rollback(request).await
    }

    async fn fork(&self, request: Fork) -> Result<ForkOutcome, StoreError> {
        self.inner.fork(request).await
    }

    async fn prune(&self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError> {
        self.inner.prune(retention, limit).await
    }

    fn placement(&self, session_id: &SessionId) -> Option<Placement> {
        self.inner.placement(session_id)
    }

    fn signals(&self) -> Signals {
        self.inner.signals()
    }

    async fn close(&self) {
        self.inner.close().await;
        self.cache.close().await;
    }
}

impl<S: fmt::Debug, C> fmt::Debug for CachedStore<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedStore").field("store", &self.inner).finish_non_exhaustive()
    }
}
