//! The port over one file: writes go to the writer, reads to the readers.

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
    Rollback, RollbackOutcome, RunHistory, RunPage, RunQuery, RunRecord, SessionPage, SessionQuery, Signal, Signals,
    Store, StoreError, StoreErrorKind, StoreStats, Suspend, Suspended,
};
use sqlx::sqlite::SqliteRow;
use tokio::sync::broadcast;

use crate::{
    SqliteConfig,
    alone::{Alone, Prune, Setup},
    client::{self, values},
    error::Failure,
    job::{self, Job, Reply},
    read::{self, Listing, RunListing, SessionListing, Stored, stored_checkpoints},
    readers::Readers,
    row::Reading,
    transition::{Append, Release, Renew, Transition},
    writer::{self, Handle},
};

/// How many hints a slow receiver may be behind before it misses some.
const SIGNALS: usize = 1024;

/// Runs, questions and checkpoints in an SQLite file that several processes may share.
///
/// See the [crate](crate) for deployment, sizing, failures and backups.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kortyx_sqlite::{SqliteConfig, SqliteStore};
/// use kortyx_store::Store;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("kortyx.db");
/// let store = SqliteStore::open(SqliteConfig::new(path)).await?;
/// store.setup().await?;
/// assert!(store.now().await?.as_millis() > 0);
/// store.close().await;
/// # Ok(())
/// # }
/// ```
pub struct SqliteStore {
    config: Arc<SqliteConfig>,
    /// `None` once closed.
    writer: Mutex<Option<Handle>>,
    ended: tokio::sync::watch::Receiver<()>,
    readers: Readers,
    signals: broadcast::Sender<Signal>,
}

impl SqliteStore {
    /// Opens the file, and creates it with its directories when it does not exist. [`setup`](Store::setup) makes the
    /// tables.
    ///
    /// Fails as [`Unavailable`](StoreErrorKind::Unavailable) when the file cannot be created or opened, and as
    /// [`Corrupt`](StoreErrorKind::Corrupt) when it is no database.
    pub async fn open(config: SqliteConfig) -> Result<Self, StoreError> {
        let config = Arc::new(config);
        let (signals, _) = broadcast::channel(SIGNALS);
        let told = |failure: Failure| failure.told("open the database");
        let writer = writer::start(Arc::clone(&config), signals.clone()).await.map_err(told)?;
        let readers = Readers::new(Arc::clone(&config));
        Ok(Self { config, ended: writer.ended.clone(), writer: Mutex::new(Some(writer)), readers, signals })
    }

    /// Hands a transition to the writer, to share a commit.
    async fn write<T: Transition>(&self, request: T) -> Result<T::Outcome, StoreError> {
        let (job, reply) = job::shared(request);
        self.submit(T::NAME, job, reply).await
    }

    /// Hands a transition to the writer, for a commit of its own.
    async fn write_alone<T: Alone>(&self, request: T) -> Result<T::Outcome, StoreError> {
        let (job, reply) = job::alone(request);
        self.submit(T::NAME, job, reply).await
    }

    async fn submit<T>(&self, operation: &'static str, job: Job, reply: Reply<T>) -> Result<T, StoreError> {
        let queue = {
            let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            writer.as_ref().map(|writer| writer.queue.clone()).ok_or_else(|| closed(operation))?
        };
        queue.send(job).await.map_err(|_| closed(operation))?;
        drop(queue);
        reply.await.unwrap_or_else(|_| Err(closed(operation)))
    }

    /// Reads with one statement.
    async fn read<T>(
        &self,
        operation: &'static str,
        sql: &'static str,
        id: &str,
        decode: impl FnOnce(&[SqliteRow]) -> Reading<T>,
    ) -> Result<T, StoreError> {
        let rows = self.readers.read(async |connection| client::fetch(connection, sql, values![id]).await).await;
        let rows = rows.map_err(|failure| failure.told(operation))?;
        decode(&rows).map_err(|malformed| malformed.told(operation))
    }

    /// Refuses a payload over the limit.
    fn check<'a>(
        &self,
        operation: &'static str,
        payloads: impl IntoIterator<Item = (&'static str, &'a Bytes)>,
    ) -> Result<(), StoreError> {
        let limit = self.config.payload_limit;
        for (what, payload) in payloads {
            if payload.len() > limit {
                let message = format!("{what} of {} bytes is over the limit of {limit}", payload.len());
                return Err(StoreError::new(StoreErrorKind::TooLarge, operation, message));
            }
        }
        Ok(())
    }
}

fn closed(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Closed, operation, "the store was closed")
}

fn published(publish: &[NewInterrupt]) -> impl Iterator<Item = (&'static str, &Bytes)> {
    publish.iter().flat_map(|new| {
        let default = new.default.iter().map(|default| ("a default", default));
        default.chain([("a question", &new.question)])
    })
}

fn chunks(chunks: &[Bytes]) -> impl Iterator<Item = (&'static str, &Bytes)> {
    chunks.iter().map(|chunk| ("a chunk", chunk))
}

fn state(checkpoint: Option<&NewCheckpoint>) -> impl Iterator<Item = (&'static str, &Bytes)> {
    checkpoint.map(|checkpoint| ("a checkpoint's state", &checkpoint.state)).into_iter()
}

fn responded(response: Option<&NewResponse>) -> impl Iterator<Item = (&'static str, &Bytes)> {
    let checkpoint = response.and_then(|response| response.checkpoint.as_ref());
    response.map(|response| ("a response", &response.outcome)).into_iter().chain(state(checkpoint))
}

fn records(stored: Vec<Stored>) -> Vec<CheckpointRecord> {
    stored.into_iter().map(|stored| stored.record).collect()
}

#[async_trait]
impl Store for SqliteStore {
    async fn setup(&self) -> Result<(), StoreError> {
        self.write_alone(Setup).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        if self.readers.is_closed() {
            return Err(closed("now"));
        }
        Ok(self.config.clock.now())
    }

    async fn open(&self, request: OpenRun) -> Result<Lease, StoreError> {
        self.check(OpenRun::NAME, chunks(&request.chunks).chain([("a snapshot", &request.snapshot)]))?;
        self.write(request).await
    }

    async fn record(&self, request: Record) -> Result<Recorded, StoreError> {
        let entries = request.entries.iter().map(|entry| ("an entry", entry));
        let payloads = entries.chain(published(&request.publish)).chain(responded(request.response.as_ref()));
        self.check(Record::NAME, payloads.chain(chunks(&request.chunks)))?;
        self.write(request).await
    }

    async fn suspend(&self, request: Suspend) -> Result<Suspended, StoreError> {
        let payloads = published(&request.publish).chain(state(request.checkpoint.as_ref()));
        self.check(Suspend::NAME, payloads.chain([("a snapshot", &request.snapshot)]).chain(chunks(&request.chunks)))?;
        self.write(request).await
    }

    async fn answer(&self, request: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        self.check(AnswerRequest::NAME, request.answers.iter().map(|answer| ("an answer", &answer.answer)))?;
        self.write(request).await
    }

    async fn finish(&self, request: Finish) -> Result<Finished, StoreError> {
        let payloads = state(request.checkpoint.as_ref()).chain([("an outcome", &request.outcome)]);
        self.check(Finish::NAME, payloads.chain(chunks(&request.chunks)))?;
        self.write(request).await
    }

    async fn park(&self, request: Park) -> Result<(), StoreError> {
        self.write(request).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration, answers_seen: u64) -> Result<Renewed, StoreError> {
        self.write(Renew { lease: lease.clone(), ttl, answers_seen }).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.write(Release { lease: lease.clone() }).await
    }

    async fn claim_orphans(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        self.write_alone(request).await
    }

    async fn expire_due(&self, request: ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        self.write_alone(request).await
    }

    async fn cancel(&self, request: CancelRequest) -> Result<Vec<CancelOutcome>, StoreError> {
        self.write_alone(request).await
    }

    async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.read("run", read::RUN, run_id.as_str(), read::run).await
    }

    async fn chunks(&self, run_id: &RunId, after: u64, limit: u32) -> Result<Option<ChunkPage>, StoreError> {
        const OPERATION: &str = "chunks";
        let from = i64::try_from(after).unwrap_or(i64::MAX);
        let values = values![run_id.as_str(), from, i64::from(limit)];
        let rows = self.readers.read(async |connection| client::fetch(connection, read::CHUNKS, values).await).await;
        let rows = rows.map_err(|failure| failure.told(OPERATION))?;
        read::chunks(&rows, after).map_err(|malformed| malformed.told(OPERATION))
    }

    async fn interrupt(&self, request_id: &RequestId) -> Result<Option<InterruptRecord>, StoreError> {
        let now = self.config.clock.now();
        self.read("interrupt", read::INTERRUPT, request_id.as_str(), |rows| read::interrupt(rows, now)).await
    }

    async fn list_interrupts(&self, query: InterruptQuery) -> Result<InterruptPage, StoreError> {
        let listing = Listing::new(query, self.config.clock.now())?;
        let rows = self.readers.read(async |connection| read::page(connection, &listing).await).await;
        let rows = rows.map_err(|failure| failure.told(Listing::OPERATION))?;
        listing.read(&rows).map_err(|malformed| malformed.told(Listing::OPERATION))
    }

    async fn list_runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        let listing = RunListing::new(query)?;
        let rows = self.readers.read(async |connection| listing.fetch(connection).await).await;
        let rows = rows.map_err(|failure| failure.told(RunListing::OPERATION))?;
        listing.read(&rows).map_err(|malformed| malformed.told(RunListing::OPERATION))
    }

    async fn history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        const OPERATION: &str = "history";
        let now = self.config.clock.now();
        let rows = self.readers.read(async |connection| read::fetch_history(connection, run_id).await).await;
        let rows = rows.map_err(|failure| failure.told(OPERATION))?;
        read::history(&rows, now).map_err(|malformed| malformed.told(OPERATION))
    }

    async fn list_sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        const OPERATION: &str = "list sessions";
        let listing = SessionListing::new(&query)?;
        let rows = self.readers.read(async |connection| listing.fetch(connection).await).await;
        let rows = rows.map_err(|failure| failure.told(OPERATION))?;
        listing.read(&rows).map_err(|malformed| malformed.told(OPERATION))
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        const OPERATION: &str = "stats";
        let values = values![self.config.clock.now()];
        let rows = self.readers.read(async |connection| client::fetch(connection, read::STATS, values).await).await;
        let rows = rows.map_err(|failure| failure.told(OPERATION))?;
        read::stats(&rows).map_err(|malformed| malformed.told(OPERATION))
    }

    async fn append_checkpoint(
        &self,
        session_id: &SessionId,
        checkpoint: NewCheckpoint,
    ) -> Result<CheckpointRecord, StoreError> {
        self.check(Append::NAME, state(Some(&checkpoint)))?;
        self.write(Append { session_id: session_id.clone(), checkpoint }).await
    }

    async fn head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError> {
        let found = self.read("head", read::HEAD, session_id.as_str(), stored_checkpoints).await?;
        Ok(records(found).pop())
    }

    async fn list_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError> {
        self.read("list checkpoints", read::ALL, session_id.as_str(), stored_checkpoints).await.map(records)
    }

    async fn checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRecord>, StoreError> {
        let found = self.read("checkpoint", read::BY_ID, id.as_str(), stored_checkpoints).await?;
        Ok(records(found).pop())
    }

    async fn rollback(&self, request: Rollback) -> Result<RollbackOutcome, StoreError> {
        self.write_alone(request).await
    }

    async fn fork(&self, request: Fork) -> Result<ForkOutcome, StoreError> {
        self.write_alone(request).await
    }

    async fn prune(&self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError> {
        self.write_alone(Prune { retention: retention.clone(), limit }).await
    }

    fn signals(&self) -> Signals {
        self.signals.subscribe()
    }

    async fn close(&self) {
        drop(self.writer.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut ended = self.ended.clone();
        // Nothing is ever sent: this ends when the writer is gone, after everything that waited.
        while ended.changed().await.is_ok() {}
        self.readers.close().await;
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("config", &self.config).finish_non_exhaustive()
    }
}
