//! A store that fails when it is told to.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use kortyx_memory::MemoryStore;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage, ClaimRequest, Claimed,
    ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage, InterruptQuery, InterruptRecord,
    Lease, NewCheckpoint, OpenRun, Park, Placement, Pruned, Record, Recorded, Renewed, Retention, Rollback,
    RollbackOutcome, RunRecord, Signals, Store, StoreError, StoreErrorKind, Suspend, Suspended,
};

type Meanwhile = Box<dyn FnOnce() + Send>;

/// Fails the next calls of the named operations, before they do anything.
pub(crate) struct Faulty {
    inner: Arc<MemoryStore>,
    /// Where it says that every session lives.
    part: Option<Placement>,
    faults: Mutex<Vec<&'static str>>,
    /// What happens while an operation is on its way, once.
    meanwhile: Mutex<Vec<(&'static str, Meanwhile)>>,
    pub(crate) calls: Mutex<Vec<&'static str>>,
}

impl Faulty {
    pub(crate) fn new(inner: Arc<MemoryStore>) -> Arc<Self> {
        Self::living_in(inner, None)
    }

    /// One that says where sessions live.
    pub(crate) fn living_in(inner: Arc<MemoryStore>, part: Option<Placement>) -> Arc<Self> {
        Arc::new(Self { inner, part, faults: Mutex::default(), meanwhile: Mutex::default(), calls: Mutex::default() })
    }

    /// Fails the next call of this operation, once for each time this is called.
    pub(crate) fn fail(&self, operation: &'static str) {
        self.faults.lock().unwrap().push(operation);
    }

    /// Does something while the next call of this operation is on its way.
    pub(crate) fn during(&self, operation: &'static str, meanwhile: impl FnOnce() + Send + 'static) {
        self.meanwhile.lock().unwrap().push((operation, Box::new(meanwhile)));
    }

    fn reach(&self, operation: &'static str) -> Result<(), StoreError> {
        self.calls.lock().unwrap().push(operation);
        let mut meanwhile = self.meanwhile.lock().unwrap();
        if let Some(place) = meanwhile.iter().position(|(during, _)| *during == operation) {
            meanwhile.remove(place).1();
        }
        drop(meanwhile);
        let mut faults = self.faults.lock().unwrap();
        match faults.iter().position(|fault| *fault == operation) {
            Some(place) => {
                faults.remove(place);
                Err(StoreError::new(StoreErrorKind::Unavailable, operation, "postgres://user:hunter2@host is down"))
            }
            None => Ok(()),
        }
    }
}

macro_rules! delegate {
    ($($name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        #[async_trait]
        impl Store for Faulty {
            $(async fn $name(&self, $($argument: $type),*) -> Result<$output, StoreError> {
                self.reach(stringify!($name))?;
                self.inner.$name($($argument),*).await
            })*

            fn placement(&self, _session_id: &SessionId) -> Option<Placement> {
                self.part
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
