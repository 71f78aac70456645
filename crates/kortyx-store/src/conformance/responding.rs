//! Responses that are complete while their runs go on.

use std::time::Duration;

use bytes::Bytes;

use super::{
    case::{Case, list},
    outcome::{duplicate, error_kind, granted, rolled_back},
    world::{LEASE, MARGIN, World, answer, at_once, bytes, driver, finish, ids, keys, record, saved, suspend},
};
use crate::{
    CheckpointRecord, Finish, Finished, Fork, ForkOutcome, Lease, NewCheckpoint, NewInterrupt, NewResponse, NewRun,
    Record, Retention, Rollback, RollbackOutcome, RunRef, RunStatus, StoreErrorKind, Suspend, TerminalStatus,
};

list![
    a_response_is_complete_with_all_that_its_record_brings,
    a_response_without_a_checkpoint_leaves_its_session_alone,
    a_second_response_is_refused_with_all_that_its_record_brings,
    a_response_under_a_lost_lease_leaves_nothing,
    a_response_that_is_refused_leaves_nothing,
    a_response_outlives_its_driver_and_what_its_run_does_later,
    what_a_response_ended_with_is_kept_byte_for_byte,
    responses_and_turns_of_a_session_make_one_chain,
    a_rollback_behind_a_response_takes_its_turn_back,
    a_rollback_to_the_turn_of_a_response_ends_its_run,
    a_fork_from_the_turn_of_a_response_has_its_state_and_no_run,
    a_response_goes_with_its_run,
];

fn outcome() -> NewResponse {
    NewResponse { outcome: bytes("thanks"), checkpoint: None }
}

/// A response that leaves this checkpoint behind.
fn leaving(checkpoint: &NewCheckpoint) -> NewResponse {
    NewResponse { checkpoint: Some(checkpoint.clone()), ..outcome() }
}

/// Completes the response of a driven run.
async fn complete(w: &World<'_>, lease: &Lease, response: NewResponse) {
    w.store.record(Record { response: Some(response), ..record(lease) }).await.unwrap();
}

/// A run that is driven on after its response, and the checkpoints before it and of it.
async fn responded(w: &World<'_>) -> (NewRun, Lease, [CheckpointRecord; 2]) {
    let run = w.new_run();
    let start = w.append(&run.session_id, "session start").await;
    let lease = w.driven_run(run.clone()).await;
    complete(w, &lease, leaving(&w.new_checkpoint("turn"))).await;
    let head = w.store.head(&run.session_id).await.unwrap().unwrap();
    (run, lease, [start, head])
}

/// What a reader learns of a run's response, and whether those who follow the run learn that it is complete.
async fn response(w: &World<'_>, run: &NewRun) -> (Option<Bytes>, bool) {
    let page = w.store.chunks(&run.run_id, 0, 0).await.unwrap().unwrap();
    (w.run(&run.run_id).await.response, page.response_completed)
}

async fn a_response_is_complete_with_all_that_its_record_brings(w: &World<'_>) {
    let run = w.new_run();
    let start = w.append(&run.session_id, "session start").await;
    let lease = w.driven_run(run.clone()).await;
    let before = w.published(&lease, w.asks(&["a"])).await;
    assert_eq!(response(w, &run).await, (None, false));
    let checkpoint = w.new_checkpoint("turn");

    let request = Record {
        entries: vec![bytes("entry")],
        chunks: vec![bytes("chunk")],
        publish: w.asks(&["b"]),
        response: Some(leaving(&checkpoint)),
        ..record(&lease)
    };
    let recorded = w.store.record(request).await.unwrap();

    assert_eq!(keys(&recorded.published), ["b"]);
    for store in w.instances().await {
        assert_eq!(store.run(&run.run_id).await.unwrap().unwrap().response, Some(bytes("thanks")));
        let page = store.chunks(&run.run_id, 0, 10).await.unwrap().unwrap();
        assert_eq!((page.response_completed, page.last, page.status), (true, 1, RunStatus::Running));
        let head = store.head(&run.session_id).await.unwrap().unwrap();
        assert_eq!((&head.checkpoint, head.turn_index), (&checkpoint, 1));
        assert_eq!((&head.parent, &head.run_id), (&Some(start.checkpoint.id.clone()), &Some(run.run_id.clone())));
        assert_eq!((&head.snapshot, head.interrupts.len()), (&None, 0), "the run goes on beside the conversation");
    }
    assert_eq!(w.open(&run.run_id).await, [ids(&before), ids(&recorded.published)].concat());
    let stored = w.run(&run.run_id).await;
    assert_eq!((stored.lease_until, stored.fence), (Some(lease.until), lease.fence));
    w.advance(LEASE + MARGIN);
    assert_eq!(w.claim().await.remove(0).entries, [bytes("entry")]);
}

async fn a_response_without_a_checkpoint_leaves_its_session_alone(w: &World<'_>) {
    let run = w.new_run();
    let lease = w.driven_run(run.clone()).await;
    complete(w, &lease, outcome()).await;
    assert_eq!(response(w, &run).await, (Some(bytes("thanks")), true));
    assert!(w.store.head(&run.session_id).await.unwrap().is_none());
}

async fn a_second_response_is_refused_with_all_that_its_record_brings(w: &World<'_>) {
    let (run, lease, [_, head]) = responded(w).await;
    let publish = w.asks(&["a"]);
    for second in [outcome(), NewResponse { outcome: bytes("again"), ..leaving(&w.new_checkpoint("again")) }] {
        let request = Record {
            entries: vec![bytes("entry")],
            chunks: vec![bytes("chunk")],
            publish: publish.clone(),
            response: Some(second),
            ..record(&lease)
        };
        assert_eq!(error_kind(w.store.record(request).await), StoreErrorKind::InvalidRequest);
    }
    assert_eq!(response(w, &run).await, (Some(bytes("thanks")), true));
    assert_eq!(w.store.head(&run.session_id).await.unwrap().unwrap().checkpoint, head.checkpoint);
    assert_eq!(w.store.chunks(&run.run_id, 0, 10).await.unwrap().unwrap().last, 0);
    assert!(w.open(&run.run_id).await.is_empty());
    w.store.record(Record { publish, ..record(&lease) }).await.unwrap();
    w.store.release(&lease).await.unwrap();
    let claimed = w.claim().await.remove(0);
    assert!(claimed.entries.is_empty());
    let again = Record { response: Some(outcome()), ..record(&claimed.lease) };
    assert_eq!(error_kind(w.store.record(again).await), StoreErrorKind::InvalidRequest, "nor by another driver");
}

async fn a_response_under_a_lost_lease_leaves_nothing(w: &World<'_>) {
    let run = w.new_run();
    let lease = w.driven_run(run.clone()).await;
    w.advance(LEASE + MARGIN);
    let claimed = w.claim().await.remove(0);
    let late = Record { response: Some(leaving(&w.new_checkpoint("turn"))), ..record(&lease) };

    assert_eq!(error_kind(w.store.record(late).await), StoreErrorKind::LeaseLost);

    assert_eq!(response(w, &run).await, (None, false));
    assert!(w.store.head(&run.session_id).await.unwrap().is_none());
    complete(w, &claimed.lease, outcome()).await;
}

async fn a_response_that_is_refused_leaves_nothing(w: &World<'_>) {
    let run = w.new_run();
    let start = w.append(&run.session_id, "session start").await;
    let lease = w.driven_run(run.clone()).await;
    let asked = w.paused(&["a"]).await.open.remove(0);
    let taken = NewInterrupt { request_id: asked.request_id, ..w.ask("b") };
    let requests = [
        Record { response: Some(leaving(&start.checkpoint)), entries: vec![bytes("entry")], ..record(&lease) },
        Record { response: Some(leaving(&w.new_checkpoint("turn"))), publish: vec![taken], ..record(&lease) },
    ];
    for request in requests {
        assert_eq!(error_kind(w.store.record(request).await), StoreErrorKind::AlreadyExists);
    }
    assert_eq!(response(w, &run).await, (None, false));
    let head = w.store.head(&run.session_id).await.unwrap().unwrap();
    assert_eq!((head.checkpoint, head.turn_index), (start.checkpoint, 0));
    w.store.release(&lease).await.unwrap();
    assert!(w.claim().await.remove(0).entries.is_empty());
}

async fn a_response_outlives_its_driver_and_what_its_run_does_later(w: &World<'_>) {
    let (run, _, _) = responded(w).await;
    let thanks = (Some(bytes("thanks")), true);
    w.advance(LEASE + MARGIN);
    let claimed = w.claim().await.remove(0);
    assert_eq!(claimed.run.response, None, "what transitions hand out is without it");
    let later = NewInterrupt { after_response_completed: true, ..w.ask("later") };
    let open = saved(w.store.suspend(suspend(RunRef::Held(claimed.lease), vec![later])).await.unwrap());
    assert_eq!(response(w, &run).await, thanks);
    let claimed = granted(w.answer(&open[0], "yes").await);
    assert_eq!(claimed.run.response, None);
    let end = finish(RunRef::Held(claimed.lease), TerminalStatus::Completed);
    assert_eq!(w.store.finish(Finish { answers_seen: 1, ..end }).await.unwrap(), Finished::Done);

    let ended = w.run(&run.run_id).await;
    assert_eq!((ended.outcome, ended.status), (Some(bytes("outcome")), RunStatus::Completed));
    assert_eq!(response(w, &run).await, thanks);
    assert_eq!(duplicate(w.answer(&open[0], "yes").await).1.response, None);
}

async fn what_a_response_ended_with_is_kept_byte_for_byte(w: &World<'_>) {
    for kept in [Bytes::new(), Bytes::from_static(b"\0\xff\r\n"), Bytes::from(vec![7; 1 << 20])] {
        let run = w.new_run();
        let lease = w.driven_run(run.clone()).await;
        complete(w, &lease, NewResponse { outcome: kept.clone(), checkpoint: None }).await;
        assert_eq!(response(w, &run).await, (Some(kept), true));
    }
}

async fn responses_and_turns_of_a_session_make_one_chain(w: &World<'_>) {
    let (stores, session) = (w.instances().await, w.session_id());
    let mut leases = Vec::new();
    for _ in 0..8 {
        leases.push(w.driven_run(w.new_run_in(&session)).await);
    }
    at_once(leases.into_iter().enumerate().map(|(i, lease)| {
        let (store, session) = (stores[i % stores.len()].clone(), session.clone());
        let (turn, other) = (leaving(&w.new_checkpoint("response")), w.new_checkpoint("turn"));
        async move {
            store.record(Record { response: Some(turn), ..record(&lease) }).await.unwrap();
            store.append_checkpoint(&session, other).await.unwrap();
        }
    }))
    .await;

    let listed = w.store.list_checkpoints(&session).await.unwrap();
    assert_eq!(listed.iter().map(|c| c.turn_index).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
    for pair in listed.windows(2) {
        assert_eq!(pair[1].parent.as_ref(), Some(&pair[0].checkpoint.id));
    }
}

fn back_to(w: &World<'_>, checkpoint: &CheckpointRecord) -> Rollback {
    Rollback { checkpoint_id: checkpoint.checkpoint.id.clone(), new_run_id: w.run_id(), reissue: Vec::new() }
}

async fn a_rollback_behind_a_response_takes_its_turn_back(w: &World<'_>) {
    let (run, lease, [start, turn]) = responded(w).await;
    let outcome = w.store.rollback(back_to(w, &start)).await.unwrap();
    assert!(matches!(&outcome, RollbackOutcome::Driven(driven) if *driven == run.run_id), "{outcome:?}");
    w.store.suspend(suspend(RunRef::Held(lease), w.asks(&["later"]))).await.unwrap();

    let outcome = w.store.rollback(back_to(w, &start)).await.unwrap();

    let RollbackOutcome::Done { abandoned, superseded, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(abandoned.iter().map(|c| &c.checkpoint.id).collect::<Vec<_>>(), [&turn.checkpoint.id]);
    assert_eq!(keys(&superseded), ["later"]);
    assert_eq!(w.store.head(&run.session_id).await.unwrap().unwrap().checkpoint, start.checkpoint);
    assert_eq!(w.status(&run.run_id).await, RunStatus::Cancelled);
    assert_eq!(response(w, &run).await, (Some(bytes("thanks")), true), "it was said all the same");
}

async fn a_rollback_to_the_turn_of_a_response_ends_its_run(w: &World<'_>) {
    let (run, lease, [_, turn]) = responded(w).await;
    w.store.suspend(suspend(RunRef::Held(lease), w.asks(&["later"]))).await.unwrap();
    w.append(&run.session_id, "next").await;
    let request = back_to(w, &turn);

    assert!(rolled_back(w.store.rollback(request.clone()).await.unwrap()).is_empty());

    assert_eq!(w.store.head(&run.session_id).await.unwrap().unwrap().checkpoint, turn.checkpoint);
    assert_eq!(w.store.run(&request.new_run_id).await.unwrap(), None);
    assert_eq!(w.status(&run.run_id).await, RunStatus::Cancelled);
}

async fn a_fork_from_the_turn_of_a_response_has_its_state_and_no_run(w: &World<'_>) {
    let (run, lease, [_, turn]) = responded(w).await;
    let fork = Fork {
        checkpoint_id: turn.checkpoint.id.clone(),
        new_session_id: w.session_id(),
        new_checkpoint_id: w.checkpoint_id(),
        new_run_id: w.run_id(),
        reissue: Vec::new(),
    };

    let outcome = w.store.fork(fork.clone()).await.unwrap();

    let ForkOutcome::Done { checkpoint, interrupts } = outcome else { panic!("{outcome:?}") };
    assert_eq!((&checkpoint.checkpoint.state, interrupts.len()), (&turn.checkpoint.state, 0));
    assert_eq!((checkpoint.parent_session, checkpoint.forked_from), (Some(run.session_id), Some(turn.checkpoint.id)));
    assert_eq!(w.store.run(&fork.new_run_id).await.unwrap(), None);
    w.store.record(record(&lease)).await.unwrap();
}

async fn a_response_goes_with_its_run(w: &World<'_>) {
    let (run, lease, [_, turn]) = responded(w).await;
    let end = finish(RunRef::Held(lease), TerminalStatus::Completed);
    w.store.finish(end).await.unwrap();
    let retention = Retention { finished_runs: Duration::from_secs(1), ..Retention::default() };
    w.advance(Duration::from_secs(1) + MARGIN);
    assert_eq!(w.store.prune(&retention, 100).await.unwrap().runs, 1);
    assert_eq!(w.store.run(&run.run_id).await.unwrap(), None);
    assert_eq!(w.store.head(&run.session_id).await.unwrap().unwrap().checkpoint, turn.checkpoint);

    // Who takes the id anew has yet to say something.
    let pause = suspend(RunRef::New(run.clone(), driver()), w.asks(&["a"]));
    let open = saved(w.store.suspend(Suspend { chunks: vec![bytes("1")], ..pause }).await.unwrap());
    assert_eq!(response(w, &run).await, (None, false));
    let claimed = granted(w.answer_all(vec![answer(&open[0], "yes")]).await);
    complete(w, &claimed.lease, outcome()).await;
    assert_eq!(response(w, &run).await, (Some(bytes("thanks")), true));
}
