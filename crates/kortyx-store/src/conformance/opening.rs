//! Opening a run.

use super::{
    case::{Case, list},
    outcome::{error_kind, granted, lease_lost},
    world::{LEASE, MARGIN, World, at_once, bytes, driver, finish, pin, record, suspend},
};
use crate::{OpenRun, Record, RunRef, RunStatus, Scalar, StoreErrorKind, TerminalStatus};

list![
    an_opened_run_is_running_under_its_first_lease,
    an_opened_run_hands_out_its_first_snapshot_when_its_driver_dies,
    a_taken_run_id_is_refused_and_nothing_changes,
    a_run_id_stays_taken_after_its_run_ended,
    of_many_concurrent_opens_of_one_id_one_succeeds,
    an_unknown_run_reads_as_none,
];

async fn an_opened_run_is_running_under_its_first_lease(w: &World<'_>) {
    let mut run = w.new_run();
    run.context.insert("tenant".to_owned(), Scalar::Text("acme".into()));
    let before = w.store.now().await.unwrap();

    let lease = w.driven_run(run.clone()).await;

    assert_eq!((&lease.run_id, lease.fence), (&run.run_id, 1));
    assert!(lease.until >= before.saturating_add(LEASE));
    let stored = w.run(&run.run_id).await;
    assert_eq!(stored.run_id, run.run_id);
    assert_eq!(stored.session_id, run.session_id);
    assert_eq!(stored.workflow, pin());
    assert_eq!(stored.context, run.context);
    assert_eq!((stored.status, stored.fence, stored.answers), (RunStatus::Running, 1, 0));
    assert_eq!(stored.lease_until, Some(lease.until));
    assert!(stored.created_at >= before && stored.updated_at >= stored.created_at);
    assert_eq!((stored.cancel_requested, stored.outcome, stored.reason), (false, None, None));
}

async fn an_opened_run_hands_out_its_first_snapshot_when_its_driver_dies(w: &World<'_>) {
    let lease = w.driven().await;
    w.advance(LEASE + MARGIN);

    let claimed = w.claim().await;

    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].run.run_id, lease.run_id);
    assert_eq!((claimed[0].snapshot.clone(), claimed[0].entries.len()), (bytes("opened"), 0));
    assert!(claimed[0].answers.is_empty());
    assert!(claimed[0].lease.fence > lease.fence);
}

async fn a_taken_run_id_is_refused_and_nothing_changes(w: &World<'_>) {
    let run = w.new_run();
    let lease = w.driven_run(run.clone()).await;
    w.store.record(Record { entries: vec![bytes("e1")], ..record(&lease) }).await.unwrap();
    let before = w.run(&run.run_id).await;

    let mut other = w.new_run();
    other.run_id = run.run_id.clone();
    let open = OpenRun { run: other.clone(), driver: driver(), snapshot: bytes("other"), chunks: Vec::new() };
    let asked = w.ask("a");
    let suspended = suspend(RunRef::New(other.clone(), driver()), vec![asked.clone()]);
    let finished = finish(RunRef::New(other, driver()), TerminalStatus::Completed);

    assert_eq!(error_kind(w.store.open(open).await), StoreErrorKind::AlreadyExists);
    assert_eq!(error_kind(w.store.suspend(suspended).await), StoreErrorKind::AlreadyExists);
    assert_eq!(error_kind(w.store.finish(finished).await), StoreErrorKind::AlreadyExists);
    assert_eq!(w.run(&run.run_id).await, before);
    assert!(w.store.interrupt(&asked.request_id).await.unwrap().is_none());
    w.store.release(&lease).await.unwrap();
    let claimed = w.claim().await.remove(0);
    assert_eq!((claimed.snapshot, claimed.entries), (bytes("opened"), vec![bytes("e1")]));
}

async fn a_run_id_stays_taken_after_its_run_ended(w: &World<'_>) {
    let run = w.new_run();
    let lease = w.driven_run(run.clone()).await;
    w.complete(&lease, 0).await;

    let open = OpenRun { run: run.clone(), driver: driver(), snapshot: bytes("again"), chunks: Vec::new() };

    assert_eq!(error_kind(w.store.open(open).await), StoreErrorKind::AlreadyExists);
    assert_eq!(w.status(&run.run_id).await, RunStatus::Completed);
    lease_lost(w.store.release(&lease).await);
}

async fn of_many_concurrent_opens_of_one_id_one_succeeds(w: &World<'_>) {
    let run = w.new_run();
    let stores = w.instances().await;
    let results = at_once((0..16).map(|i| {
        let store = stores[i % stores.len()].clone();
        let open =
            OpenRun { run: run.clone(), driver: driver(), snapshot: bytes(&format!("by {i}")), chunks: Vec::new() };
        async move { store.open(open).await.map_err(|error| error.kind()) }
    }))
    .await;

    let won: Vec<usize> = (0..16).filter(|i| results[*i].is_ok()).collect();
    assert_eq!(won.len(), 1, "{results:?}");
    assert!(results.iter().all(|r| r.is_ok() || *r == Err(StoreErrorKind::AlreadyExists)), "{results:?}");
    let lease = results[won[0]].clone().unwrap();
    let asked = w.published(&lease, w.asks(&["a"])).await;
    w.store.suspend(suspend(RunRef::Held(lease), Vec::new())).await.unwrap();
    assert_eq!(granted(w.answer(&asked[0], "yes").await).snapshot, bytes("suspended"));
}

async fn an_unknown_run_reads_as_none(w: &World<'_>) {
    assert_eq!(w.store.run(&w.run_id()).await.unwrap(), None);
    assert!(w.store.interrupt(&w.request_id()).await.unwrap().is_none());
    assert!(w.store.checkpoint(&w.checkpoint_id()).await.unwrap().is_none());
    assert!(w.store.head(&w.session_id()).await.unwrap().is_none());
    assert!(w.store.list_checkpoints(&w.session_id()).await.unwrap().is_empty());
}
