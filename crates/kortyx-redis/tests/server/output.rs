//! What a run says is in a list beside the run, and goes when the run goes.

use std::time::Duration;

use crate::support::{Server, set_up};
use bytes::Bytes;
use kortyx_redis::RedisStore;
use kortyx_store::conformance::requests::{
    answering, ask, claiming, driver, finishing, granted, new_run, opening, recording, saved, suspending,
};
use kortyx_store::{Lease, Record, Retention, RunRef, Store, StoreErrorKind, Suspend};

fn chunks(texts: &[&'static str]) -> Vec<Bytes> {
    texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()
}

async fn said(store: &RedisStore, lease: &Lease) -> Vec<Bytes> {
    let page = store.chunks(&lease.run_id, 0, 100).await.unwrap().unwrap();
    page.chunks.into_iter().map(|chunk| chunk.chunk).collect()
}

/// A driven run that said something before it waited.
async fn driven(store: &RedisStore) -> kortyx_store::Claimed {
    let pause = suspending(RunRef::New(new_run(), driver()), vec![ask("a")]);
    let open = saved(store.suspend(Suspend { chunks: chunks(&["1", "2"]), ..pause }).await.unwrap());
    granted(store.answer(answering(open.first().unwrap())).await.unwrap())
}

/// The keys of what runs said, with their times to live in seconds.
fn outputs(server: &Server) -> Vec<(String, i64)> {
    let keys = server.lines(&["KEYS", "kortyx:{*}:*:out:*"]).into_iter();
    keys.map(|key| (key.clone(), server.cli(&["TTL", &key]).trim().parse().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_said_lives_as_long_as_the_run_whether_pruned_or_left_alone() {
    let server = Server::start();
    for by_slot in [false, true] {
        let store = set_up(server.config().by_slot(by_slot)).await;
        let claimed = driven(&store).await;
        assert_eq!(outputs(&server).first().unwrap().1, -1, "the run may go on");

        store.finish(finishing(claimed.clone())).await.unwrap();
        assert_eq!(said(&store, &claimed.lease).await, chunks(&["1", "2"]));
        let week = 7 * 24 * 3600;
        let (_, ttl) = outputs(&server).first().unwrap().clone();
        assert!((week - 60..=week).contains(&ttl), "{ttl}");

        let keep = Retention { finished_runs: Duration::ZERO, ..Retention::default() };
        assert_eq!(store.prune(&keep, 10).await.unwrap().runs, 1);
        assert_eq!(store.chunks(&claimed.lease.run_id, 0, 1).await.unwrap(), None);
        assert_eq!(outputs(&server), []);
        store.close().await;
        server.cli(&["FLUSHALL"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_would_outlive_its_run_is_found_by_repair() {
    let server = Server::start();
    let store = server.store().await;
    let claimed = driven(&store).await;
    store.finish(finishing(claimed)).await.unwrap();
    let (key, ttl) = outputs(&server).remove(0);
    server.cli(&["PERSIST", &key]);
    store.repair().await.unwrap();
    let (_, repaired) = outputs(&server).remove(0);
    assert!((ttl - 60..=ttl).contains(&repaired), "{repaired} after {ttl}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_outlived_its_run_is_not_what_another_with_its_id_said() {
    let server = Server::start();
    let store = server.store().await;
    let lease = store.open(opening(new_run())).await.unwrap();
    let run = server.lines(&["KEYS", &format!("kortyx:{{*}}:{}:r:*", "?".repeat(32))]).remove(0);
    server.cli(&["RPUSH", &run.replace(":r:", ":out:"), "old"]);
    assert_eq!(said(&store, &lease).await, chunks(&[]));
    store.record(Record { chunks: chunks(&["new"]), ..recording(&lease) }).await.unwrap();
    assert_eq!(said(&store, &lease).await, chunks(&["new"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_takes_nothing_of_what_says_something() {
    let server = Server::start();
    let store = set_up(server.config().patience(Duration::from_millis(200))).await;
    let lease = store.open(opening(new_run())).await.unwrap();
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let record = Record { chunks: chunks(&["1"]), entries: chunks(&["entry"]), ..recording(&lease) };
    let error = store.record(record.clone()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(said(&store, &lease).await, chunks(&[]));
    store.record(record).await.unwrap();
    assert_eq!(said(&store, &lease).await, chunks(&["1"]));
    store.release(&lease).await.unwrap();
    let claimed = store.claim_orphans(claiming()).await.unwrap().remove(0);
    assert_eq!(claimed.entries, chunks(&["entry"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunk_over_the_limit_is_refused_before_it_is_sent() {
    let server = Server::start();
    let store = set_up(server.config().payload_limit(4)).await;
    let pause = suspending(RunRef::New(new_run(), driver()), vec![ask("a")]);
    let pause = Suspend { snapshot: Bytes::new(), chunks: chunks(&["12345"]), ..pause };
    let error = store.suspend(pause).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TooLarge, "{error}");
    assert_eq!(server.cli(&["DBSIZE"]).trim(), "1", "the version of the schema");
}
