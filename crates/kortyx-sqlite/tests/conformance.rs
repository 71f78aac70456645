//! The storage port's conformance suite, on files.

#![expect(clippy::unwrap_used, reason = "what fails in a test panics")]

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use kortyx_codec::conformance::Coded;
use kortyx_protocol::Timestamp;
use kortyx_sqlite::{SqliteConfig, SqliteStore};
use kortyx_store::{ManualClock, Store, StoreError, conformance};
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};

/// Fresh files in a directory that goes with it.
struct Files {
    directory: tempfile::TempDir,
    clock: Arc<ManualClock>,
    last: Mutex<u32>,
}

impl Files {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_767_225_600_000)));
        Self { directory: tempfile::tempdir().unwrap(), clock, last: Mutex::new(0) }
    }

    fn next(&self) {
        *self.last.lock().unwrap() += 1;
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(format!("{}.db", self.last.lock().unwrap()))
    }

    async fn open(&self) -> Result<SqliteStore, StoreError> {
        SqliteStore::open(SqliteConfig::new(self.path()).clock(self.clock.clone())).await
    }
}

#[async_trait]
impl conformance::Backend for Files {
    async fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        self.next();
        let store = self.open().await?;
        store.setup().await?;
        Ok(Arc::new(store))
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn Store>>, StoreError> {
        self.next();
        let opening: Vec<_> = (0..count).map(|_| SqliteConfig::new(self.path()).clock(self.clock.clone())).collect();
        let opening: Vec<_> = opening.into_iter().map(|config| tokio::spawn(SqliteStore::open(config))).collect();
        let mut stores: Vec<Arc<dyn Store>> = Vec::new();
        for store in opening {
            stores.push(Arc::new(store.await.unwrap()?));
        }
        Ok(stores)
    }

    async fn reopen(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.open().await.unwrap()))
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    async fn make_schema_newer(&self) -> bool {
        let options = SqliteConnectOptions::new().filename(self.path());
        let mut connection = options.connect().await.unwrap();
        let sql = "INSERT INTO kortyx_schema VALUES (999, 'from the future', 0)";
        sqlx::query(sql).execute(&mut connection).await.unwrap();
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_every_promise() {
    let report = conformance::run_all(&Files::new()).await;
    println!("{report}");
    assert!(report.is_success(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_every_promise_under_a_codec() {
    let report = conformance::run_all(&Coded::encrypting(Files::new())).await;
    println!("{report}");
    assert!(report.is_success(), "{report}");
}
