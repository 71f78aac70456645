//! Where a test's runs are stored: a place of its own, which every process of the test opens.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use kortyx::{
    cache::{CacheConfig, CachedStore},
    codec::{CodecStore, Envelope, Key, Keyring},
    postgres::{ClockShift, PostgresConfig, PostgresStore},
    protocol::Timestamp,
    redis::{RedisCache, RedisConfig, RedisStore},
    sqlite::{SqliteConfig, SqliteStore, Synchronous},
    store::{Clock, ManualClock, Store, StoreError, SystemClock},
};
use serde::{Deserialize, Serialize};

/// A place that several processes can open. Written as JSON, it can be given to another process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Place {
    /// A file.
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Whether what is acknowledged survives a power cut; without that, tests are faster.
        is_synced: bool,
    },
    /// Keys of a Redis, or of a Redis Cluster.
    Redis {
        /// The server.
        url: String,
        /// What the keys start with.
        prefix: String,
    },
    /// A schema of a Postgres.
    Postgres {
        /// The server, or the pooler before it.
        url: String,
        /// The schema.
        schema: String,
        /// The URL is a pooler's.
        is_pooled: bool,
        /// A Redis for a cache beside it.
        cache: Option<String>,
    },
}

/// The clock that stores of a test go by.
#[derive(Clone)]
pub struct Time {
    /// Of a store in this process or in a file.
    clock: Arc<dyn Clock>,
    manual: Option<Arc<ManualClock>>,
    /// Of a server: how far it is ahead of the server's own.
    offset: Arc<AtomicI64>,
    shift: ClockShift,
}

/// The machine's clock, and some time more.
#[derive(Debug)]
struct Ahead(Duration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().saturating_add(self.0)
    }
}

impl Time {
    /// A clock that stands still where that is possible, and else goes on from the server's.
    pub fn standing(at: Timestamp) -> Self {
        let manual = Arc::new(ManualClock::at(at));
        Self { clock: manual.clone(), manual: Some(manual), offset: Arc::default(), shift: ClockShift::default() }
    }

    /// A clock that is ahead of the machine's.
    pub fn ahead(by: Duration) -> Self {
        let time =
            Self { clock: Arc::new(Ahead(by)), manual: None, offset: Arc::default(), shift: ClockShift::default() };
        time.move_servers(by);
        time
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        if let Some(manual) = &self.manual {
            manual.advance(by);
        }
        self.move_servers(by);
    }

    /// The clock that stands still, for stores in this process or in a file.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    /// The clock that stands still.
    pub fn manual(&self) -> Option<&ManualClock> {
        self.manual.as_deref()
    }

    fn move_servers(&self, by: Duration) {
        self.offset.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
        self.shift.advance(by);
    }
}

impl Place {
    /// A new place on the store that `KORTYX_TEST_STORE` names, a file in this directory by default; `None` for memory, which no
    /// other process can open.
    pub fn fresh(directory: &Path, is_synced: bool) -> Option<Self> {
        Self::on(&chosen(), directory, is_synced)
    }

    /// A new place on the store of this name.
    pub fn on(store: &str, directory: &Path, is_synced: bool) -> Option<Self> {
        let name = fresh_name();
        let postgres = |variable: &str, is_pooled: bool, cache: Option<String>| Self::Postgres {
            url: url(variable),
            schema: name.clone(),
            is_pooled,
            cache,
        };
        Some(match store {
            "memory" => return None,
            "sqlite" => Self::Sqlite { path: directory.join("kortyx.db"), is_synced },
            "redis" => Self::Redis { url: url("KORTYX_TEST_REDIS_URL"), prefix: name },
            "redis-cluster" => Self::Redis { url: url("KORTYX_TEST_REDIS_CLUSTER_URL"), prefix: name },
            "postgres" => postgres("KORTYX_TEST_POSTGRES_URL", false, None),
            "postgres+cache" => postgres("KORTYX_TEST_POSTGRES_URL", false, Some(url("KORTYX_TEST_REDIS_URL"))),
            "postgres-pgbouncer" => postgres("KORTYX_TEST_PGBOUNCER_URL", true, None),
            other => panic!(
                "KORTYX_TEST_STORE is `{other}`: use memory, sqlite, redis, redis-cluster, postgres, postgres+cache or \
                 postgres-pgbouncer"
            ),
        })
    }

    /// The store as one more process opens it. Its tasks belong to the current runtime.
    pub async fn open(&self, time: &Time) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Sqlite { path, is_synced } => {
                let synchronous = if *is_synced { Synchronous::Full } else { Synchronous::Normal };
                let config = SqliteConfig::new(path).synchronous(synchronous).clock(time.clock());
                coded(SqliteStore::open(config).await?)
            }
            Self::Redis { url, prefix } => {
                let config = RedisConfig::parse(url)?.prefix(prefix)?.clock_offset(time.offset.clone());
                coded(RedisStore::connect(config).await?)
            }
            Self::Postgres { url, schema, is_pooled, cache } => {
                // Many stores of many tests share the server's connections.
                let config = PostgresConfig::parse(url)?.schema(schema)?.pool_size(3).pgbouncer(*is_pooled);
                let config = config.acquire_timeout(Duration::from_secs(30));
                let store = PostgresStore::open(config.clock_shift(time.shift.clone())).await?;
                let Some(cache) = cache else { return Ok(coded(store)) };
                let cache = RedisCache::new(&RedisConfig::parse(cache)?.prefix(schema)?)?;
                // Every snapshot passes through the cache, also on a busy machine.
                coded(CachedStore::new(store, cache, CacheConfig::new().above(0).timeout(Duration::from_secs(1))))
            }
        })
    }
}

/// A prefix or a schema that no other test uses.
pub fn fresh_name() -> String {
    format!("test_{:016x}", RandomState::new().build_hasher().finish())
}

/// A store as the lane wants it: under the codec when `KORTYX_TEST_CODEC` is set.
pub fn coded(store: impl Store) -> Arc<dyn Store> {
    if std::env::var_os("KORTYX_TEST_CODEC").is_none() {
        return Arc::new(store);
    }
    let keyring = Keyring::new("test", Key::new(&[7; 32])).unwrap();
    Arc::new(CodecStore::new(store, Envelope::new().compress_above(64).encrypt(keyring)))
}

/// Which store the lane tests.
pub fn chosen() -> String {
    std::env::var("KORTYX_TEST_STORE").unwrap_or_else(|_| "memory".to_owned())
}

fn url(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `cargo xtask test-matrix --lane {}`, which starts the server", chosen())
    })
}
