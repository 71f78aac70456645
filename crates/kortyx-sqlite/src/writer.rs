//! The one writer of this process: it commits whatever transitions are waiting together.
//!
//! Transitions are jobs in a queue. The writer takes all that wait, up to [`GROUP`], begins one transaction, loads what
//! they want to see, lets them decide, writes the result and commits. Only then is each caller answered. While a commit
//! is on its way to the disk the next group gathers, so nobody waits for company. A transition that needs rows that it
//! cannot name beforehand has a transaction of its own.
//!
//! The writer has a thread of its own, so that the lock on the file is never held for longer because the caller's
//! runtime is busy.

use std::{sync::Arc, thread, time::Duration};

use kortyx_store::{Signal, StoreError, StoreErrorKind};
use sqlx::{Connection, SqliteConnection, sqlite::SqliteRow};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::{
    SqliteConfig,
    batch::{Batch, Texts, Wants},
    client::{self, Value},
    error::Failure,
    job::{Job, Shared, Solo},
    row::Malformed,
};

/// The most transitions of one commit.
const GROUP: usize = 128;

/// The most transitions that wait; further callers wait to be let in.
const QUEUE: usize = 1024;

/// What a store keeps of its writer.
#[derive(Debug)]
pub(crate) struct Handle {
    /// Where jobs go. Dropped, the writer finishes what waits and ends.
    pub(crate) queue: mpsc::Sender<Job>,
    /// Closed when the writer has ended.
    pub(crate) ended: watch::Receiver<()>,
}

/// Starts a writer; returns once its connection is open.
pub(crate) async fn start(config: Arc<SqliteConfig>, signals: broadcast::Sender<Signal>) -> Result<Handle, Failure> {
    let (queue, jobs) = mpsc::channel(QUEUE);
    let (running, ended) = watch::channel(());
    let (opened, opening) = oneshot::channel();
    let body = move || {
        let _running = running;
        let runtime = match tokio::runtime::Builder::new_current_thread().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(opened.send(Err(no_thread(&error)))),
        };
        runtime.block_on(async move {
            let connection = match client::writer(&config).await {
                Ok(connection) => connection,
                Err(failure) => return drop(opened.send(Err(failure))),
            };
            if opened.send(Ok(())).is_ok() {
                let writer = Writer { config, connection: Some(connection), texts: Texts::default(), signals };
                writer.serve(jobs).await;
            }
        });
    };
    thread::Builder::new().name("kortyx-sqlite-writer".to_owned()).spawn(body).map_err(|error| no_thread(&error))?;
    opening.await.unwrap_or_else(|_| Err(Failure::new(StoreErrorKind::Backend, "the writer ended")))?;
    Ok(Handle { queue, ended })
}

fn no_thread(error: &std::io::Error) -> Failure {
    Failure::new(StoreErrorKind::Unavailable, format!("the writer's thread cannot start: {error}"))
}

struct Writer {
    config: Arc<SqliteConfig>,
    /// `None` after it broke, until the next job.
    connection: Option<SqliteConnection>,
    texts: Texts,
    signals: broadcast::Sender<Signal>,
}

impl Writer {
    async fn serve(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut jobs = Vec::with_capacity(GROUP);
        while queue.recv_many(&mut jobs, GROUP).await > 0 {
            let mut group = Vec::with_capacity(jobs.len());
            for job in jobs.drain(..) {
                match job {
                    Job::Shared(job) if job.is_abandoned() => {}
                    Job::Shared(job) => group.push(job),
                    Job::Alone(job) => {
                        self.serve_group(std::mem::take(&mut group)).await;
                        self.serve_alone(job).await;
                    }
                }
            }
            self.serve_group(group).await;
        }
        if let Some(connection) = self.connection {
            // Nothing is open; the last connection of all also moves the log into the file.
            connection.close().await.unwrap_or_else(|error| tracing::warn!(%error, "closing the database failed"));
        }
    }

    async fn serve_group(&mut self, mut group: Vec<Box<dyn Shared>>) {
        if group.is_empty() {
            return;
        }
        let result = self.commit_group(&mut group).await;
        if group.len() == 1 {
            return settle(group, &result);
        }
        let (again, settled): (Vec<_>, Vec<_>) = group.into_iter().partition(|job| match &result {
            Ok(()) => job.is_undecided(),
            Err(failure) => failure.is_of_one(),
        });
        settle(settled, &result);
        for job in again {
            let mut one = vec![job];
            let result = self.commit_group(&mut one).await;
            settle(one, &result);
        }
    }

    /// Decides over a group in one transaction; after an error nothing of it happened.
    async fn commit_group(&mut self, group: &mut [Box<dyn Shared>]) -> Result<(), Failure> {
        let mut wants = Wants::default();
        for job in &*group {
            job.wants(&mut wants);
        }
        let result = async {
            let mut work = self.begin(&wants).await?;
            work.batch.is_shared = group.len() > 1;
            for job in group {
                job.apply(&mut work.batch);
            }
            work.commit().await
        };
        let result = result.await;
        self.conclude(result).await
    }

    async fn serve_alone(&mut self, mut job: Box<dyn Solo>) {
        if job.is_abandoned() {
            return;
        }
        let result = async {
            let mut work = if job.is_bare() { self.begin_bare().await? } else { self.begin(&Wants::default()).await? };
            if job.run(&mut work).await { work.commit().await.map(Some) } else { Ok(None) }
        };
        let result = match result.await {
            Ok(Some(signals)) => self.conclude(Ok(signals)).await,
            Ok(None) => {
                self.roll_back().await;
                Ok(())
            }
            Err(failure) => self.conclude(Err(failure)).await,
        };
        match result {
            Ok(()) => job.settle(),
            Err(failure) => job.fail(&failure),
        }
    }

    /// Tells the signals of what was committed, or undoes what was not.
    async fn conclude(&mut self, result: Result<Vec<Signal>, Failure>) -> Result<(), Failure> {
        match result {
            Ok(signals) => {
                for signal in signals {
                    // Nobody listens: whoever needs it polls.
                    let _ = self.signals.send(signal);
                }
                Ok(())
            }
            Err(failure) => {
                tracing::debug!(?failure, "a commit failed");
                self.roll_back().await;
                Err(failure)
            }
        }
    }

    /// Begins a transaction and reads what is wanted.
    async fn begin(&mut self, wants: &Wants) -> Result<Work<'_>, Failure> {
        let mut work = self.work("").await?;
        // Waiting for the lock takes time, by which payloads may be needed.
        let patience = work.config.busy_timeout.saturating_add(Duration::from_secs(1));
        let live_until = work.batch.now.saturating_add(patience);
        let corrupt = |malformed: Malformed| Failure::new(StoreErrorKind::Corrupt, malformed.0);
        let rows = wants.read(work.connection, work.texts, true, live_until).await;
        let rows = rows.map_err(|error| work.failure(error))?;
        work.batch.now = work.config.clock.now();
        work.batch.load(&rows).map_err(corrupt)?;
        let rows = wants.read_more(work.connection, &work.batch).await.map_err(|error| work.failure(error))?;
        work.batch.load(&rows).map_err(corrupt)?;
        Ok(work)
    }

    /// Begins a transaction that may find no tables.
    async fn begin_bare(&mut self) -> Result<Work<'_>, Failure> {
        let work = self.work("").await?;
        let begun = client::fetch(work.connection, "BEGIN IMMEDIATE", Vec::new()).await;
        begun.map_err(|error| work.failure(error))?;
        Ok(work)
    }

    async fn work(&mut self, operation: &'static str) -> Result<Work<'_>, Failure> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => client::writer(&self.config).await?,
        };
        Ok(Work {
            connection: self.connection.insert(connection),
            texts: &mut self.texts,
            config: &self.config,
            batch: Batch::new(self.config.clock.now(), operation),
        })
    }

    /// Undoes an open transaction. A connection where that fails is given up, and a new one opened for the next job.
    async fn roll_back(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        match client::fetch(connection, "ROLLBACK", Vec::new()).await {
            Ok(_) => {}
            // It could not begin, or SQLite has undone it by itself.
            Err(sqlx::Error::Database(error)) if error.message().contains("no transaction is active") => {}
            Err(error) => {
                tracing::warn!(%error, "the connection that writes is opened again");
                self.connection = None;
            }
        }
    }
}

fn settle(jobs: Vec<Box<dyn Shared>>, result: &Result<(), Failure>) {
    for job in jobs {
        match result {
            Ok(()) => job.settle(),
            Err(failure) => job.fail(failure),
        }
    }
}

/// A transaction that has begun, with the batch that it will write.
pub(crate) struct Work<'a> {
    connection: &'a mut SqliteConnection,
    texts: &'a mut Texts,
    config: &'a SqliteConfig,
    pub(crate) batch: Batch,
}

impl Work<'_> {
    /// Runs statements in the transaction.
    pub(crate) async fn fetch(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<SqliteRow>, StoreError> {
        let rows = client::fetch(self.connection, sql, values).await;
        rows.map_err(|error| self.failure(error).told(self.batch.operation))
    }

    /// Runs statements and takes their rows into the batch.
    pub(crate) async fn load(&mut self, sql: &'static str, values: Vec<Value>) -> Result<(), StoreError> {
        let rows = self.fetch(sql, values).await?;
        self.batch.load(&rows).map_err(|malformed| malformed.told(self.batch.operation))
    }

    /// Reads what is wanted into the batch.
    pub(crate) async fn load_wants(&mut self, wants: &Wants) -> Result<(), StoreError> {
        let rows = wants.read(self.connection, self.texts, false, self.batch.now).await;
        let rows = rows.map_err(|error| self.failure(error).told(self.batch.operation))?;
        self.batch.load(&rows).map_err(|malformed| malformed.told(self.batch.operation))
    }

    fn failure(&self, error: sqlx::Error) -> Failure {
        Failure::from_driver(error, self.config.busy_timeout)
    }

    async fn commit(self) -> Result<Vec<Signal>, Failure> {
        let Self { connection, texts, config, mut batch } = self;
        let signals = std::mem::take(&mut batch.signals);
        let committed = batch.into_plan().commit(connection, texts).await;
        committed.map_err(|error| Failure::from_driver(error, config.busy_timeout))?;
        Ok(signals)
    }
}
