//! Leases and their fences: one driver at a time, and a stale one writes nothing.

use super::{
    case::{Case, list},
    outcome::{driven, granted, lease_lost, left},
    world::{
        LEASE, MARGIN, World, answer, at_once, bytes, claim_request, driver, finish, record, saved, suspend, text,
    },
};
use crate::{AnswerRequest, Finish, Lease, Park, Record, RunRef, RunStatus, Signal, Suspend, TerminalStatus};

list![
    b096_a_stale_fence_is_refused_everywhere_and_changes_nothing,
    b096_a_fence_that_was_never_granted_is_refused,
    b096_of_two_writers_with_one_lease_the_second_suspension_fails,
    a_lease_on_an_unknown_run_is_refused,
    a_lease_that_was_given_up_is_refused,
    a_lease_that_ran_out_but_was_not_taken_over_still_writes,
    a_lease_that_ran_out_is_alive_again_once_renewed,
    renewing_counts_from_now_and_hands_over_what_is_new,
    every_grant_has_a_higher_fence,
    b048_a_live_lease_is_never_taken_over,
    a_released_run_can_be_claimed_at_once,
    b094_of_many_concurrent_claims_one_gets_the_run,
    b112_a_driver_learns_of_answers_by_asking_alone,
];

async fn refused_everywhere(w: &World<'_>, lease: &Lease) {
    let held = || RunRef::Held(lease.clone());
    let entry = Record { entries: vec![bytes("stale")], publish: w.asks(&["stale"]), ..record(lease) };
    lease_lost(w.store.record(entry).await);
    let checkpoint = Some(w.new_checkpoint("stale"));
    lease_lost(w.store.suspend(Suspend { checkpoint, ..suspend(held(), w.asks(&["stale"])) }).await);
    let checkpoint = Some(w.new_checkpoint("stale"));
    lease_lost(w.store.finish(Finish { checkpoint, ..finish(held(), TerminalStatus::Failed) }).await);
    lease_lost(w.store.park(Park { lease: lease.clone(), reason: "stale".to_owned() }).await);
    lease_lost(w.store.renew(lease, LEASE * 100, 0).await);
    lease_lost(w.store.release(lease).await);
}

async fn b096_a_stale_fence_is_refused_everywhere_and_changes_nothing(w: &World<'_>) {
    let run = w.new_run();
    let stale = w.driven_run(run.clone()).await;
    w.published(&stale, w.asks(&["a"])).await;
    w.advance(LEASE + MARGIN);
    let current = w.claim().await.remove(0);

    refused_everywhere(w, &stale).await;

    assert_eq!(w.run(&run.run_id).await, current.run);
    assert_eq!(w.open(&run.run_id).await.len(), 1);
    assert!(w.store.head(&run.session_id).await.unwrap().is_none());
    w.store.record(Record { entries: vec![bytes("mine")], ..record(&current.lease) }).await.unwrap();
    w.store.release(&current.lease).await.unwrap();
    assert_eq!(w.claim().await.remove(0).entries, [bytes("mine")]);
}

async fn b096_a_fence_that_was_never_granted_is_refused(w: &World<'_>) {
    let lease = w.driven().await;
    for fence in [0, lease.fence + 1, i64::MAX.unsigned_abs()] {
        refused_everywhere(w, &Lease { fence, ..lease.clone() }).await;
    }
    w.store.record(record(&lease)).await.unwrap();
}

async fn b096_of_two_writers_with_one_lease_the_second_suspension_fails(w: &World<'_>) {
    let stores = w.instances().await;
    let lease = w.driven().await;
    let results = at_once((0..2).map(|i| {
        let store = stores[i % stores.len()].clone();
        let snapshot = bytes(&format!("by {i}"));
        let request = Suspend { snapshot, ..suspend(RunRef::Held(lease.clone()), w.asks(&["a"])) };
        async move { store.suspend(request).await.map(saved).map_err(|error| error.kind()) }
    }))
    .await;

    let won: Vec<_> = results.iter().enumerate().filter(|(_, result)| result.is_ok()).collect();
    assert_eq!(won.len(), 1, "{results:?}");
    let open = won[0].1.as_ref().unwrap();
    assert_eq!(granted(w.answer(&open[0], "yes").await).snapshot, bytes(&format!("by {}", won[0].0)));
}

async fn a_lease_on_an_unknown_run_is_refused(w: &World<'_>) {
    let lease = w.driven().await;
    refused_everywhere(w, &Lease { run_id: w.run_id(), ..lease }).await;
}

async fn a_lease_that_was_given_up_is_refused(w: &World<'_>) {
    let suspended = w.driven().await;
    w.store.suspend(suspend(RunRef::Held(suspended.clone()), w.asks(&["a"]))).await.unwrap();
    refused_everywhere(w, &suspended).await;
    assert_eq!(w.status(&suspended.run_id).await, RunStatus::Suspended);

    let parked = w.driven().await;
    w.store.park(Park { lease: parked.clone(), reason: "changed".to_owned() }).await.unwrap();
    refused_everywhere(w, &parked).await;
    assert_eq!(w.status(&parked.run_id).await, RunStatus::Parked);

    let released = w.driven().await;
    w.store.release(&released).await.unwrap();
    refused_everywhere(w, &released).await;
    assert_eq!(w.run(&released.run_id).await.lease_until, None);
}

async fn a_lease_that_ran_out_but_was_not_taken_over_still_writes(w: &World<'_>) {
    let recording = w.driven().await;
    let finishing = w.driven().await;
    let suspending = w.driven().await;
    let parking = w.driven().await;
    let releasing = w.driven().await;
    w.advance(LEASE * 10);

    w.store.record(Record { entries: vec![bytes("e")], ..record(&recording) }).await.unwrap();
    w.complete(&finishing, 0).await;
    w.store.suspend(suspend(RunRef::Held(suspending), w.asks(&["a"]))).await.unwrap();
    w.store.park(Park { lease: parking, reason: "changed".to_owned() }).await.unwrap();
    w.store.release(&releasing).await.unwrap();
    w.complete(&recording, 0).await;
}

async fn a_lease_that_ran_out_is_alive_again_once_renewed(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    w.advance(LEASE + MARGIN);
    let renewed = w.store.renew(&lease, LEASE, 0).await.unwrap().lease;
    assert!(w.claim().await.is_empty());
    driven(w.answer(&open[0], "yes").await);
    assert_eq!(renewed.fence, lease.fence);
}

async fn renewing_counts_from_now_and_hands_over_what_is_new(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b"])).await;
    driven(w.answer(&open[0], "one").await);
    w.advance(LEASE / 2);
    let now = w.store.now().await.unwrap();

    let renewed = w.store.renew(&lease, LEASE, 0).await.unwrap();

    assert!(renewed.lease.until >= now.saturating_add(LEASE));
    assert_eq!((renewed.lease.fence, &renewed.lease.run_id), (lease.fence, &lease.run_id));
    assert_eq!((renewed.answers.len(), renewed.answers[0].answer.clone()), (1, text("one")));
    assert!(!renewed.cancel_requested);
    let run = w.run(&lease.run_id).await;
    assert_eq!((run.lease_until, run.fence), (Some(renewed.lease.until), lease.fence));
    w.advance(LEASE / 2 + MARGIN);
    assert!(w.claim().await.is_empty(), "it lives on");
    driven(w.answer(&open[1], "two").await);
    w.cancel(&lease.run_id).await;
    let renewed = w.store.renew(&renewed.lease, LEASE, 1).await.unwrap();
    assert_eq!((renewed.answers.len(), renewed.answers[0].seq), (1, 2));
    assert!(renewed.cancel_requested);
}

async fn every_grant_has_a_higher_fence(w: &World<'_>) {
    let paused = w.paused(&["a", "b", "c"]).await;
    let mut fences = vec![w.run(&paused.run.run_id).await.fence];
    let first = granted(w.answer(&paused.open[0], "yes").await).lease;
    fences.push(first.fence);
    w.store.release(&first).await.unwrap();
    let second = w.claim().await.remove(0).lease;
    fences.push(second.fence);
    w.store.suspend(Suspend { answers_seen: 1, ..suspend(RunRef::Held(second), Vec::new()) }).await.unwrap();
    let third = granted(w.answer(&paused.open[1], "yes").await).lease;
    fences.push(third.fence);
    w.advance(LEASE + MARGIN);
    fences.push(granted(w.answer(&paused.open[2], "yes").await).lease.fence);
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

async fn b048_a_live_lease_is_never_taken_over(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b"])).await;
    w.advance(LEASE.saturating_sub(MARGIN));
    assert!(w.claim().await.is_empty());
    driven(w.answer(&open[0], "yes").await);
    w.advance(MARGIN);
    assert!(w.store.now().await.unwrap() >= lease.until, "its very last moment");
    let claimed = w.claim().await.remove(0);
    assert_eq!(claimed.run.run_id, lease.run_id);
    w.advance(LEASE);
    granted(w.answer(&open[1], "yes").await);
}

async fn a_released_run_can_be_claimed_at_once(w: &World<'_>) {
    let lease = w.driven().await;
    w.store.release(&lease).await.unwrap();
    let run = w.run(&lease.run_id).await;
    assert_eq!((run.status, run.lease_until), (RunStatus::Running, None));
    assert_eq!(w.claim().await.len(), 1);
}

async fn b094_of_many_concurrent_claims_one_gets_the_run(w: &World<'_>) {
    const RUNS: usize = 12;
    let stores = w.instances().await;
    for _ in 0..RUNS {
        let paused = w.paused(&["a"]).await;
        left(w.answer_and_leave(&paused.open[0], "yes").await);
    }
    let claimed = at_once((0..8).map(|i| {
        let store = stores[i % stores.len()].clone();
        async move {
            let mut all = Vec::new();
            for _ in 0..=RUNS {
                let request = crate::ClaimRequest { limit: 3, ..claim_request() };
                let some = store.claim_orphans(request).await.unwrap();
                if some.is_empty() {
                    return all;
                }
                assert!(some.len() <= 3);
                all.extend(some.into_iter().map(|claimed| claimed.run.run_id));
            }
            panic!("claimed runs are handed out again and again");
        }
    }))
    .await;
    let mut claimed: Vec<_> = claimed.into_iter().flatten().collect();
    assert_eq!(claimed.len(), RUNS);
    claimed.sort();
    claimed.dedup();
    assert_eq!(claimed.len(), RUNS, "no run twice");
}

async fn b112_a_driver_learns_of_answers_by_asking_alone(w: &World<'_>) {
    let mut signals = w.store.signals();
    drop(w.store.signals());
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    let stores = w.instances().await;
    let request = AnswerRequest { answers: vec![answer(&open[0], "yes")], driver: Some(driver()) };
    driven(stores[stores.len() - 1].answer(request).await.unwrap());

    assert_eq!(w.store.renew(&lease, LEASE, 0).await.unwrap().answers.len(), 1);
    while let Ok(signal) = signals.try_recv() {
        assert!(matches!(&signal, Signal::Work) || signal == Signal::Attention(lease.run_id.clone()));
    }
}
