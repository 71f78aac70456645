//! Leases that are granted without the snapshot, because a cache may have it.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use kortyx_postgres::PostgresStore;
use kortyx_protocol::RunId;
use kortyx_store::{
    AnswerOutcome, CacheableStore, ClaimRequest, Claimed, Drive, InterruptRecord, InterruptStatus, Revision, RunRef,
    SnapshotCache, Store, Suspend,
};

use crate::{
    proxy::Proxy,
    support::url,
    world::{
        World, answer, ask, at_port, driver, granted, new_run, pgbouncer_url, pin, port_of, saved, set_up, suspend,
    },
};

/// A cache in the test's hand.
#[derive(Default)]
struct Shelf {
    kept: Mutex<BTreeMap<(RunId, [u8; 32]), Bytes>>,
    last: AtomicU8,
    is_bypassed: AtomicBool,
    /// A store that takes the run over while its snapshot is looked for.
    rival: Mutex<Option<PostgresStore>>,
    taken_over: Mutex<Vec<Claimed>>,
}

#[async_trait]
impl SnapshotCache for Shelf {
    fn revision(&self, _: &Bytes) -> Option<Revision> {
        Some(Revision::new([self.last.fetch_add(1, Ordering::SeqCst); 32]))
    }

    fn keep(&self, run_id: &RunId, revision: Revision, snapshot: Bytes) {
        self.kept.lock().unwrap().insert((run_id.clone(), *revision.as_bytes()), snapshot);
    }

    fn is_asked(&self) -> bool {
        !self.is_bypassed.load(Ordering::SeqCst)
    }

    async fn find(&self, run_id: &RunId, revision: &Revision) -> Option<Bytes> {
        let rival = self.rival.lock().unwrap().take();
        if let Some(rival) = rival {
            let claimed = rival.claim_orphans(claiming()).await.unwrap();
            self.taken_over.lock().unwrap().extend(claimed);
        }
        self.kept.lock().unwrap().get(&(run_id.clone(), *revision.as_bytes())).cloned()
    }
}

fn claiming() -> ClaimRequest {
    ClaimRequest { driver: driver(), workflows: vec![pin()], parked_before: None, limit: 10 }
}

async fn paused(store: &PostgresStore, shelf: &Shelf) -> InterruptRecord {
    let request = suspend(RunRef::New(new_run(), driver()), vec![ask("a")], 0);
    saved(store.suspend_beside(shelf, request).await.unwrap()).remove(0)
}

/// Answers; gives the snapshot that came with the lease, and the round trips to the server.
async fn snapshot(store: &PostgresStore, shelf: &Shelf, question: &InterruptRecord, proxy: &Proxy) -> (Bytes, u64) {
    proxy.trips();
    let claimed = granted(store.answer_beside(shelf, answer(question, "yes")).await.unwrap());
    assert_eq!(claimed.answers.len(), 1);
    (claimed.snapshot, proxy.trips())
}

async fn only_what_the_cache_lacks_is_read(store: &PostgresStore, proxy: &Proxy) {
    let (shelf, stored) = (Shelf::default(), Bytes::from_static(b"suspended"));
    // The first of its kind on a connection prepares a statement.
    store.now().await.unwrap();
    let question = paused(store, &shelf).await;
    granted(store.answer(answer(&question, "yes")).await.unwrap());
    let questions = [
        paused(store, &shelf).await,
        paused(store, &shelf).await,
        paused(store, &shelf).await,
        paused(store, &shelf).await,
    ];

    assert_eq!(snapshot(store, &shelf, &questions[0], proxy).await, (stored.clone(), 1), "from the cache");
    // The cache is believed: checking is its own matter.
    shelf.kept.lock().unwrap().values_mut().for_each(|kept| *kept = Bytes::from_static(b"cached"));
    assert_eq!(snapshot(store, &shelf, &questions[1], proxy).await, (Bytes::from_static(b"cached"), 1));
    shelf.kept.lock().unwrap().clear();
    assert_eq!(snapshot(store, &shelf, &questions[2], proxy).await, (stored.clone(), 2), "from the server");
    shelf.is_bypassed.store(true, Ordering::SeqCst);
    assert_eq!(snapshot(store, &shelf, &questions[3], proxy).await, (stored, 1), "with the lease");
}

#[tokio::test]
async fn a_snapshot_that_the_cache_lacks_costs_one_more_round_trip_and_others_none() {
    let (world, proxy) = (World::new(), Proxy::start(port_of(&url())).await);
    only_what_the_cache_lacks_is_read(&world.behind(&proxy).await, &proxy).await;
}

#[tokio::test]
async fn it_is_so_through_a_pooler_too() {
    let (world, proxy) = (World::new(), Proxy::start(port_of(&pgbouncer_url())).await);
    let config = world.config_at(&at_port(&pgbouncer_url(), proxy.port)).pgbouncer(true);
    only_what_the_cache_lacks_is_read(&set_up(config).await, &proxy).await;
}

#[tokio::test]
async fn all_snapshots_of_a_batch_that_the_cache_lacks_are_read_in_one_round_trip() {
    let (world, proxy) = (World::new(), Proxy::start(port_of(&url())).await);
    let (store, shelf) = (world.behind(&proxy).await, Shelf::default());
    // The first of its kind on a connection prepares a statement.
    store.now().await.unwrap();
    assert!(store.claim_orphans(claiming()).await.unwrap().is_empty());
    let mut expected = Vec::new();
    for number in 0..4 {
        let question = paused(&store, &shelf).await;
        let claimed = granted(store.answer_beside(&shelf, answer(&question, "yes")).await.unwrap());
        let state = Bytes::from(format!("state {number}"));
        let request = Suspend { snapshot: state.clone(), ..suspend(RunRef::Held(claimed.lease), vec![ask("b")], 1) };
        let open = saved(store.suspend_beside(&shelf, request).await.unwrap());
        granted(store.answer(answer(&open[0], "yes")).await.unwrap());
        expected.push((question.run_id, state));
    }
    world.shift.advance(Duration::from_mins(10));
    // One is in the cache, three are not.
    shelf.kept.lock().unwrap().retain(|(run_id, _), _| *run_id == expected[0].0);
    proxy.trips();
    let claimed = store.claim_orphans_beside(&shelf, claiming()).await.unwrap();
    assert_eq!(proxy.trips(), 2);
    let mut snapshots: Vec<_> = claimed.into_iter().map(|claimed| (claimed.run.run_id, claimed.snapshot)).collect();
    snapshots.sort();
    expected.sort();
    assert_eq!(snapshots, expected);
}

#[tokio::test]
async fn a_run_that_is_taken_over_while_its_snapshot_is_looked_for_is_not_handed_out() {
    let world = World::new();
    let (store, shelf) = (world.store().await, Shelf::default());
    let question = paused(&store, &shelf).await;
    shelf.kept.lock().unwrap().clear();
    // The lease that the answer grants is over when it is.
    *shelf.rival.lock().unwrap() = Some(set_up(world.config()).await);
    let mut request = answer(&question, "yes");
    request.driver = Some(kortyx_store::Driver { ttl: Duration::ZERO, ..driver() });
    match store.answer_beside(&shelf, request).await.unwrap() {
        AnswerOutcome::Accepted(receipts, Drive::Left) => assert_eq!(receipts.len(), 1),
        other => panic!("the lease is another's, and this is {other:?}"),
    }
    let taken_over = std::mem::take(&mut *shelf.taken_over.lock().unwrap());
    assert_eq!((taken_over.len(), taken_over[0].answers.len()), (1, 1));
    assert_eq!(taken_over[0].snapshot, Bytes::from_static(b"suspended"));
    assert_eq!(store.interrupt(&question.request_id).await.unwrap().unwrap().status, InterruptStatus::Answered);
}
