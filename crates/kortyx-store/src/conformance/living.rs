//! A store's own life: set up, shared, reopened, closed.

use std::sync::Arc;

use kortyx_protocol::Timestamp;

use super::{
    case::{Case, list},
    chains::{chain, fork, reading, rollback},
    outcome::{assert_same, error_kind, granted},
    world::{
        LEASE, MARGIN, World, answer, at_once, cancel_request, claim_request, driver, expire_request, finish, of_run,
        record, suspend,
    },
};
use crate::{
    AnswerRequest, CancelTarget, OpenRun, Park, Retention, RunRef, Signal, Store, StoreErrorKind, TerminalStatus,
};

list![
    b148_sixteen_concurrent_setups_all_succeed,
    b148_setting_up_again_keeps_everything,
    a_schema_newer_than_the_code_is_refused_and_left_alone,
    b078_another_instance_sees_whatever_was_acknowledged,
    the_clock_goes_on_and_is_shared,
    a_closed_store_says_so,
    signals_are_hints_about_what_changed,
    signals_that_nobody_reads_hold_nothing_up,
];

async fn b148_sixteen_concurrent_setups_all_succeed(w: &World<'_>) {
    let stores = w.backend.unprepared(16).await.unwrap();
    assert_eq!(stores.len(), 16);
    for _ in 0..2 {
        let tasks = stores.iter().cloned().map(|store| async move { store.setup().await.map_err(|e| e.to_string()) });
        for result in at_once(tasks).await {
            assert_eq!(result, Ok(()));
        }
    }
    let run = w.new_run();
    let request =
        OpenRun { run: run.clone(), driver: driver(), snapshot: super::world::bytes("s"), chunks: Vec::new() };
    stores[0].open(request).await.unwrap();
    for store in stores {
        assert!(store.run(&run.run_id).await.unwrap().is_some(), "they share one place");
    }
}

async fn b148_setting_up_again_keeps_everything(w: &World<'_>) {
    let chain = chain(w).await;
    let before = reading(w, &chain).await;
    for store in w.instances().await {
        store.setup().await.unwrap();
    }
    w.store.setup().await.unwrap();
    assert_eq!(reading(w, &chain).await, before);
    granted(w.answer(&chain.open[0], "yes").await);
}

async fn a_schema_newer_than_the_code_is_refused_and_left_alone(w: &World<'_>) {
    w.paused(&["a"]).await;
    if !w.backend.make_schema_newer().await {
        return;
    }
    let store = w.backend.reopen().await.expect("a place with a schema can be opened again");
    for _ in 0..2 {
        let error = store.setup().await.expect_err("the schema is newer");
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        assert!(!error.is_retryable());
    }
}

async fn b078_another_instance_sees_whatever_was_acknowledged(w: &World<'_>) {
    let Some(other) = w.backend.reopen().await else { return };
    let chain = chain(w).await;
    for question in &chain.open {
        assert_same(
            &w.question(&question.request_id).await,
            &other.interrupt(&question.request_id).await.unwrap().unwrap(),
        );
    }
    assert_eq!(
        other.run(&chain.paused.run.run_id).await.unwrap(),
        w.store.run(&chain.paused.run.run_id).await.unwrap()
    );
    let turns = other.list_checkpoints(&chain.session).await.unwrap();
    assert_eq!(format!("{turns:?}"), format!("{:?}", w.store.list_checkpoints(&chain.session).await.unwrap()));
    w.store.close().await;
    let request = AnswerRequest { answers: vec![answer(&chain.open[0], "yes")], driver: Some(driver()) };
    let claimed = granted(other.answer(request).await.unwrap());
    assert_eq!(claimed.snapshot, super::world::bytes("second pause"));
    other.renew(&claimed.lease, LEASE, 2).await.unwrap();
}

async fn the_clock_goes_on_and_is_shared(w: &World<'_>) {
    let before = w.store.now().await.unwrap();
    assert!(before > Timestamp::from_millis(0));
    w.advance(LEASE);
    for store in w.instances().await {
        let after = store.now().await.unwrap();
        assert!(after >= before.saturating_add(LEASE) && after <= before.saturating_add(LEASE + MARGIN * 6));
    }
}

async fn a_closed_store_says_so(w: &World<'_>) {
    let chain = chain(w).await;
    let lease = w.driven().await;
    let store: Arc<dyn Store> = w.store.clone();
    store.close().await;
    store.close().await;

    let held = || RunRef::Held(lease.clone());
    let answers = AnswerRequest { answers: vec![answer(&chain.open[0], "yes")], driver: Some(driver()) };
    let run = OpenRun { run: w.new_run(), driver: driver(), snapshot: super::world::bytes("s"), chunks: Vec::new() };
    let park = Park { lease: lease.clone(), reason: "late".to_owned() };
    let id = &chain.open[0].request_id;
    let refusals = [
        ("setup", error_kind(store.setup().await)),
        ("now", error_kind(store.now().await)),
        ("open", error_kind(store.open(run).await)),
        ("record", error_kind(store.record(record(&lease)).await)),
        ("suspend", error_kind(store.suspend(suspend(held(), w.asks(&["a"]))).await)),
        ("answer", error_kind(store.answer(answers).await)),
        ("finish", error_kind(store.finish(finish(held(), TerminalStatus::Failed)).await)),
        ("park", error_kind(store.park(park).await)),
        ("renew", error_kind(store.renew(&lease, LEASE, 0).await)),
        ("release", error_kind(store.release(&lease).await)),
        ("claim_orphans", error_kind(store.claim_orphans(claim_request()).await)),
        ("expire_due", error_kind(store.expire_due(expire_request()).await)),
        ("cancel", error_kind(store.cancel(cancel_request(CancelTarget::Run(lease.run_id.clone()))).await)),
        ("run", error_kind(store.run(&lease.run_id).await)),
        ("interrupt", error_kind(store.interrupt(id).await)),
        ("list_interrupts", error_kind(store.list_interrupts(of_run(&lease.run_id)).await)),
        ("append", error_kind(store.append_checkpoint(&chain.session, w.new_checkpoint("late")).await)),
        ("head", error_kind(store.head(&chain.session).await)),
        ("list_checkpoints", error_kind(store.list_checkpoints(&chain.session).await)),
        ("checkpoint", error_kind(store.checkpoint(&chain.head.checkpoint.id).await)),
        ("rollback", error_kind(store.rollback(rollback(w, &chain.start)).await)),
        ("fork", error_kind(store.fork(fork(w, &chain.start)).await)),
        ("prune", error_kind(store.prune(&Retention::default(), 1).await)),
    ];
    for (operation, kind) in refusals {
        assert_eq!(kind, StoreErrorKind::Closed, "{operation}");
    }
}

async fn signals_are_hints_about_what_changed(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    let paused = w.paused(&["a"]).await;
    let mut signals: Vec<_> = w.instances().await.iter().map(|store| store.signals()).collect();

    w.answer(&open[0], "yes").await;
    w.cancel(&lease.run_id).await;
    w.answer_and_leave(&paused.open[0], "yes").await;

    for receiver in &mut signals {
        while let Ok(signal) = receiver.try_recv() {
            assert!(matches!(signal, Signal::Work) || signal == Signal::Attention(lease.run_id.clone()), "{signal:?}");
        }
    }
    assert_eq!(w.claim().await.len(), 1, "polling finds what a hint may have missed");
}

async fn signals_that_nobody_reads_hold_nothing_up(w: &World<'_>) {
    let idle: Vec<_> = (0..8).map(|_| w.store.signals()).collect();
    let lease = w.driven().await;
    for round in 0..300 {
        let open = w.published(&lease, w.asks(&[&format!("q{round}")])).await;
        w.answer(&open[0], "yes").await;
    }
    drop(idle);
    assert_eq!(w.run(&lease.run_id).await.answers, 300);
}
