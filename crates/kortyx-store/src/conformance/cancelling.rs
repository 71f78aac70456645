//! Cancelling a run, a session, or by way of an answer.

use super::{
    case::{Case, list},
    outcome::{accepted, driven, duplicate, error_kind, granted, lease_lost, left, refusal},
    world::{LEASE, MARGIN, World, answer, cancel_request, cancellation, ids, record},
};
use crate::{
    AnswerRequest, CancelOutcome, CancelRequest, CancelTarget, Drive, InterruptStatus, Refusal, RunStatus, Scalar,
    Scope, StoreErrorKind,
};

list![
    b167_a_run_that_waits_is_cancelled_at_once_and_everywhere,
    cancelling_again_says_how_the_run_ended,
    a_driven_run_is_asked_to_stop,
    a_run_that_nobody_drives_is_cancelled_at_once,
    a_parked_run_can_be_cancelled,
    b168_cancelling_a_session_covers_every_run_that_is_not_terminal,
    b113_a_run_outside_the_scope_is_unknown,
    cancelling_what_does_not_exist_yields_nothing,
    cancelling_in_an_empty_scope_is_an_error,
    an_answer_that_cancels_ends_a_run_that_waits,
    an_answer_that_cancels_asks_a_driver_to_stop,
    the_same_cancellation_again_is_a_duplicate,
    a_cancellation_after_an_answer_is_a_conflict,
    no_answer_is_accepted_once_a_run_was_asked_to_stop,
    a_cancellation_needs_proof_like_any_answer,
];

async fn b167_a_run_that_waits_is_cancelled_at_once_and_everywhere(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    w.advance(MARGIN);

    assert_eq!(w.cancel(&paused.run.run_id).await, [CancelOutcome::Cancelled(paused.run.run_id.clone())]);

    for store in w.instances().await {
        let run = store.run(&paused.run.run_id).await.unwrap().unwrap();
        assert_eq!((run.status, run.lease_until), (RunStatus::Cancelled, None));
        assert_eq!(run.reason.as_deref(), Some("not needed"));
        assert!(run.updated_at > run.created_at);
    }
    assert!(w.open(&paused.run.run_id).await.is_empty());
    for question in &paused.open {
        assert_eq!(w.question_status(question).await, InterruptStatus::Cancelled);
        assert_eq!(refusal(w.answer(question, "late").await), Refusal::Cancelled);
    }
    assert!(w.claim().await.is_empty());
}

async fn cancelling_again_says_how_the_run_ended(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    w.cancel(&paused.run.run_id).await;
    let before = w.run(&paused.run.run_id).await;
    w.advance(MARGIN);
    let ended = [CancelOutcome::Ended(paused.run.run_id.clone(), RunStatus::Cancelled)];
    assert_eq!(w.cancel(&paused.run.run_id).await, ended);
    assert_eq!(w.run(&paused.run.run_id).await, before);
}

async fn a_driven_run_is_asked_to_stop(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;

    let requested = [CancelOutcome::Requested(lease.run_id.clone())];
    assert_eq!(w.cancel(&lease.run_id).await, requested);
    assert_eq!(w.cancel(&lease.run_id).await, requested, "asking again changes nothing");

    let run = w.run(&lease.run_id).await;
    assert_eq!((run.status, run.cancel_requested, run.fence), (RunStatus::Running, true, lease.fence));
    assert_eq!(run.lease_until, Some(lease.until));
    assert!(w.store.record(record(&lease)).await.unwrap().cancel_requested);
    assert!(w.store.renew(&lease, LEASE, 0).await.unwrap().cancel_requested);
    assert_eq!(refusal(w.answer(&open[0], "late").await), Refusal::Cancelled);
}

async fn a_run_that_nobody_drives_is_cancelled_at_once(w: &World<'_>) {
    let dead = w.driven().await;
    w.advance(LEASE + MARGIN);
    let released = w.driven().await;
    w.store.release(&released).await.unwrap();
    let paused = w.paused(&["a"]).await;
    left(w.answer_and_leave(&paused.open[0], "yes").await);

    for run_id in [&dead.run_id, &released.run_id, &paused.run.run_id] {
        assert_eq!(w.cancel(run_id).await, [CancelOutcome::Cancelled(run_id.clone())]);
        assert_eq!(w.status(run_id).await, RunStatus::Cancelled);
    }
    lease_lost(w.store.record(record(&dead)).await);
    assert!(w.claim().await.is_empty());
    assert_eq!(w.question_status(&paused.open[0]).await, InterruptStatus::Answered);
}

async fn a_parked_run_can_be_cancelled(w: &World<'_>) {
    let parked = w.parked(&["a"]).await;
    assert_eq!(w.cancel(&parked.run.run_id).await, [CancelOutcome::Cancelled(parked.run.run_id.clone())]);
    assert_eq!(w.status(&parked.run.run_id).await, RunStatus::Cancelled);
    assert_eq!(refusal(w.answer(&parked.open[0], "late").await), Refusal::Cancelled);
}

async fn b168_cancelling_a_session_covers_every_run_that_is_not_terminal(w: &World<'_>) {
    let session = w.session_id();
    let ended = w.driven_run(w.new_run_in(&session)).await;
    w.complete(&ended, 0).await;
    let waiting = w.paused_run(w.new_run_in(&session), w.asks(&["a"])).await;
    let parked = w.driven_run(w.new_run_in(&session)).await;
    w.store.park(crate::Park { lease: parked.clone(), reason: "changed".to_owned() }).await.unwrap();
    let driven = w.driven_run(w.new_run_in(&session)).await;
    let elsewhere = w.paused(&["a"]).await;

    let mut outcomes = w.store.cancel(cancel_request(CancelTarget::Session(session.clone()))).await.unwrap();

    let mut expected = vec![
        CancelOutcome::Cancelled(waiting.run.run_id.clone()),
        CancelOutcome::Cancelled(parked.run_id.clone()),
        CancelOutcome::Requested(driven.run_id.clone()),
    ];
    outcomes.sort_by_key(|outcome| format!("{outcome:?}"));
    expected.sort_by_key(|outcome| format!("{outcome:?}"));
    assert_eq!(outcomes, expected);
    assert_eq!(w.question_status(&waiting.open[0]).await, InterruptStatus::Cancelled);
    assert_eq!(w.status(&ended.run_id).await, RunStatus::Completed);
    assert_eq!(w.status(&elsewhere.run.run_id).await, RunStatus::Suspended);
}

async fn b113_a_run_outside_the_scope_is_unknown(w: &World<'_>) {
    let mut run = w.new_run();
    run.context.insert("tenant".to_owned(), Scalar::Text("acme".into()));
    let paused = w.paused_run(run.clone(), w.asks(&["a"])).await;
    let tenant = |name: &str| Scope::default().with("tenant", Scalar::Text(name.into()));
    let targets = [CancelTarget::Run(run.run_id.clone()), CancelTarget::Session(run.session_id.clone())];

    for target in targets.clone() {
        for scope in [tenant("globex"), Scope::session(w.session_id())] {
            let request = CancelRequest { scope: Some(scope), ..cancel_request(target.clone()) };
            assert!(w.store.cancel(request).await.unwrap().is_empty());
        }
    }
    assert_eq!(w.open(&run.run_id).await, ids(&paused.open));
    let request = CancelRequest { scope: Some(tenant("acme")), ..cancel_request(targets[1].clone()) };
    assert_eq!(w.store.cancel(request).await.unwrap(), [CancelOutcome::Cancelled(run.run_id.clone())]);
    let foreign = CancelRequest { scope: Some(tenant("globex")), ..cancel_request(targets[0].clone()) };
    assert!(w.store.cancel(foreign).await.unwrap().is_empty(), "nor does it say that the run ended");
}

async fn cancelling_what_does_not_exist_yields_nothing(w: &World<'_>) {
    assert!(w.cancel(&w.run_id()).await.is_empty());
    let session = cancel_request(CancelTarget::Session(w.session_id()));
    assert!(w.store.cancel(session).await.unwrap().is_empty());
}

async fn cancelling_in_an_empty_scope_is_an_error(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let targets = [CancelTarget::Run(paused.run.run_id.clone()), CancelTarget::Session(paused.run.session_id.clone())];
    for target in targets {
        let request = CancelRequest { scope: Some(Scope::default()), ..cancel_request(target) };
        assert_eq!(error_kind(w.store.cancel(request).await), StoreErrorKind::ScopeRequired);
    }
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open));
}

async fn an_answer_that_cancels_ends_a_run_that_waits(w: &World<'_>) {
    for parked in [false, true] {
        let paused = if parked { w.parked(&["a", "b"]).await } else { w.paused(&["a", "b"]).await };

        let (receipts, drive) = accepted(w.answer_all(vec![cancellation(&paused.open[0])]).await);

        assert!(matches!(drive, Drive::Ended(RunStatus::Cancelled)), "{drive:?}");
        assert_eq!(receipts[0].request_id, paused.open[0].request_id);
        let run = w.run(&paused.run.run_id).await;
        assert_eq!((run.status, run.lease_until), (RunStatus::Cancelled, None));
        let cancelled = w.question(&paused.open[0].request_id).await;
        assert_eq!((cancelled.status, cancelled.receipt.as_ref()), (InterruptStatus::Cancelled, Some(&receipts[0])));
        assert_eq!(w.question_status(&paused.open[1]).await, InterruptStatus::Cancelled);
        assert_eq!(refusal(w.answer(&paused.open[1], "late").await), Refusal::Cancelled);
        assert!(w.claim().await.is_empty());
    }
}

async fn an_answer_that_cancels_asks_a_driver_to_stop(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b"])).await;

    let receipts = driven(w.answer_all(vec![cancellation(&open[0])]).await);

    assert_eq!(receipts[0].request_id, open[0].request_id);
    let cancelled = w.question(&open[0].request_id).await;
    assert_eq!((cancelled.status, cancelled.receipt.as_ref()), (InterruptStatus::Cancelled, Some(&receipts[0])));
    let run = w.run(&lease.run_id).await;
    assert_eq!((run.status, run.cancel_requested), (RunStatus::Running, true));
    let recorded = w.store.record(record(&lease)).await.unwrap();
    assert!(recorded.cancel_requested && recorded.answers.is_empty(), "a cancellation is no answer to deliver");
    assert_eq!(refusal(w.answer(&open[1], "late").await), Refusal::Cancelled);
}

async fn the_same_cancellation_again_is_a_duplicate(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let (first, _) = accepted(w.answer_all(vec![cancellation(&paused.open[0])]).await);
    let (again, run) = duplicate(w.answer_all(vec![cancellation(&paused.open[0])]).await);
    assert_eq!((again, run.status), (first, RunStatus::Cancelled));
    assert_eq!(refusal(w.answer(&paused.open[0], "yes").await), Refusal::Cancelled);

    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    let first = driven(w.answer_all(vec![cancellation(&open[0])]).await);
    assert_eq!(duplicate(w.answer_all(vec![cancellation(&open[0])]).await).0, first);
}

async fn a_cancellation_after_an_answer_is_a_conflict(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    assert!(matches!(refusal(w.answer_all(vec![cancellation(&paused.open[0])]).await), Refusal::Conflict(_)));
    assert_eq!(w.run(&paused.run.run_id).await, claimed.run);
}

async fn no_answer_is_accepted_once_a_run_was_asked_to_stop(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b"])).await;
    driven(w.answer(&open[0], "yes").await);
    w.cancel(&lease.run_id).await;

    assert_eq!(refusal(w.answer(&open[1], "late").await), Refusal::Cancelled);
    assert_eq!(duplicate(w.answer(&open[0], "yes").await).0[0].seq, 1, "what was accepted stays accepted");
    w.advance(LEASE + MARGIN);
    assert_eq!(refusal(w.answer(&open[1], "late").await), Refusal::Cancelled, "nor once its driver died");
}

async fn a_cancellation_needs_proof_like_any_answer(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let forged = crate::NewAnswer { proof: crate::Proof::Token(w.token()), ..cancellation(&paused.open[0]) };
    assert_eq!(refusal(w.answer_all(vec![forged]).await), Refusal::Unknown);
    let astray = crate::NewAnswer { session_id: Some(w.session_id()), ..cancellation(&paused.open[0]) };
    assert_eq!(refusal(w.answer_all(vec![astray]).await), Refusal::WrongSession);
    let everything = crate::NewAnswer { proof: crate::Proof::Scope(Scope::default()), ..answer(&paused.open[0], "") };
    let request = AnswerRequest { answers: vec![everything], driver: None };
    assert_eq!(error_kind(w.store.answer(request).await), StoreErrorKind::ScopeRequired);
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open));
}
