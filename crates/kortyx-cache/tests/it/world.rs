//! Fresh places, and short ways to a run.

use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

use kortyx_cache::{CacheConfig, CachedStore};
use kortyx_postgres::{PostgresConfig, PostgresStore};
use kortyx_redis::{RedisCache, RedisConfig};
use kortyx_store::{Bytes, Claimed, InterruptRecord, RunRef, Store, Suspend, conformance::requests};
use sqlx::{AssertSqlSafe, ConnectOptions, postgres::PgConnectOptions};

use crate::server::postgres_url;

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

/// A name that no other test uses.
pub(crate) fn unique(kind: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{kind}_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Fresh schemas of one server.
pub(crate) struct Schemas {
    last: Mutex<String>,
}

impl Schemas {
    pub(crate) fn new() -> Self {
        Self { last: Mutex::default() }
    }

    pub(crate) fn last(&self) -> String {
        self.last.lock().unwrap().clone()
    }

    /// Removes the schema before, and names the next.
    pub(crate) async fn next(&self) {
        let before = std::mem::replace(&mut *self.last.lock().unwrap(), unique("cached"));
        if !before.is_empty() {
            execute(&format!("DROP SCHEMA IF EXISTS {before} CASCADE")).await;
        }
    }

    /// Empties the schema, for another case.
    pub(crate) async fn empty(&self) {
        // A few rows go faster than a table's files and those of its indexes, which TRUNCATE replaces.
        self.execute(&TABLES.map(|table| format!("DELETE FROM kortyx.{table};")).concat()).await;
    }

    /// Runs a statement on this schema.
    pub(crate) async fn execute(&self, sql: &str) {
        execute(&sql.replace("kortyx.", &format!("{}.", self.last()))).await;
    }
}

async fn execute(sql: &str) {
    let options: PgConnectOptions = postgres_url().parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
}

/// A store of its own beside a Redis.
pub(crate) async fn beside(redis: &str, config: CacheConfig) -> CachedStore<PostgresStore, RedisCache> {
    let place = PostgresConfig::parse(&postgres_url()).unwrap().schema(&unique("cached")).unwrap().pool_size(3);
    let cache = RedisCache::new(&RedisConfig::parse(redis).unwrap().prefix(unique("cache")).unwrap()).unwrap();
    let store = CachedStore::new(PostgresStore::open(place).await.unwrap(), cache, config);
    store.setup().await.unwrap();
    store
}

/// A run that waits, with this snapshot.
pub(crate) async fn paused(store: &dyn Store, snapshot: &Bytes) -> InterruptRecord {
    suspended(store, RunRef::New(requests::new_run(), requests::driver()), snapshot, 0).await
}

/// The run of a claim that waits again, with this snapshot.
pub(crate) async fn paused_again(store: &dyn Store, claimed: &Claimed, snapshot: &Bytes) -> InterruptRecord {
    suspended(store, RunRef::Held(claimed.lease.clone()), snapshot, claimed.run.answers).await
}

async fn suspended(store: &dyn Store, run: RunRef, snapshot: &Bytes, answers_seen: u64) -> InterruptRecord {
    let request = requests::suspending(run, vec![requests::ask(&requests::unique("ask"))]);
    let request = Suspend { snapshot: snapshot.clone(), answers_seen, ..request };
    requests::saved(store.suspend(request).await.unwrap()).remove(0)
}

/// Answers a question; gives the run.
pub(crate) async fn answered(store: &dyn Store, question: &InterruptRecord) -> Claimed {
    requests::granted(store.answer(requests::answering(question)).await.unwrap())
}

/// A snapshot of this length that no other equals.
pub(crate) fn snapshot(length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).unwrap();
    bytes.into()
}
