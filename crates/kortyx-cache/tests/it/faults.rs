//! What a cache costs when it fails, and what it is asked.

use std::time::{Duration, Instant};

use kortyx_cache::{CacheConfig, CacheCounts, CachedStore};
use kortyx_postgres::PostgresStore;
use kortyx_redis::RedisCache;
use kortyx_store::{Bytes, Store as _};

use crate::{
    server::{Redis, redis_url},
    world::{answered, beside, paused, paused_again, snapshot},
};

type Store = CachedStore<PostgresStore, RedisCache>;

/// Waits until the counts are so.
async fn until(store: &Store, problem: &str, is_so: impl Fn(&CacheCounts) -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so(&store.counts()) {
        assert!(Instant::now() < until, "{problem}: {:?}", store.counts());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs that wait, until this many snapshots are in the cache; gives a question of one whose snapshot is.
async fn warm(store: &Store, large: &Bytes) -> kortyx_store::InterruptRecord {
    let until = Instant::now() + Duration::from_secs(20);
    // The first connection may not be there yet.
    loop {
        assert!(Instant::now() < until, "the cache never takes anything: {:?}", store.counts());
        let before = store.counts();
        let question = paused(store, large).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        if store.counts().kept > before.kept {
            return question;
        }
    }
}

/// As patient as a test on a busy machine must be where it is not about patience.
fn patient() -> CacheConfig {
    CacheConfig::new().timeout(Duration::from_secs(5)).bypass(Duration::from_millis(20), Duration::from_millis(50))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_snapshot_comes_from_the_cache_and_a_small_one_never_goes_there() {
    let store = beside(&redis_url(), patient()).await;
    let large = snapshot(9000);
    let question = warm(&store, &large).await;
    let kept = store.counts().kept;

    let claimed = answered(&store, &question).await;
    assert_eq!(claimed.snapshot, large);
    assert_eq!(store.counts().hits, 1);

    let small = snapshot(8192);
    let question = paused_again(&store, &claimed, &small).await;
    assert_eq!(answered(&store, &question).await.snapshot, small, "not the large one, though that is in the cache");
    let counts = store.counts();
    assert_eq!((counts.hits, counts.misses, counts.kept), (1, 0, kept));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_write_into_the_cache_is_never_taken_for_a_snapshot() {
    let redis = Redis::start();
    let store = beside(&redis.url(), patient()).await;
    let (large, other) = (snapshot(9000), "x".repeat(9000));
    let question = warm(&store, &large).await;
    for key in redis.cli(&["KEYS", "*"]).lines() {
        redis.cli(&["SET", key, &other, "XX"]);
    }
    assert_eq!(answered(&store, &question).await.snapshot, large);
    assert_eq!(store.counts().corrupt, 1);

    let question = warm(&store, &large).await;
    redis.cli(&["FLUSHALL"]);
    assert_eq!(answered(&store, &question).await.snapshot, large);
    assert_eq!(store.counts().misses, 1);

    let question = warm(&store, &large).await;
    for key in redis.cli(&["KEYS", "*"]).lines() {
        redis.cli(&["DEL", key]);
        redis.cli(&["LPUSH", key, "a value of another type"]);
    }
    assert_eq!(answered(&store, &question).await.snapshot, large);
    assert_eq!(store.counts().failures, 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_stands_still_costs_one_timeout_and_is_used_again_when_it_goes_on() {
    const TIMEOUT: Duration = Duration::from_millis(250);
    let redis = Redis::start();
    // It is left alone for longer than it takes to answer all questions, so that one pays and the others do not.
    let config = CacheConfig::new().timeout(TIMEOUT).bypass(Duration::from_secs(3), Duration::from_secs(3));
    let store = beside(&redis.url(), config).await;
    let large = snapshot(20_000);
    let mut questions = Vec::new();
    for _ in 0..10 {
        questions.push(warm(&store, &large).await);
    }
    let before = store.counts();

    redis.signal("STOP");
    for question in &questions {
        assert_eq!(answered(&store, question).await.snapshot, large);
    }
    let paused_meanwhile = paused(&store, &large).await;
    let counts = store.counts();
    assert_eq!(counts.failures - before.failures, 1, "one was asked for");
    assert_eq!(counts.bypasses - before.bypasses, 1);
    assert_eq!((counts.hits, counts.kept), (before.hits, before.kept));
    assert_eq!(answered(&store, &paused_meanwhile).await.snapshot, large);

    redis.signal("CONT");
    let question = warm(&store, &large).await;
    assert_eq!(answered(&store, &question).await.snapshot, large);
    until(&store, "it is not used again", |counts| counts.hits > before.hits).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_dies_and_comes_back_empty_costs_nothing_but_readings() {
    let mut redis = Redis::start();
    let store = beside(&redis.url(), patient()).await;
    let large = snapshot(20_000);
    let questions = [warm(&store, &large).await, warm(&store, &large).await, warm(&store, &large).await];

    redis.kill();
    assert_eq!(answered(&store, &questions[0]).await.snapshot, large);
    let meanwhile = paused(&store, &large).await;
    redis.run();
    let again = warm(&store, &large).await;

    let hits = store.counts().hits;
    assert_eq!(answered(&store, &questions[1]).await.snapshot, large, "it was in the cache that died");
    assert_eq!(answered(&store, &meanwhile).await.snapshot, large, "it was never in a cache");
    assert_eq!(store.counts().hits, hits);
    assert_eq!(answered(&store, &again).await.snapshot, large);
    assert_eq!(store.counts().hits, hits + 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_on_its_way_is_bounded_and_a_full_cache_refuses_without_harm() {
    let store = beside(&redis_url(), patient().outstanding(10 * 1024)).await;
    let large = snapshot(20_000);
    let question = paused(&store, &large).await;
    assert_eq!(store.counts().dropped, 1, "there is no room for it on the way");
    assert_eq!(answered(&store, &question).await.snapshot, large);
    assert_eq!(store.counts().misses + store.counts().failures, 1);
    store.close().await;

    let redis = Redis::start();
    let store = beside(&redis.url(), patient()).await;
    let question = warm(&store, &large).await;
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = paused(&store, &large).await;
    until(&store, "a full cache was not noticed", |counts| counts.dropped > 0 && counts.bypasses > 0).await;
    assert_eq!(answered(&store, &refused).await.snapshot, large);
    assert_eq!(answered(&store, &question).await.snapshot, large);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_with_and_without_a_cache_share_a_database() {
    let store = beside(&redis_url(), patient()).await;
    let large = snapshot(9000);
    let question = warm(&store, &large).await;
    let claimed = answered(store.store(), &question).await;
    assert_eq!(claimed.snapshot, large, "without the cache");

    let newer = snapshot(9000);
    let question = paused_again(store.store(), &claimed, &newer).await;
    let before = store.counts();
    assert_eq!(answered(&store, &question).await.snapshot, newer, "what a process without a cache stored");
    assert_eq!(store.counts(), before, "the cache is not asked for what was never put there");
    store.close().await;
}
