//! Database files to measure on.

use std::{path::PathBuf, sync::Arc};

use kortyx_sqlite::{SqliteConfig, SqliteStore};
use kortyx_store::Store;
use sqlx::{
    ConnectOptions as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tempfile::TempDir;

use crate::{error::Error, options::Options};

/// A file with the store's tables, in a directory that goes with it.
pub(crate) struct File {
    directory: TempDir,
}

impl File {
    /// A new file; the store has set it up and closed it.
    pub(crate) async fn new(options: &Options) -> Result<Self, Error> {
        let directory = match &options.directory {
            Some(path) => TempDir::new_in(path),
            None => TempDir::new(),
        };
        let file = Self { directory: directory.map_err(Error::io("create a directory for the database"))? };
        file.store().await?.close().await;
        Ok(file)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("bench.db")
    }

    /// Opens the store on it, with full durability.
    pub(crate) async fn store(&self) -> Result<Arc<dyn Store>, Error> {
        let store = SqliteStore::open(SqliteConfig::new(self.path())).await?;
        store.setup().await?;
        Ok(Arc::new(store))
    }

    /// Opens a connection on it as the store does, without the store.
    pub(crate) async fn connect(&self, synchronous: SqliteSynchronous) -> Result<SqliteConnection, Error> {
        let options = SqliteConnectOptions::new()
            .filename(self.path())
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(synchronous)
            .foreign_keys(false)
            .pragma("journal_size_limit", "67108864")
            .pragma("cache_size", "-16384")
            .statement_cache_capacity(128)
            .row_buffer_size(512)
            .disable_statement_logging();
        Ok(options.connect().await?)
    }
}
