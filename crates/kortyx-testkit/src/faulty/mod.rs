//! A store that fails, takes its time, dies or forgets to tell, when a test says so.

mod gate;
mod plan;

use std::{
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage, ClaimRequest, Claimed,
    ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage, InterruptQuery, InterruptRecord,
    Lease, NewCheckpoint, OpenRun, Park, Placement, Pruned, Record, Recorded, Renewed, Retention, Rollback,
    RollbackOutcome, RunHistory, RunPage, RunQuery, RunRecord, SessionPage, SessionQuery, Signal, Signals, Store,
    StoreError, StoreErrorKind, StoreStats, Suspend, Suspended,
};
use tokio::sync::{Notify, broadcast};

pub use self::gate::Gate;
use self::plan::{Fate, Plans};

/// What a failure says: it holds a password, which nobody outside may read.
const REASON: &str = "postgres://user:hunter2@host is down";

/// A store between an agent and the world, in one process. It does what the store beneath does, unless a test says otherwise.
///
/// ```
/// use std::sync::Arc;
///
/// use kortyx::{memory::MemoryStore, store::Store as _};
/// use kortyx_testkit::{Faulty, Op, When};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let store = Faulty::over(Arc::new(MemoryStore::new()));
/// store.fail(Op::Now, When::Before, 1);
/// assert!(store.now().await.is_err());
/// assert!(store.now().await.is_ok());
/// assert_eq!(store.calls(Op::Now), 2);
/// # }
/// ```
pub struct Faulty {
    inner: Arc<dyn Store>,
    plans: Mutex<Plans>,
    died: Notify,
    /// Where it says that every session lives; the store beneath says so where this is nothing.
    part: Option<Placement>,
    /// Where muted agents listen.
    silence: broadcast::Sender<Signal>,
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

impl Op {
    /// Whether drivers and those who answer write with it. Leases, cancellations and what workers do are not meant.
    fn is_write(self) -> bool {
        matches!(self, Self::Open | Self::Record | Self::Suspend | Self::Answer | Self::Finish)
    }
}

impl Faulty {
    /// A store that does what the one beneath it does.
    pub fn over(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self::new(inner))
    }

    /// A store whose hints are all lost.
    pub fn mute(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { is_muted: true, ..Self::new(inner) })
    }

    /// A store that says that every session lives in this part; where there is none, what the one beneath says.
    pub fn living_in(inner: Arc<dyn Store>, part: Option<Placement>) -> Arc<Self> {
        Arc::new(Self { part, ..Self::new(inner) })
    }

    /// A store whose process dies at the write after so many: it hears no more of that one, nor of any other.
    pub fn dying(inner: Arc<dyn Store>, writes: u64, when: When) -> Arc<Self> {
        let store = Self::new(inner);
        store.plans().die(writes, when);
        Arc::new(store)
    }

    fn new(inner: Arc<dyn Store>) -> Self {
        let silence = broadcast::channel(1).0;
        Self { inner, plans: Mutex::default(), died: Notify::new(), part: None, silence, is_muted: false }
    }

    /// Fails the next calls of this kind, this many of them more.
    pub fn fail(&self, op: Op, when: When, times: u64) {
        self.plans().fail(op, when, times);
    }

    /// Fails every call of every kind from now on.
    pub fn cut(&self) {
        for op in Op::ALL {
            self.fail(*op, When::Before, u64::MAX);
        }
    }

    /// Does what the store beneath does again.
    pub fn mend(&self) {
        self.plans().clear();
    }

    /// Holds every call of this kind until the gate is opened.
    pub fn hold(&self, op: Op, when: When) -> Gate {
        self.hold_after(0, op, when)
    }

    /// Lets so many calls of this kind pass, and holds every other one until the gate is opened.
    pub fn hold_after(&self, passing: u64, op: Op, when: When) -> Gate {
        self.plans().hold(passing, op, when)
    }

    /// Does something while the next call of this kind is on its way.
    pub fn during(&self, op: Op, meanwhile: impl FnOnce() + Send + 'static) {
        self.plans().during(op, Box::new(meanwhile));
    }

    /// Waits until the process [has died](Self::dying).
    pub async fn died(&self) {
        self.died.notified().await;
    }

    /// How many calls of this kind were made.
    pub fn calls(&self, op: Op) -> u64 {
        self.plans().calls.iter().map(|call| u64::from(*call == op)).sum()
    }

    /// Every call since the last time this was asked, in order.
    pub fn take_calls(&self) -> Vec<Op> {
        std::mem::take(&mut self.plans().calls)
    }

    fn plans(&self) -> MutexGuard<'_, Plans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn meet(&self, op: Op, when: When) -> Result<(), StoreError> {
        let fate = self.plans().meet(op, when);
        match fate {
            Fate::Pass => Ok(()),
            Fate::Fail => Err(StoreError::new(StoreErrorKind::Unavailable, op.name(), REASON)),
            Fate::Hold(gate) => {
                gate.pass().await;
                Ok(())
            }
        }
    }

    async fn around<T>(&self, op: Op, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let (death, meanwhile) = self.plans().call(op);
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        if death == Some(When::Before) {
            return self.die().await;
        }
        self.meet(op, When::Before).await?;
        let outcome = call.await?;
        if death == Some(When::After) {
            return self.die().await;
        }
        self.meet(op, When::After).await?;
        Ok(outcome)
    }

    async fn die<T>(&self) -> T {
        self.died.notify_one();
        pending().await
    }
}

macro_rules! store {
    ($($op:ident: $name:ident($($arg:ident: $type:ty),*) -> $outcome:ty;)*) => {
        /// The calls of a store.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Op {
            $(#[doc = concat!("[`Store::", stringify!($name), "`].")] $op,)*
        }

        impl Op {
            const ALL: &[Self] = &[$(Self::$op),*];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$op => stringify!($name),)*
                }
            }
        }

        #[async_trait]
        impl Store for Faulty {
            $(async fn $name(&self, $($arg: $type),*) -> Result<$outcome, StoreError> {
                self.around(Op::$op, self.inner.$name($($arg),*)).await
            })*

            fn placement(&self, session_id: &SessionId) -> Option<Placement> {
                self.part.or_else(|| self.inner.placement(session_id))
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
    ListRuns: list_runs(query: RunQuery) -> RunPage;
    History: history(run_id: &RunId) -> Option<RunHistory>;
    ListSessions: list_sessions(query: SessionQuery) -> SessionPage;
    Stats: stats() -> StoreStats;
    AppendCheckpoint: append_checkpoint(session_id: &SessionId, checkpoint: NewCheckpoint) -> CheckpointRecord;
    Head: head(session_id: &SessionId) -> Option<CheckpointRecord>;
    ListCheckpoints: list_checkpoints(session_id: &SessionId) -> Vec<CheckpointRecord>;
    Checkpoint: checkpoint(id: &CheckpointId) -> Option<CheckpointRecord>;
    Rollback: rollback(request: Rollback) -> RollbackOutcome;
    Fork: fork(request: Fork) -> ForkOutcome;
    Prune: prune(retention: &Retention, limit: u32) -> Pruned;
}
