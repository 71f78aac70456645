//! A transaction on the connection that writes.

use std::time::Duration;

use kortyx_store::{Signal, StoreError, StoreErrorKind};
use sqlx::{SqliteConnection, sqlite::SqliteRow};

use crate::{
    SqliteConfig,
    batch::{Batch, Leftover, Texts, Wants},
    client::{self, Value},
    error::Failure,
    row::Malformed,
};

/// A transaction, with the batch that it will write.
pub(crate) struct Work<'a> {
    connection: &'a mut SqliteConnection,
    texts: &'a mut Texts,
    config: &'a SqliteConfig,
    pub(crate) batch: Batch,
    has_written: bool,
}

/// What a commit leaves behind.
#[derive(Debug)]
pub(crate) struct Committed {
    /// What to tell.
    pub(crate) signals: Vec<Signal>,
    /// The data version that its transaction began with.
    pub(crate) version: i64,
    /// What is known now.
    pub(crate) leftover: Leftover,
    /// Whether it changed anything.
    pub(crate) has_written: bool,
}

impl<'a> Work<'a> {
    pub(crate) fn new(connection: &'a mut SqliteConnection, texts: &'a mut Texts, config: &'a SqliteConfig) -> Self {
        let batch = Batch::new(config.clock.now(), "");
        Self { connection, texts, config, batch, has_written: false }
    }

    /// Begins, and reads what is wanted.
    pub(crate) async fn begin(&mut self, wants: &Wants) -> Result<(), Failure> {
        // Waiting for the lock takes time, by which payloads may be needed.
        let patience = self.config.busy_timeout.saturating_add(Duration::from_secs(1));
        let live_until = self.batch.now.saturating_add(patience);
        let corrupt = |malformed: Malformed| Failure::new(StoreErrorKind::Corrupt, malformed.0);
        let rows = wants.read(self.connection, self.texts, true, live_until).await;
        let rows = rows.map_err(|error| self.failure(error))?;
        self.batch.now = self.config.clock.now();
        self.batch.load(&rows).map_err(corrupt)?;
        let rows = wants.read_more(self.connection, &self.batch).await.map_err(|error| self.failure(error))?;
        self.batch.load(&rows).map_err(corrupt)?;
        self.batch.loaded();
        Ok(())
    }

    /// Begins where there may be no tables.
    pub(crate) async fn begin_bare(&mut self) -> Result<(), Failure> {
        self.has_written = true;
        let begun = client::fetch(self.connection, "BEGIN IMMEDIATE", Vec::new()).await;
        begun.map(drop).map_err(|error| self.failure(error))
    }

    /// Runs statements that read.
    pub(crate) async fn fetch(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<SqliteRow>, StoreError> {
        let rows = client::fetch(self.connection, sql, values).await;
        rows.map_err(|error| self.failure(error).told(self.batch.operation))
    }

    /// Runs statements that write.
    pub(crate) async fn execute(&mut self, sql: &'static str, values: Vec<Value>) -> Result<(), StoreError> {
        self.has_written = true;
        self.fetch(sql, values).await.map(drop)
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

    /// Writes the batch and commits.
    pub(crate) async fn commit(self) -> Result<Committed, Failure> {
        let Self { connection, texts, config, mut batch, mut has_written } = self;
        let (signals, version) = (std::mem::take(&mut batch.signals), batch.version);
        let (plan, leftover) = batch.into_plan();
        has_written |= !plan.is_empty();
        let committed = plan.commit(connection, texts).await;
        committed.map_err(|error| Failure::from_driver(error, config.busy_timeout))?;
        Ok(Committed { signals, version, leftover, has_written })
    }

    /// Writes a batch in a transaction that begins now and fails unless the data version is this one; `None` when there is
    /// nothing to write, so that nothing would show whether the batch holds.
    pub(crate) async fn commit_guarded(self, mut batch: Batch, version: i64) -> Option<Result<Committed, Failure>> {
        let signals = std::mem::take(&mut batch.signals);
        let (mut plan, leftover) = batch.into_plan();
        if plan.is_empty() {
            return None;
        }
        plan.guard(version);
        let committed = plan.commit(self.connection, self.texts).await;
        let committed = committed.map(|()| Committed { signals, version, leftover, has_written: true });
        Some(committed.map_err(|error| Failure::from_driver(error, self.config.busy_timeout)))
    }

    fn failure(&self, error: sqlx::Error) -> Failure {
        Failure::from_driver(error, self.config.busy_timeout)
    }
}
