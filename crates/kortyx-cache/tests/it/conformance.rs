//! The storage port's conformance suite, with a cache that works and with caches that do not.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use kortyx_cache::{CacheConfig, CacheCounts, CachedStore};
use kortyx_codec::conformance::Coded;
use kortyx_postgres::{ClockShift, PostgresConfig, PostgresStore};
use kortyx_redis::{RedisCache, RedisConfig};
use kortyx_store::{PayloadCache, Store, StoreError, conformance};

use crate::{
    moody::{Mood, Moody},
    server::{closed_port, postgres_url, redis_url},
    world::{Schemas, unique},
};

/// Makes the cache of a store.
type Make<C> = Box<dyn Fn() -> C + Send + Sync>;

/// Stores on fresh schemas, each with a cache.
struct Cached<C> {
    schemas: Schemas,
    shift: ClockShift,
    cache: Make<C>,
    config: CacheConfig,
    stores: Mutex<Vec<Arc<CachedStore<PostgresStore, C>>>>,
    /// What became of the snapshots of the cases before.
    settled: Mutex<CacheCounts>,
    /// Whether the next case needs a schema of its own.
    is_used_up: AtomicBool,
}

impl<C: PayloadCache> Cached<C> {
    fn new(config: CacheConfig, cache: impl Fn() -> C + Send + Sync + 'static) -> Self {
        Self {
            schemas: Schemas::new(),
            shift: ClockShift::default(),
            cache: Box::new(cache),
            config,
            stores: Mutex::default(),
            settled: Mutex::default(),
            is_used_up: AtomicBool::new(true),
        }
    }

    async fn open(&self) -> Result<Arc<CachedStore<PostgresStore, C>>, StoreError> {
        let config = PostgresConfig::parse(&postgres_url())?.schema(&self.schemas.last())?.pool_size(3);
        let store = PostgresStore::open(config.clock_shift(self.shift.clone())).await?;
        let store = Arc::new(CachedStore::new(store, (self.cache)(), self.config.clone()));
        self.stores.lock().unwrap().push(store.clone());
        Ok(store)
    }

    /// Lets the stores of the case before go, and with them their connections.
    fn settle(&self) -> CacheCounts {
        let mut sum = self.settled.lock().unwrap();
        for store in self.stores.lock().unwrap().drain(..) {
            let counts = store.counts();
            sum.hits += counts.hits;
            sum.misses += counts.misses;
            sum.corrupt += counts.corrupt;
            sum.failures += counts.failures;
            sum.kept += counts.kept;
            sum.dropped += counts.dropped;
            sum.bypasses += counts.bypasses;
        }
        *sum
    }
}

#[async_trait]
impl<C: PayloadCache> conformance::Backend for Cached<C> {
    async fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        self.settle();
        if self.is_used_up.swap(false, Ordering::Relaxed) {
            self.schemas.next().await;
        } else {
            self.schemas.empty().await;
        }
        let store = self.open().await?;
        store.setup().await?;
        Ok(store)
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn Store>>, StoreError> {
        self.settle();
        self.schemas.next().await;
        self.is_used_up.store(true, Ordering::Relaxed);
        let mut stores: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..count {
            stores.push(self.open().await?);
        }
        Ok(stores)
    }

    async fn reopen(&self) -> Option<Arc<dyn Store>> {
        Some(self.open().await.unwrap())
    }

    fn advance(&self, by: Duration) {
        self.shift.advance(by);
    }

    async fn make_schema_newer(&self) -> bool {
        self.is_used_up.store(true, Ordering::Relaxed);
        self.schemas.execute("INSERT INTO kortyx.versions VALUES (999, 999, 'from the future')").await;
        true
    }
}

/// The same, where somebody else looks at the counts afterwards.
struct Shared<C>(Arc<Cached<C>>);

#[async_trait]
impl<C: PayloadCache> conformance::Backend for Shared<C> {
    async fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        self.0.store().await
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn Store>>, StoreError> {
        self.0.unprepared(count).await
    }

    async fn reopen(&self) -> Option<Arc<dyn Store>> {
        self.0.reopen().await
    }

    fn advance(&self, by: Duration) {
        self.0.advance(by);
    }

    async fn make_schema_newer(&self) -> bool {
        self.0.make_schema_newer().await
    }
}

/// Everything passes through the cache, and one that fails is asked again soon.
fn all() -> CacheConfig {
    let moment = Duration::from_millis(1);
    CacheConfig::new().above(0).bypass(moment, moment)
}

fn in_redis() -> RedisCache {
    RedisCache::new(&RedisConfig::parse(&redis_url()).unwrap().prefix(unique("cache")).unwrap()).unwrap()
}

async fn passes(backend: &dyn conformance::Backend) {
    let report = conformance::run_all(backend).await;
    assert!(report.is_success(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_every_promise_beside_a_cache() {
    // On a busy machine a reading may take longer than it should anywhere else.
    let cached = Cached::new(all().timeout(Duration::from_secs(5)), in_redis);
    passes(&cached).await;
    let counts = cached.settle();
    // Every case begins with a cache that is not connected yet.
    println!("{counts:?}");
    assert!(counts.hits > 100 && counts.corrupt == 0, "{counts:?}");
}

/// Under the codec, so that what is mixed up is encrypted too.
#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_every_promise_under_a_codec_beside_a_cache_that_loses_breaks_and_mixes_up_values() {
    const MOODS: &[Mood] =
        &[Mood::Well, Mood::Flushed, Mood::Garbage, Mood::Older, Mood::Cut, Mood::Failing, Mood::Older, Mood::Slow];
    let cached = Arc::new(Cached::new(all(), || Moody::new(in_redis(), MOODS)));
    passes(&Coded::encrypting(Shared(cached.clone()))).await;
    let counts = cached.settle();
    println!("{counts:?}");
    assert!(counts.hits > 0 && counts.misses > 0 && counts.corrupt > 0 && counts.failures > 0, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_every_promise_beside_a_cache_that_is_not_there() {
    let url = format!("redis://127.0.0.1:{}", closed_port());
    let cached = Cached::new(all(), move || RedisCache::new(&RedisConfig::parse(&url).unwrap()).unwrap());
    passes(&cached).await;
    let counts = cached.settle();
    println!("{counts:?}");
    assert!(counts.bypasses > 0 && counts.hits == 0 && counts.kept == 0, "{counts:?}");
}
