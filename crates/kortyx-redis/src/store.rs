//! The store: connections, what a process remembers, and the port's methods.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
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
use tokio::sync::broadcast;

use crate::{
    client::Client,
    config::RedisConfig,
    hints::Hints,
    locate::Memory,
    names::{Names, hex, placement},
    repair::Progress,
    reply::Reply,
};

/// How many hints wait for a receiver that lags; older ones are lost to it.
const SIGNALS: usize = 256;

/// The store in Redis or Valkey.
///
/// Every transition is one script on one session's keys. Any number of processes may share a server; so may stores under
/// different prefixes.
///
/// ```no_run
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use kortyx_redis::{RedisConfig, RedisStore};
/// use kortyx_store::Store;
///
/// let store = RedisStore::connect(RedisConfig::parse("redis://localhost:6379")?).await?;
/// store.setup().await?;
/// store.ping().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RedisStore {
    client: Arc<Client>,
    pub(crate) hints: Hints,
    is_closed: AtomicBool,
    signals: broadcast::Sender<Signal>,
    pub(crate) config: RedisConfig,
    pub(crate) names: Names,
    pub(crate) memory: Memory,
    pub(crate) progress: Mutex<Progress>,
    /// What this process's transitions are named by, with the number of the last one.
    origin: String,
    last_op: AtomicU64,
}

impl RedisStore {
    /// Connects. Fails when the server cannot be reached within [`patience`](RedisConfig::patience), or refuses the user.
    pub async fn connect(config: RedisConfig) -> Result<Self, StoreError> {
        let names = Names::new(config.prefix.clone());
        let signals = broadcast::Sender::new(SIGNALS);
        let client = Arc::new(Client::connect(&config, names.signals(), signals.clone()).await?);
        let mut origin = [0; 12];
        getrandom::fill(&mut origin).map_err(|error| {
            StoreError::new(StoreErrorKind::Backend, "connect", "the system gave no random bytes").with_source(error)
        })?;
        Ok(Self {
            hints: Hints::over(client.clone(), &config),
            client,
            is_closed: AtomicBool::new(false),
            signals,
            config,
            names,
            memory: Memory::default(),
            progress: Mutex::default(),
            origin: hex(&origin),
            last_op: AtomicU64::new(0),
        })
    }

    /// Asks whether the server answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let client = self.client("ping")?;
        for node in client.nodes() {
            client.on_node("ping", &node, "PING", Vec::new()).await?;
        }
        Ok(())
    }

    pub(crate) fn client(&self, operation: &'static str) -> Result<&Client, StoreError> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(StoreError::new(StoreErrorKind::Closed, operation, "the store was closed"));
        }
        Ok(&self.client)
    }

    /// A name for a transition that no other has, and that is no part of another's.
    pub(crate) fn next_op(&self) -> String {
        format!("{}.{:x};", self.origin, self.last_op.fetch_add(1, Ordering::Relaxed))
    }

    async fn time(&self) -> Result<Timestamp, StoreError> {
        const OPERATION: &str = "now";
        let client = self.client(OPERATION)?;
        let node = client.nodes().into_iter().next();
        let node = node.ok_or_else(|| StoreError::new(StoreErrorKind::Unavailable, OPERATION, "no server is known"))?;
        let reply = client.on_node(OPERATION, &node, "TIME", Vec::new()).await?;
        let parts = reply.list().map_err(|damage| damage.during(OPERATION))?;
        let numbers: Vec<i64> = parts.into_iter().filter_map(|part: Reply| part.int().ok()).collect();
        let [seconds, micros] = numbers.as_slice() else {
            return Err(StoreError::new(StoreErrorKind::Corrupt, OPERATION, "the server's time does not read back"));
        };
        let offset = self.config.clock_offset.load(Ordering::Relaxed);
        Ok(Timestamp::from_millis(seconds.saturating_mul(1_000) + micros / 1_000 + offset))
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("config", &self.config).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn setup(&self) -> Result<(), StoreError> {
        self.set_up().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.time().await
    }

    async fn open(&self, request: OpenRun) -> Result<Lease, StoreError> {
        self.open_run(request).await
    }

    async fn record(&self, request: Record) -> Result<Recorded, StoreError> {
        self.record_entries(request).await
    }

    async fn suspend(&self, request: Suspend) -> Result<Suspended, StoreError> {
        self.suspend_run(request).await
    }

    async fn answer(&self, request: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        self.answer_questions(request).await
    }

    async fn finish(&self, request: Finish) -> Result<Finished, StoreError> {
        self.finish_run(request).await
    }

    async fn park(&self, request: Park) -> Result<(), StoreError> {
        self.park_run(request).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration, answers_seen: u64) -> Result<Renewed, StoreError> {
        self.renew_lease(lease, ttl, answers_seen).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.release_lease(lease).await
    }

    async fn claim_orphans(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        self.claim(request).await
    }

    async fn expire_due(&self, request: ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        self.expire(request).await
    }

    async fn cancel(&self, request: CancelRequest) -> Result<Vec<CancelOutcome>, StoreError> {
        self.cancel_runs(request).await
    }

    async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.read_run(run_id).await
    }

    async fn chunks(&self, run_id: &RunId, after: u64, limit: u32) -> Result<Option<ChunkPage>, StoreError> {
        self.read_chunks(run_id, after, limit).await
    }

    async fn interrupt(&self, request_id: &RequestId) -> Result<Option<InterruptRecord>, StoreError> {
        self.read_question(request_id).await
    }

    async fn list_interrupts(&self, query: InterruptQuery) -> Result<InterruptPage, StoreError> {
        self.page(query).await
    }

    async fn list_runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        self.page_of_runs(query).await
    }

    async fn history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        self.read_history(run_id).await
    }

    async fn list_sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        self.page_of_sessions(query).await
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        self.count_all().await
    }

    async fn append_checkpoint(
        &self,
        session_id: &SessionId,
        checkpoint: NewCheckpoint,
    ) -> Result<CheckpointRecord, StoreError> {
        self.append(session_id, checkpoint).await
    }

    async fn head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError> {
        self.read_head(session_id).await
    }

    async fn list_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError> {
        self.read_checkpoints(session_id).await
    }

    async fn checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRecord>, StoreError> {
        self.read_checkpoint(id).await
    }

    async fn rollback(&self, request: Rollback) -> Result<RollbackOutcome, StoreError> {
        self.roll_back(request).await
    }

    async fn fork(&self, request: Fork) -> Result<ForkOutcome, StoreError> {
        self.start_fork(request).await
    }

    async fn prune(&self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError> {
        self.prune_batch(retention, limit).await
    }

    /// On one server every id is found as fast.
    fn placement(&self, session_id: &SessionId) -> Option<Placement> {
        if self.config.by_slot { placement(session_id) } else { None }
    }

    fn signals(&self) -> Signals {
        self.signals.subscribe()
    }

    async fn close(&self) {
        if !self.is_closed.swap(true, Ordering::Relaxed) {
            self.hints.drained().await;
            self.client.close().await;
        }
    }
}
