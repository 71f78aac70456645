//! Indexes of a Cluster that are told late: who is woken finds the work, and whom it does not concern does not wait.

use std::{
    sync::{Arc, atomic::AtomicI64},
    time::{Duration, Instant},
};

use crate::{
    placed::{pausing, saved},
    support::{Cluster, Server, relay::Relays, set_up},
};
use kortyx_protocol::SessionId;
use kortyx_redis::{RedisConfig, RedisStore};
use kortyx_store::conformance::requests::{claiming, driver, new_run, opening, pin};
use kortyx_store::{ExpireRequest, Signal, Store};

fn config(url: &str) -> RedisConfig {
    RedisConfig::parse(url).unwrap()
}

async fn until_somebody_listens(cluster: &Cluster) {
    let until = Instant::now() + Duration::from_secs(10);
    let hears =
        |server: &Server| server.lines(&["PUBSUB", "NUMSUB", "kortyx:signals"]).last().is_some_and(|n| n != "0");
    while !cluster.servers.iter().any(hears) {
        assert!(Instant::now() < until, "nobody listens");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_woken_finds_what_it_was_woken_for_on_a_cluster_too() {
    let cluster = Cluster::start();
    let worker = set_up(config(&cluster.url())).await;
    let mut signals = worker.signals();
    until_somebody_listens(&cluster).await;
    // What the other process hears late it says late: its indexes lag behind its transitions.
    let relays = Relays::to(&cluster, Duration::from_millis(50)).await;
    let leaving = set_up(config(&relays.url())).await;
    for round in 0..8 {
        let lease = leaving.open(opening(new_run())).await.unwrap();
        let working = async {
            let woken = tokio::time::timeout(Duration::from_secs(5), signals.recv()).await;
            assert_eq!(woken.unwrap().unwrap(), Signal::Work, "round {round}");
            worker.claim_orphans(claiming()).await.unwrap()
        };
        let (claimed, released) = tokio::join!(working, leaving.release(&lease));
        released.unwrap();
        let found: Vec<_> = claimed.iter().map(|claimed| &claimed.run.run_id).collect();
        assert_eq!(found, [&lease.run_id], "round {round}");
    }
}

/// Whether a server has the slot of a key.
fn has(server: &Server, key: &str) -> bool {
    !server.cli(&["EXISTS", key]).contains("MOVED")
}

/// Numbers of sessions that this server does not have.
fn elsewhere(server: &Server, store: &RedisStore, count: usize) -> Vec<u64> {
    let is_elsewhere = |number: &u64| {
        let session_id = SessionId::new(format!("placed-{number}")).unwrap();
        let part = store.placement(&session_id).unwrap().number();
        !has(server, &format!("kortyx:{{{part:03x}}}"))
    };
    (0..).filter(is_elsewhere).take(count).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_do_not_wait_for_the_server_of_an_index_that_stands_still() {
    const COUNT: usize = 30;
    let cluster = Cluster::start();
    let store = set_up(config(&cluster.url())).await;
    let server = cluster.servers.iter().find(|server| has(server, "{kortyx:i:due}")).unwrap();
    let numbers = elsewhere(server, &store, COUNT);
    server.signal("STOP");
    let began = Instant::now();
    for number in &numbers {
        saved(store.suspend(pausing(&store, *number)).await.unwrap());
    }
    let took = began.elapsed();
    server.signal("CONT");
    assert!(took < Duration::from_secs(3), "{COUNT} pauses took {took:?}");

    store.close().await;
    let ahead = Arc::new(AtomicI64::new(3_600_000));
    let later = set_up(config(&cluster.url()).clock_offset(ahead)).await;
    let expire = ExpireRequest { driver: driver(), workflows: vec![pin()], limit: 100 };
    assert_eq!(later.expire_due(expire).await.unwrap().ended.len(), COUNT, "the index was told of each");
}
