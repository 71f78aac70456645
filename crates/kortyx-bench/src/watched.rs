//! A store that watches what is asked of it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage, ClaimRequest, Claimed,
    ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage, InterruptQuery, InterruptRecord,
    Lease, NewCheckpoint, OpenRun, Park, Placement, Pruned, Record, Recorded, Renewed, Retention, Rollback,
    RollbackOutcome, RunHistory, RunPage, RunQuery, RunRecord, SessionPage, SessionQuery, Signals, Store, StoreError,
    StoreStats, Suspend, Suspended,
};

use crate::{error::Error, number::float, template::Template};

/// Passes everything on to another store, counts it, and keeps the requests of the first cycle.
pub(crate) struct Watched {
    inner: Arc<dyn Store>,
    writes: AtomicU64,
    reads: AtomicU64,
    payload: AtomicU64,
    seen: Mutex<Seen>,
}

/// The first requests. Keeping more would keep memory that the store does not.
#[derive(Default)]
struct Seen {
    suspend: Option<Suspend>,
    answer: Option<AnswerRequest>,
    finish: Option<Finish>,
}

impl Watched {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        let (writes, reads, payload) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { inner, writes, reads, payload, seen: Mutex::default() })
    }

    /// How many transitions were asked for.
    pub(crate) fn writes(&self) -> f64 {
        float(self.writes.load(Ordering::Relaxed))
    }

    /// How often something was read outside a transition.
    pub(crate) fn reads(&self) -> f64 {
        float(self.reads.load(Ordering::Relaxed))
    }

    /// The bytes of all snapshots and questions that suspended runs gave.
    pub(crate) fn payload(&self) -> f64 {
        float(self.payload.load(Ordering::Relaxed))
    }

    /// The requests of the first cycle.
    pub(crate) fn template(&self) -> Result<Template, Error> {
        let Seen { suspend, answer, finish } = std::mem::take(&mut *self.seen());
        match (suspend, answer, finish) {
            (Some(suspend), Some(answer), Some(finish)) => Template::new(suspend, answer, finish),
            _ => Err(Error::unexpected("a cycle must suspend, be answered and finish")),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_suspend(&self, request: &Suspend) {
        let questions = request.publish.iter().map(|new| new.question.len()).sum::<usize>();
        let bytes = request.snapshot.len() + questions;
        self.payload.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.seen().suspend.get_or_insert_with(|| request.clone());
    }

    fn note_answer(&self, request: &AnswerRequest) {
        self.seen().answer.get_or_insert_with(|| request.clone());
    }

    fn note_finish(&self, request: &Finish) {
        self.seen().finish.get_or_insert_with(|| request.clone());
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[async_trait]
impl Store for Watched {
    async fn setup(&self) -> Result<(), StoreError> {
        self.inner.setup().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }

    async fn open(&self, request: OpenRun) -> Result<Lease, StoreError> {
        count(&self.writes);
        self.inner.open(request).await
    }

    async fn record(&self, request: Record) -> Result<Recorded, StoreError> {
        count(&self.writes);
        self.inner.record(request).await
    }

    async fn suspend(&self, request: Suspend) -> Result<Suspended, StoreError> {
        count(&self.writes);
        self.note_suspend(&request);
        self.inner.suspend(request).await
    }

    async fn answer(&self, request: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        count(&self.writes);
        self.note_answer(&request);
        self.inner.answer(request).await
    }

    async fn finish(&self, request: Finish) -> Result<Finished, StoreError> {
        count(&self.writes);
        self.note_finish(&request);
        self.inner.finish(request).await
    }

    async fn park(&self, request: Park) -> Result<(), StoreError> {
        count(&self.writes);
        self.inner.park(request).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration, answers_seen: u64) -> Result<Renewed, StoreError> {
        count(&self.writes);
        self.inner.renew(lease, ttl, answers_seen).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        count(&self.writes);
        self.inner.release(lease).await
    }

    async fn claim_orphans(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        count(&self.writes);
        self.inner.claim_orphans(request).await
    }

    async fn expire_due(&self, request: ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        count(&self.writes);
        self.inner.expire_due(request).await
    }

    async fn cancel(&self, request: CancelRequest) -> Result<Vec<CancelOutcome>, StoreError> {
        count(&self.writes);
        self.inner.cancel(request).await
    }

    async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        count(&self.reads);
        self.inner.run(run_id).await
    }

    async fn chunks(&self, run_id: &RunId, after: u64, limit: u32) -> Result<Option<ChunkPage>, StoreError> {
        count(&self.reads);
        self.inner.chunks(run_id, after, limit).await
    }

    async fn interrupt(&self, request_id: &RequestId) -> Result<Option<InterruptRecord>, StoreError> {
        count(&self.reads);
        self.inner.interrupt(request_id).await
    }

    async fn list_interrupts(&self, query: InterruptQuery) -> Result<InterruptPage, StoreError> {
        count(&self.reads);
        self.inner.list_interrupts(query).await
    }

    async fn list_runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        count(&self.reads);
        self.inner.list_runs(query).await
    }

    async fn history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        count(&self.reads);
        self.inner.history(run_id).await
    }

    async fn list_sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        count(&self.reads);
        self.inner.list_sessions(query).await
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        count(&self.reads);
        self.inner.stats().await
    }

    async fn append_checkpoint(
        &self,
        session_id: &SessionId,
        checkpoint: NewCheckpoint,
    ) -> Result<CheckpointRecord, StoreError> {
        count(&self.writes);
        self.inner.append_checkpoint(session_id, checkpoint).await
    }

    async fn head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError> {
        count(&self.reads);
        self.inner.head(session_id).await
    }

    async fn list_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError> {
        count(&self.reads);
        self.inner.list_checkpoints(session_id).await
    }

    async fn checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRecord>, StoreError> {
        count(&self.reads);
        self.inner.checkpoint(id).await
    }

    async fn rollback(&self, request: Rollback) -> Result<RollbackOutcome, StoreError> {
        count(&self.writes);
        self.inner.rollback(request).await
    }

    async fn fork(&self, request: Fork) -> Result<ForkOutcome, StoreError> {
        count(&self.writes);
        self.inner.fork(request).await
    }

    async fn prune(&self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError> {
        count(&self.writes);
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
    }
}

#[cfg(test)]
mod tests {
    use kortyx_memory::MemoryStore;

    use super::*;
    use crate::workload::Workload;

    #[tokio::test]
    async fn a_cycle_is_three_transitions_and_one_read() {
        let watched = Watched::new(Arc::new(MemoryStore::new()));

        Workload::over(watched.clone()).await.unwrap().cycle().await.unwrap();

        assert_eq!((watched.writes.load(Ordering::Relaxed), watched.reads.load(Ordering::Relaxed)), (3, 1));
        assert!(watched.template().is_ok());
        assert!(watched.payload() > 1000.0);
    }

    #[tokio::test]
    async fn without_a_cycle_there_is_no_template() {
        assert!(Watched::new(Arc::new(MemoryStore::new())).template().is_err());
    }
}
