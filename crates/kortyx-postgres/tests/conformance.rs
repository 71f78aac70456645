//! The storage port's conformance suite, on a server.

#![expect(clippy::unwrap_used, reason = "what fails in a test panics")]

mod support;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use kortyx_codec::conformance::Coded;
use kortyx_postgres::{ClockShift, PostgresConfig, PostgresStore};
use kortyx_store::{Store, StoreError, conformance};
use sqlx::{AssertSqlSafe, ConnectOptions, postgres::PgConnectOptions};

use support::{Pooler, config_at, fresh_schema, url};

/// The tables with rows of runs and sessions.
const TABLES: [&str; 9] = [
    "runs",
    "entries",
    "chunks",
    "interrupts",
    "pending_context",
    "sessions",
    "checkpoints",
    "checkpoint_questions",
    "transitions",
];

/// Fresh schemas of one server.
struct Schemas {
    url: String,
    pgbouncer: bool,
    shift: ClockShift,
    last: Mutex<String>,
    /// Whether the next case needs a schema of its own.
    is_used_up: AtomicBool,
}

impl Schemas {
    fn new(url: String, pgbouncer: bool) -> Self {
        Self { url, pgbouncer, shift: ClockShift::default(), last: Mutex::default(), is_used_up: AtomicBool::new(true) }
    }

    /// Removes the schema before, and names the next.
    async fn next(&self) {
        let next = fresh_schema();
        let before = std::mem::replace(&mut *self.last.lock().unwrap(), next);
        if !before.is_empty() {
            self.execute(&format!("DROP SCHEMA IF EXISTS {before} CASCADE")).await;
        }
    }

    /// Empties the schema, for another case. A server process remembers every function that it ever called, so that hundreds
    /// of schemas would slow down those behind a pooler, which live long.
    async fn empty(&self) {
        let schema = self.last.lock().unwrap().clone();
        // A few rows go faster than a table's files and those of its indexes, which TRUNCATE replaces.
        self.execute(&TABLES.map(|table| format!("DELETE FROM {schema}.k_{table};")).concat()).await;
    }

    fn config(&self) -> PostgresConfig {
        let schema = self.last.lock().unwrap().clone();
        config_at(&self.url, &schema, &self.shift).table_prefix("k_").unwrap().pgbouncer(self.pgbouncer)
    }

    async fn execute(&self, sql: &str) {
        let options: PgConnectOptions = url().parse().unwrap();
        let mut connection = options.connect().await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    }
}

#[async_trait]
impl conformance::Backend for Schemas {
    async fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        if self.is_used_up.swap(false, Ordering::Relaxed) {
            self.next().await;
        } else {
            self.empty().await;
        }
        let store = PostgresStore::open(self.config()).await?;
        store.setup().await?;
        Ok(Arc::new(store))
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn Store>>, StoreError> {
        self.next().await;
        self.is_used_up.store(true, Ordering::Relaxed);
        let mut stores: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..count {
            stores.push(Arc::new(PostgresStore::open(self.config()).await?));
        }
        Ok(stores)
    }

    async fn reopen(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(PostgresStore::open(self.config()).await.unwrap()))
    }

    fn advance(&self, by: Duration) {
        self.shift.advance(by);
    }

    async fn make_schema_newer(&self) -> bool {
        self.is_used_up.store(true, Ordering::Relaxed);
        let schema = self.last.lock().unwrap().clone();
        self.execute(&format!("INSERT INTO {schema}.k_versions VALUES (999, 999, 'from the future')")).await;
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_every_promise() {
    let report = conformance::run_all(&Schemas::new(url(), false)).await;
    println!("{report}");
    assert!(report.is_success(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_every_promise_under_a_codec() {
    let report = conformance::run_all(&Coded::encrypting(Schemas::new(url(), false))).await;
    println!("{report}");
    assert!(report.is_success(), "{report}");
}

/// What one call leaves in a session is there for the next, whoever made it.
#[tokio::test(flavor = "multi_thread")]
async fn b147_the_store_keeps_every_promise_through_a_pooler_with_one_connection() {
    through(&Pooler::start(&url(), "default_pool_size = 1")).await;
}

/// What one call leaves in a session is not there for the next of the same client.
#[tokio::test(flavor = "multi_thread")]
async fn b147_the_store_keeps_every_promise_through_a_pooler_that_alternates_between_two_connections() {
    through(&Pooler::start(&url(), "default_pool_size = 2\nmin_pool_size = 2\nserver_round_robin = 1")).await;
}

async fn through(pooler: &Pooler) {
    let report = conformance::run_all(&Schemas::new(pooler.url.clone(), true)).await;
    println!("{report}");
    assert!(report.is_success(), "{report}");
}
