//! A store whose process dies at a chosen write.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use kortyx_memory::MemoryStore;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage, ClaimRequest, Claimed,
    ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage, InterruptQuery, InterruptRecord,
    Lease, NewCheckpoint, OpenRun, Park, Placement, Pruned, Record, Recorded, Renewed, Retention, Rollback,
    RollbackOutcome, RunRecord, Signals, Store, StoreError, Suspend, Suspended,
};
use tokio::sync::Notify;

/// Whether the write that kills the process takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    Before,
    After,
}

/// Does so many writes; at the next one the process that makes it hears no more.
pub(crate) struct Mortal {
    inner: Arc<MemoryStore>,
    writes_left: AtomicUsize,
    death: Death,
    died: Notify,
}

impl Mortal {
    pub(crate) fn new(inner: Arc<MemoryStore>, writes: usize, death: Death) -> Arc<Self> {
        Arc::new(Self { inner, writes_left: AtomicUsize::new(writes), death, died: Notify::new() })
    }

    /// Waits until the process has died.
    pub(crate) async fn died(&self) {
        self.died.notified().await;
    }

    /// Whether this write is the last.
    fn is_last(&self, operation: &str) -> bool {
        let writes = ["open", "record", "suspend", "answer", "finish"];
        let count = |left: usize| left.checked_sub(1);
        writes.contains(&operation) && self.writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count).is_err()
    }
}

macro_rules! delegate {
    ($($name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        #[async_trait]
        impl Store for Mortal {
            $(async fn $name(&self, $($argument: $type),*) -> Result<$output, StoreError> {
                let is_last = self.is_last(stringify!($name));
                if is_last && self.death == Death::Before {
                    self.died.notify_one();
                    return pending().await;
                }
                let reply = self.inner.$name($($argument),*).await;
                if is_last {
                    self.died.notify_one();
                    return pending().await;
                }
                reply
            })*

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
    };
}

delegate! {
    setup() -> ();
    now() -> Timestamp;
    open(request: OpenRun) -> Lease;
    record(request: Record) -> Recorded;
    suspend(request: Suspend) -> Suspended;
    answer(request: AnswerRequest) -> AnswerOutcome;
    finish(request: Finish) -> Finished;
    park(request: Park) -> ();
    renew(lease: &Lease, ttl: Duration, seen: u64) -> Renewed;
    release(lease: &Lease) -> ();
    claim_orphans(request: ClaimRequest) -> Vec<Claimed>;
    expire_due(request: ExpireRequest) -> ExpiredBatch;
    cancel(request: CancelRequest) -> Vec<CancelOutcome>;
    run(run_id: &RunId) -> Option<RunRecord>;
    chunks(run_id: &RunId, after: u64, limit: u32) -> Option<ChunkPage>;
    interrupt(request_id: &RequestId) -> Option<InterruptRecord>;
    list_interrupts(query: InterruptQuery) -> InterruptPage;
    append_checkpoint(session_id: &SessionId, checkpoint: NewCheckpoint) -> CheckpointRecord;
    head(session_id: &SessionId) -> Option<CheckpointRecord>;
    list_checkpoints(session_id: &SessionId) -> Vec<CheckpointRecord>;
    checkpoint(id: &CheckpointId) -> Option<CheckpointRecord>;
    rollback(request: Rollback) -> RollbackOutcome;
    fork(request: Fork) -> ForkOutcome;
    prune(retention: &Retention, limit: u32) -> Pruned;
}
