//! The one writer of this process: it commits whatever transitions are waiting together.
//!
//! Transitions are jobs in a queue. The writer takes all that wait, up to [`GROUP`], begins one transaction, reads what
//! they want to see, lets them decide, writes the result and commits. Only then is each caller answered. While a commit
//! is on its way to the disk the next group gathers, so nobody waits for company. Where the last commits left everything
//! that a group wants to see, it decides first and makes one round trip. A transition that needs rows that it cannot name
//! beforehand has a transaction of its own.
//!
//! The writer has a thread of its own, so that the lock on the file is never held for longer because the caller's
//! runtime is busy.

use std::{sync::Arc, thread};

use kortyx_store::{Signal, StoreErrorKind};
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::{
    SqliteConfig,
    batch::{Batch, Known, Texts, Wants},
    client,
    error::Failure,
    job::{Job, Shared, Solo},
    work::{Committed, Work},
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
                let (texts, known) = (Texts::default(), Known::default());
                let writer = Writer { config, connection: Some(connection), texts, known, signals };
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
    known: Known,
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
        if let Some((batch, version)) = self.known.batch(&wants, self.config.clock.now())
            && let Some(result) = self.commit_known(batch, version, group).await
        {
            return result;
        }
        let result = async {
            let mut work = self.work().await?;
            work.begin(&wants).await?;
            decide(&mut work.batch, group);
            work.commit().await
        };
        let result = result.await;
        let committed = self.conclude(result).await?;
        self.known.observe(committed.version);
        self.known.keep(committed.leftover);
        Ok(())
    }

    /// Decides over what is known, in one round trip; `None` when it has to be read after all.
    async fn commit_known(
        &mut self,
        mut batch: Batch,
        version: i64,
        group: &mut [Box<dyn Shared>],
    ) -> Option<Result<(), Failure>> {
        decide(&mut batch, group);
        let result = match self.work().await {
            Ok(work) => work.commit_guarded(batch, version).await?,
            Err(failure) => Err(failure),
        };
        match self.conclude(result).await {
            Ok(committed) => {
                self.known.keep(committed.leftover);
                Some(Ok(()))
            }
            Err(failure) if failure.kind == StoreErrorKind::Unavailable => Some(Err(failure)),
            Err(_) => None,
        }
    }

    async fn serve_alone(&mut self, mut job: Box<dyn Solo>) {
        if job.is_abandoned() {
            return;
        }
        let result = async {
            let mut work = self.work().await?;
            if job.is_bare() {
                work.begin_bare().await?;
            } else {
                work.begin(&Wants::default()).await?;
            }
            if job.run(&mut work).await { work.commit().await.map(Some) } else { Ok(None) }
        };
        match result.await {
            Ok(None) => {
                self.roll_back().await;
                job.settle();
            }
            Ok(Some(committed)) => {
                if committed.has_written {
                    self.known.forget();
                }
                self.tell(committed.signals);
                job.settle();
            }
            Err(failure) => match self.conclude(Err(failure)).await {
                Ok(_) => job.settle(),
                Err(failure) => job.fail(&failure),
            },
        }
    }

    /// Tells the signals of what was committed, or undoes what was not.
    async fn conclude(&mut self, result: Result<Committed, Failure>) -> Result<Committed, Failure> {
        match result {
            Ok(mut committed) => {
                self.tell(std::mem::take(&mut committed.signals));
                Ok(committed)
            }
            Err(failure) => {
                tracing::debug!(?failure, "a commit failed");
                self.known.forget();
                self.roll_back().await;
                Err(failure)
            }
        }
    }

    fn tell(&self, signals: Vec<Signal>) {
        for signal in signals {
            // Nobody listens: whoever needs it polls.
            let _ = self.signals.send(signal);
        }
    }

    /// Opens the connection again if it broke.
    async fn work(&mut self) -> Result<Work<'_>, Failure> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => client::writer(&self.config).await?,
        };
        Ok(Work::new(self.connection.insert(connection), &mut self.texts, &self.config))
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
                // Data versions are the connection's own.
                self.known = Known::default();
            }
        }
    }
}

fn decide(batch: &mut Batch, group: &mut [Box<dyn Shared>]) {
    batch.is_shared = group.len() > 1;
    for job in group {
        job.apply(batch);
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
