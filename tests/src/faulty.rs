//! A store that fails, takes its time, or forgets to tell, when a test says so.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use kortyx::{
    protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp},
    store::{
        AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage, ClaimRequest, Claimed,
        ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage, InterruptQuery,
        InterruptRecord, Lease, NewCheckpoint, OpenRun, Park, Placement, Pruned, Record, Recorded, Renewed, Retention,
        Rollback, RollbackOutcome, RunRecord, Signals, Store, StoreError, StoreErrorKind, Suspend, Suspended,
    },
};
use tokio::sync::{Semaphore, broadcast};

/// A store between an agent and the world.
pub struct Faulty {
    inner: Arc<dyn Store>,
    plans: Mutex<HashMap<(Op, When), Plan>>,
    calls: Mutex<HashMap<Op, u64>>,
    /// Where muted agents listen.
    silence: broadcast::Sender<kortyx::store::Signal>,
    is_muted: bool,
}

/// When something happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum When {
    /// Nothing was written yet.
    Before,
    /// It is durable, and the caller does not know.
    After,
}

enum Plan {
    Fail(u64),
    /// After so many calls that pass.
    Hold(u64, Gate),
}

/// Holds calls until it is opened.
#[derive(Clone)]
pub struct Gate {
    reached: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

impl Gate {
    fn closed() -> Self {
        Self { reached: Arc::new(Semaphore::new(0)), opened: Arc::new(Semaphore::new(0)) }
    }

    /// Waits until a call stands before it.
    pub async fn reached(&self) {
        self.reached.acquire().await.unwrap().forget();
    }

    /// Lets every call through.
    pub fn open(&self) {
        self.opened.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    async fn pass(&self) {
        self.reached.add_permits(1);
        drop(self.opened.acquire().await.unwrap());
    }
}

impl Faulty {
    /// A store that does what the one beneath it does.
    pub fn over(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self::new(inner, false))
    }

    /// A store whose hints are all lost.
    pub fn mute(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self::new(inner, true))
    }

    fn new(inner: Arc<dyn Store>, is_muted: bool) -> Self {
        let (plans, calls) = (Mutex::default(), Mutex::default());
        Self { inner, plans, calls, silence: broadcast::channel(1).0, is_muted }
    }

    /// Fails the next calls of this kind, this many of them.
    pub fn fail(&self, op: Op, when: When, times: u64) {
        self.plans.lock().unwrap().insert((op, when), Plan::Fail(times));
    }

    /// Fails every call of every kind from now on.
    pub fn cut(&self) {
        let plans = Op::ALL.iter().map(|op| ((*op, When::Before), Plan::Fail(u64::MAX)));
        self.plans.lock().unwrap().extend(plans);
    }

    /// Does what the store beneath does again.
    pub fn mend(&self) {
        self.plans.lock().unwrap().clear();
    }

    /// Holds every call of this kind until the gate is opened.
    pub fn hold(&self, op: Op, when: When) -> Gate {
        self.hold_after(0, op, when)
    }

    /// Lets so many calls of this kind pass, and holds every other one until the gate is opened.
    pub fn hold_after(&self, passing: u64, op: Op, when: When) -> Gate {
        let gate = Gate::closed();
        self.plans.lock().unwrap().insert((op, when), Plan::Hold(passing, gate.clone()));
        gate
    }

    /// How many calls of this kind were made.
    pub fn calls(&self, op: Op) -> u64 {
        self.calls.lock().unwrap().get(&op).copied().unwrap_or_default()
    }

    async fn meet(&self, op: Op, when: When) -> Result<(), StoreError> {
        let gate = {
            let mut plans = self.plans.lock().unwrap();
            match plans.get_mut(&(op, when)) {
                Some(Plan::Fail(0)) | None => return Ok(()),
                Some(Plan::Fail(left)) => {
                    *left -= 1;
                    return Err(StoreError::new(StoreErrorKind::Unavailable, "faulty", "the test cut the line"));
                }
                Some(Plan::Hold(0, gate)) => gate.clone(),
                Some(Plan::Hold(passing, _)) => {
                    *passing -= 1;
                    return Ok(());
                }
            }
        };
        gate.pass().await;
        Ok(())
    }

    async fn around<T>(&self, op: Op, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        *self.calls.lock().unwrap().entry(op).or_default() += 1;
        self.meet(op, When::Before).await?;
        let outcome = call.await?;
        self.meet(op, When::After).await?;
        Ok(outcome)
    }
}

macro_rules! store {
    ($($op:ident: $name:ident($($arg:ident: $type:ty),*) -> $outcome:ty;)*) => {
        /// The kinds of calls.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Op {
            $(#[doc = concat!("[`Store::", stringify!($name), "`].")] $op,)*
        }

        impl Op {
            const ALL: &[Self] = &[$(Self::$op),*];
        }

        #[async_trait]
        impl Store for Faulty {
            $(async fn $name(&self, $($arg: $type),*) -> Result<$outcome, StoreError> {
                self.around(Op::$op, self.inner.$name($($arg),*)).await
            })*

            fn placement(&self, session_id: &SessionId) -> Option<Placement> {
                self.inner.placement(session_id)
            }

            fn signals(&self) -> Signals {
                if self.is_muted { self.silence.subscribe() } else { self.inner.signals() }
            }

            async fn close(&self) {
                self.inner.close().await;
            }
        }
    };
}

store! {
    Setup: setup() -> ();
    Now: now() -> Timestamp;
    Open: open(request: OpenRun) -> Lease;
    Record: record(request: Record) -> Recorded;
    Suspend: suspend(request: Suspend) -> Suspended;
    Answer: answer(request: AnswerRequest) -> AnswerOutcome;
    Finish: finish(request: Finish) -> Finished;
    Park: park(request: Park) -> ();
    Renew: renew(lease: &Lease, ttl: Duration, answers_seen: u64) -> Renewed;
    Release: release(lease: &Lease) -> ();
    ClaimOrphans: claim_orphans(request: ClaimRequest) -> Vec<Claimed>;
    ExpireDue: expire_due(request: ExpireRequest) -> ExpiredBatch;
    Cancel: cancel(request: CancelRequest) -> Vec<CancelOutcome>;
    Run: run(run_id: &RunId) -> Option<RunRecord>;
    Chunks: chunks(run_id: &RunId, after: u64, limit: u32) -> Option<ChunkPage>;
    Interrupt: interrupt(request_id: &RequestId) -> Option<InterruptRecord>;
    ListInterrupts: list_interrupts(query: InterruptQuery) -> InterruptPage;
    AppendCheckpoint: append_checkpoint(session_id: &SessionId, checkpoint: NewCheckpoint) -> CheckpointRecord;
    Head: head(session_id: &SessionId) -> Option<CheckpointRecord>;
    ListCheckpoints: list_checkpoints(session_id: &SessionId) -> Vec<CheckpointRecord>;
    Checkpoint: checkpoint(id: &CheckpointId) -> Option<CheckpointRecord>;
    Rollback: rollback(request: Rollback) -> RollbackOutcome;
    Fork: fork(request: Fork) -> ForkOutcome;
    Prune: prune(retention: &Retention, limit: u32) -> Pruned;
}
