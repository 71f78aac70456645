//! Round trips, as a proxy counts them.

use std::time::Duration;

use bytes::Bytes;
use kortyx_postgres::PostgresStore;
use kortyx_store::{
    CancelRequest, CancelTarget, ClaimRequest, ExpireRequest, InterruptQuery, Park, Record, Retention, RunRef, Scope,
    Store,
};

use crate::{
    proxy::Proxy,
    support::url,
    world::{
        World, answer, ask, at_port, checkpoint, driver, finish, granted, new_run, open_run, paused, pgbouncer_url,
        pin, port_of, record, saved, set_up, suspend,
    },
};

/// Asserts that each of these calls waits for the server once.
macro_rules! assert_one_trip {
    ($proxy:expr, $($name:literal: $call:expr),+ $(,)?) => {
        $(
            $proxy.trips();
            let _outcome = $call.await.unwrap();
            assert_eq!($proxy.trips(), 1, $name);
        )+
    };
}

/// The same with something that the run says.
fn said(record: Record) -> Record {
    Record { chunks: vec![Bytes::from_static(b"said"), Bytes::new()], ..record }
}

async fn every_transition_is_one_trip(store: &PostgresStore, proxy: &Proxy) {
    // The first calls of a connection make it, and prepare its statements.
    store.now().await.unwrap();
    let question = paused(store).await;
    store.interrupt(&question.request_id).await.unwrap();
    let claimed = granted(store.answer(answer(&question, "yes")).await.unwrap());
    store.finish(finish(&claimed.lease, 1)).await.unwrap();
    let lease = store.open(open_run(new_run())).await.unwrap();
    store.record(said(record(&lease))).await.unwrap();
    store.chunks(&lease.run_id, 0, 10).await.unwrap();
    proxy.trips();

    let lease = store.open(open_run(new_run())).await.unwrap();
    assert_eq!(proxy.trips(), 1, "open");
    assert_one_trip!(proxy,
        "record": store.record(record(&lease)),
        "record, with chunks": store.record(said(record(&lease))),
        "chunks": store.chunks(&lease.run_id, 0, 10),
        "renew": store.renew(&lease, Duration::from_mins(1), 0),
        "suspend, held": store.suspend(suspend(RunRef::Held(lease.clone()), vec![ask("a"), ask("b")], 0)),
    );
    let request = suspend(RunRef::New(new_run(), driver()), vec![ask("a")], 0);
    proxy.trips();
    let question = saved(store.suspend(request).await.unwrap()).remove(0);
    assert_eq!(proxy.trips(), 1, "suspend, new");
    let claimed = granted(store.answer(answer(&question, "yes")).await.unwrap());
    assert_eq!(proxy.trips(), 1, "answer");
    let session = question.session_id.clone();
    assert_one_trip!(proxy,
        "duplicate": store.answer(answer(&question, "yes")),
        "refused": store.answer(answer(&question, "no")),
        "finish": store.finish(finish(&claimed.lease, 1)),
        "run": store.run(&claimed.run.run_id),
        "interrupt": store.interrupt(&question.request_id),
        "list": store.list_interrupts(InterruptQuery {
            scope: Scope::session(session.clone()).with("tenant", kortyx_store::Scalar::Int(1)),
            limit: 10,
            ..InterruptQuery::default()
        }),
        "append": store.append_checkpoint(&session, checkpoint()),
        "head": store.head(&session),
        "checkpoints": store.list_checkpoints(&session),
        "claim": store.claim_orphans(ClaimRequest {
            driver: driver(), workflows: vec![pin()], parked_before: None, limit: 10
        }),
        "expire": store.expire_due(ExpireRequest { driver: driver(), workflows: vec![pin()], limit: 10 }),
        "cancel": store.cancel(CancelRequest {
            target: CancelTarget::Session(session.clone()), scope: None, reason: None
        }),
        "prune": store.prune(&Retention::default(), 100),
        "now": store.now(),
    );
    let lease = store.open(open_run(new_run())).await.unwrap();
    assert_one_trip!(proxy, "release": store.release(&lease));
    let lease = store.open(open_run(new_run())).await.unwrap();
    assert_one_trip!(proxy, "park": store.park(Park { lease, reason: "changed".to_owned() }));
}

#[tokio::test]
async fn every_transition_and_every_reading_is_one_round_trip() {
    let (world, proxy) = (World::new(), Proxy::start(port_of(&url())).await);
    let store = world.behind(&proxy).await;
    every_transition_is_one_trip(&store, &proxy).await;
}

#[tokio::test]
async fn through_a_pooler_it_is_one_round_trip_too() {
    let (world, proxy) = (World::new(), Proxy::start(port_of(&pgbouncer_url())).await);
    let config = world.config_at(&at_port(&pgbouncer_url(), proxy.port)).pgbouncer(true);
    let store = set_up(config).await;
    every_transition_is_one_trip(&store, &proxy).await;
}
