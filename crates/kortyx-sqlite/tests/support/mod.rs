//! What the tests of this crate share: a file, stores over it, and short ways to a run.

#![expect(clippy::unwrap_used, reason = "what fails in a test panics")]

use std::path::{Path, PathBuf};

use kortyx_sqlite::{SqliteConfig, SqliteStore};
use kortyx_store::{Claimed, InterruptRecord, Store, conformance::requests};
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};

/// A place for a database that goes with the test.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("kortyx.db")
    }

    pub(crate) fn config(&self) -> SqliteConfig {
        SqliteConfig::new(self.path())
    }

    /// A store over the file, set up.
    pub(crate) async fn store(&self) -> SqliteStore {
        let store = SqliteStore::open(self.config()).await.unwrap();
        store.setup().await.unwrap();
        store
    }

    /// Runs a statement beside the store.
    pub(crate) async fn execute(&self, sql: &str) {
        let mut connection = connect(&self.path()).await;
        sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    }
}

/// A connection beside the store's, to see and to spoil what it keeps.
pub(crate) async fn connect(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

/// Answers a question and is handed its run.
pub(crate) async fn granted(store: &SqliteStore, question: &InterruptRecord) -> Claimed {
    requests::granted(store.answer(requests::answering(question)).await.unwrap())
}
