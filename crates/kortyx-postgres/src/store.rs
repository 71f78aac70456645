//! The port over one server: every transition and every reading is one call.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage, ClaimRequest, Claimed,
    ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage, InterruptQuery, InterruptRecord,
    Lease, NewCheckpoint, NewInterrupt, NewResponse, OpenRun, Park, Pruned, Record, Recorded, Renewed, Retention,
    Rollback, RollbackOutcome, RunHistory, RunPage, RunQuery, RunRecord, Scope, SessionPage, SessionQuery, Signal,
    Signals, Store, StoreError, StoreErrorKind, StoreStats, Suspend, Suspended,
};
use tokio::{sync::broadcast, task::JoinHandle};

use crate::{
    PostgresConfig,
    client::Client,
    drafts,
    encoding::encode,
    listener,
    reply::Reply,
    request::{self, Draft, Request, bounded, millis},
    row::Malformed,
    setup,
};

/// How many hints a slow receiver may be behind before it misses some.
const SIGNALS: usize = 1024;

/// The most questions of a page.
const PAGE: u32 = 200;

/// Runs, questions and checkpoints in a Postgres database.
///
/// See the [crate](crate) for deployment, sizing, failures and backups.
///
/// ```no_run
/// # async fn example() -> Result<(), kortyx_store::StoreError> {
/// use kortyx_postgres::{PostgresConfig, PostgresStore};
/// use kortyx_store::Store;
///
/// let store = PostgresStore::open(PostgresConfig::parse("postgres://app@localhost/app")?).await?;
/// store.setup().await?;
/// assert!(store.now().await?.as_millis() > 0);
/// store.close().await;
/// # Ok(())
/// # }
/// ```
pub struct PostgresStore {
    client: Client,
    signals: broadcast::Sender<Signal>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl PostgresStore {
    /// Connects to the server. [`setup`](Store::setup) makes the tables.
    ///
    /// Fails as [`Unavailable`](StoreErrorKind::Unavailable) when the server cannot be reached, does not let the user in or
    /// has no connection to spare, also after trying again for as long as the configuration says.
    pub async fn open(config: PostgresConfig) -> Result<Self, StoreError> {
        let config = Arc::new(config);
        let (signals, _) = broadcast::channel(SIGNALS);
        let client = Client::new(Arc::clone(&config));
        client.ping().await.map_err(|failure| failure.told("open the database"))?;
        let listener = config.listen_url.clone().map(|url| listener::start(url, config, signals.clone()));
        Ok(Self { client, signals, listener: Mutex::new(listener) })
    }

    /// Asks the server for a sign of life, over a connection of the pool; for health checks.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.client.ping().await.map_err(|failure| failure.told("ping"))
    }

    /// Makes a transition and tells what it changed.
    pub(crate) async fn transit(
        &self,
        name: &'static str,
        operation: &'static str,
        draft: Draft,
    ) -> Result<Reply, StoreError> {
        let config = &self.client.config;
        let channel = config.notify.then(|| config.channel());
        let request = draft.with("shift", config.shift.millis()).with("channel", channel).transition(operation);
        let reply = self.reply(name, &request?).await?;
        if reply.head.work {
            let _ = self.signals.send(Signal::Work);
        }
        for run_id in &reply.head.attention {
            let _ = self.signals.send(Signal::Attention(run_id.clone()));
        }
        Ok(reply)
    }

    pub(crate) async fn read(
        &self,
        name: &'static str,
        operation: &'static str,
        draft: Draft,
    ) -> Result<Reply, StoreError> {
        let request = draft.with("shift", self.client.config.shift.millis()).reading(operation);
        self.reply(name, &request).await
    }

    async fn read_by_id(&self, name: &'static str, operation: &'static str, id: &str) -> Result<Reply, StoreError> {
        self.read(name, operation, Draft::new().with("id", id)).await
    }

    async fn reply(&self, name: &'static str, request: &Request) -> Result<Reply, StoreError> {
        let rows = self.client.call(request).await.map_err(|failure| failure.told(name))?;
        Reply::read(rows).map_err(|malformed| malformed.told(name))
    }

    /// Refuses a payload over the limit.
    pub(crate) fn check<'a>(
        &self,
        operation: &'static str,
        payloads: impl IntoIterator<Item = (&'static str, &'a Bytes)>,
    ) -> Result<(), StoreError> {
        let limit = self.client.config.payload_limit;
        for (what, payload) in payloads {
            if payload.len() > limit {
                let message = format!("{what} of {} bytes is over the limit of {limit}", payload.len());
                return Err(StoreError::new(StoreErrorKind::TooLarge, operation, message));
            }
        }
        Ok(())
    }
}

pub(crate) fn published(publish: &[NewInterrupt]) -> impl Iterator<Item = (&'static str, &Bytes)> {
    publish.iter().flat_map(|new| {
        let default = new.default.iter().map(|default| ("a default", default));
        default.chain([("a question", &new.question)])
    })
}

pub(crate) fn said(chunks: &[Bytes]) -> impl Iterator<Item = (&'static str, &Bytes)> {
    chunks.iter().map(|chunk| ("a chunk", chunk))
}

pub(crate) fn state(checkpoint: Option<&NewCheckpoint>) -> impl Iterator<Item = (&'static str, &Bytes)> {
    checkpoint.map(|checkpoint| ("a checkpoint's state", &checkpoint.state)).into_iter()
}

fn responded(response: Option<&NewResponse>) -> impl Iterator<Item = (&'static str, &Bytes)> {
    let checkpoint = response.and_then(|response| response.checkpoint.as_ref());
    response.map(|response| ("a response", &response.outcome)).into_iter().chain(state(checkpoint))
}

pub(crate) fn empty_scope(operation: &'static str, message: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::ScopeRequired, operation, message)
}

pub(crate) fn unexpected(kind: &str) -> Malformed {
    Malformed(format!("a reply says {kind:?}"))
}

#[async_trait]
impl Store for PostgresStore {
    async fn setup(&self) -> Result<(), StoreError> {
        setup::setup(&self.client).await.map_err(|failure| failure.told("setup"))
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_millis(self.read("now", "now", Draft::new()).await?.head.now))
    }

    async fn open(&self, request: OpenRun) -> Result<Lease, StoreError> {
        self.open_run(None, request).await
    }

    async fn record(&self, request: Record) -> Result<Recorded, StoreError> {
        const NAME: &str = "record";
        let entries = request.entries.iter().map(|entry| ("an entry", entry));
        let payloads = entries.chain(published(&request.publish)).chain(responded(request.response.as_ref()));
        self.check(NAME, payloads.chain(said(&request.chunks)))?;
        let mut reply = self.transit(NAME, "record", drafts::record(&request)).await?;
        let published = reply.published(&request.lease.run_id, request.publish);
        let published = published.map_err(|malformed| malformed.told(NAME))?;
        Ok(Recorded { answers: reply.answers, published, cancel_requested: reply.head.cancel_requested })
    }

    async fn suspend(&self, request: Suspend) -> Result<Suspended, StoreError> {
        self.suspend_run(None, request).await
    }

    async fn answer(&self, request: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        self.accept(None, request).await
    }

    async fn finish(&self, request: Finish) -> Result<Finished, StoreError> {
        const NAME: &str = "finish";
        let payloads = state(request.checkpoint.as_ref()).chain([("an outcome", &request.outcome)]);
        self.check(NAME, payloads.chain(said(&request.chunks)))?;
        let reply = self.transit(NAME, "finish", drafts::finish(&request)).await?;
        match reply.head.kind.as_str() {
            "done" => Ok(Finished::Done),
            "answered" => Ok(Finished::Answered(reply.answers)),
            other => Err(unexpected(other).told(NAME)),
        }
    }

    async fn park(&self, request: Park) -> Result<(), StoreError> {
        let draft = Draft::new().with_lease(&request.lease).with("reason", encode(&request.reason));
        self.transit("park", "park", draft).await.map(drop)
    }

    async fn renew(&self, lease: &Lease, ttl: Duration, answers_seen: u64) -> Result<Renewed, StoreError> {
        let draft = Draft::new().with_lease(lease).with("ttl", millis(ttl)).with("answers_seen", bounded(answers_seen));
        let reply = self.transit("renew", "renew", draft).await?;
        let lease = Lease { until: Timestamp::from_millis(reply.head.until), ..lease.clone() };
        Ok(Renewed { lease, answers: reply.answers, cancel_requested: reply.head.cancel_requested })
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.transit("release", "release", Draft::new().with_lease(lease)).await.map(drop)
    }

    async fn claim_orphans(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        self.claim(None, request).await
    }

    async fn expire_due(&self, request: ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        self.expire(None, request).await
    }

    async fn cancel(&self, request: CancelRequest) -> Result<Vec<CancelOutcome>, StoreError> {
        const NAME: &str = "cancel";
        if request.scope.as_ref().is_some_and(Scope::is_empty) {
            return Err(empty_scope(NAME, "cancelling by scope needs a session or a context"));
        }
        let reply = self.transit(NAME, "cancel", drafts::cancel(&request)).await?;
        reply.into_cancelled().map_err(|malformed| malformed.told(NAME))
    }

    async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.read("run", "run", Draft::run(run_id)).await?.runs.pop())
    }

    async fn chunks(&self, run_id: &RunId, after: u64, limit: u32) -> Result<Option<ChunkPage>, StoreError> {
        const NAME: &str = "chunks";
        let reply = self.read(NAME, "chunks", Draft::output(run_id, after, limit)).await?;
        reply.into_output(after).map_err(|malformed| malformed.told(NAME))
    }

    async fn interrupt(&self, request_id: &RequestId) -> Result<Option<InterruptRecord>, StoreError> {
        Ok(self.read_by_id("interrupt", "interrupt", request_id.as_str()).await?.questions.pop())
    }

    async fn list_interrupts(&self, query: InterruptQuery) -> Result<InterruptPage, StoreError> {
        const NAME: &str = "list interrupts";
        if query.scope.is_empty() && query.run_id.is_none() {
            return Err(empty_scope(NAME, "listing needs a session, a run or a context"));
        }
        let draft = request::page(&query, query.limit.clamp(1, PAGE)).ok_or_else(|| {
            StoreError::new(StoreErrorKind::InvalidRequest, NAME, "the cursor is none that a page gave")
        })?;
        let reply = self.read(NAME, "list", draft).await?;
        let next = reply.head.next.map(|(created_at, key)| format!("{created_at}.{key}"));
        Ok(InterruptPage { interrupts: reply.open, next })
    }

    async fn list_runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        const NAME: &str = "list runs";
        let draft = request::page_of_runs(&query, query.limit.clamp(1, PAGE)).ok_or_else(|| {
            StoreError::new(StoreErrorKind::InvalidRequest, NAME, "the cursor is none that a page gave")
        })?;
        let reply = self.read(NAME, "list_runs", draft).await?;
        Ok(RunPage { runs: reply.runs, next: reply.head.edge.map(request::cursor_of_runs) })
    }

    async fn history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        Ok(self.read_by_id("history", "history", run_id.as_str()).await?.into_history())
    }

    async fn list_sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        const NAME: &str = "list sessions";
        let limit = query.limit.clamp(1, PAGE);
        let draft = request::page_of_sessions(&query, limit).ok_or_else(|| {
            StoreError::new(StoreErrorKind::InvalidRequest, NAME, "the cursor is none that a page gave")
        })?;
        Ok(self.read(NAME, "list_sessions", draft).await?.into_sessions(limit))
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        const NAME: &str = "stats";
        self.read(NAME, NAME, Draft::new()).await?.into_stats().map_err(|malformed| malformed.told(NAME))
    }

    async fn append_checkpoint(
        &self,
        session_id: &SessionId,
        checkpoint: NewCheckpoint,
    ) -> Result<CheckpointRecord, StoreError> {
        const NAME: &str = "append checkpoint";
        self.check(NAME, state(Some(&checkpoint)))?;
        let draft = Draft::new().with("session_id", session_id.as_str()).with_checkpoint(Some(&checkpoint));
        let mut reply = self.transit(NAME, "append", draft).await?;
        reply.checkpoints.pop().ok_or_else(|| unexpected("nothing of the checkpoint").told(NAME))
    }

    async fn head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError> {
        Ok(self.read_by_id("head", "head", session_id.as_str()).await?.checkpoints.pop())
    }

    async fn list_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError> {
        Ok(self.read_by_id("list checkpoints", "checkpoints", session_id.as_str()).await?.checkpoints)
    }

    async fn checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRecord>, StoreError> {
        Ok(self.read_by_id("checkpoint", "checkpoint", id.as_str()).await?.checkpoints.pop())
    }

    async fn rollback(&self, request: Rollback) -> Result<RollbackOutcome, StoreError> {
        const NAME: &str = "rollback";
        let reply = self.transit(NAME, "rollback", drafts::rollback(&request)).await?;
        let mut checkpoints = reply.checkpoints.into_iter();
        match (reply.head.kind.as_str(), checkpoints.next(), reply.head.run_id, reply.head.request_id) {
            ("done", Some(head), ..) => Ok(RollbackOutcome::Done {
                head: Box::new(head),
                abandoned: checkpoints.collect(),
                superseded: reply.questions,
                interrupts: reply.open,
            }),
            ("unknown", ..) => Ok(RollbackOutcome::Unknown),
            ("driven", _, Some(run_id), _) => Ok(RollbackOutcome::Driven(run_id)),
            ("expired", _, _, Some(request_id)) => Ok(RollbackOutcome::Expired(request_id)),
            ("mismatched", ..) => Ok(RollbackOutcome::Mismatched),
            (other, ..) => Err(unexpected(other).told(NAME)),
        }
    }

    async fn fork(&self, request: Fork) -> Result<ForkOutcome, StoreError> {
        const NAME: &str = "fork";
        let mut reply = self.transit(NAME, "fork", drafts::fork(&request)).await?;
        match (reply.head.kind.as_str(), reply.checkpoints.pop(), reply.head.request_id) {
            ("done", Some(checkpoint), _) => {
                Ok(ForkOutcome::Done { checkpoint: Box::new(checkpoint), interrupts: reply.open })
            }
            ("unknown", ..) => Ok(ForkOutcome::Unknown),
            ("exists", ..) => Ok(ForkOutcome::SessionExists),
            ("expired", _, Some(request_id)) => Ok(ForkOutcome::Expired(request_id)),
            ("mismatched", ..) => Ok(ForkOutcome::Mismatched),
            (other, ..) => Err(unexpected(other).told(NAME)),
        }
    }

    async fn prune(&self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError> {
        let head = self.transit("prune", "prune", drafts::prune(retention, limit)).await?.head;
        Ok(Pruned { runs: head.runs, checkpoints: head.checkpoints, sessions: head.sessions, more: head.more })
    }

    fn signals(&self) -> Signals {
        self.signals.subscribe()
    }

    async fn close(&self) {
        if let Some(listener) = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take() {
            listener.abort();
        }
        self.client.close().await;
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take() {
            listener.abort();
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("config", &self.client.config).finish_non_exhaustive()
    }
}
