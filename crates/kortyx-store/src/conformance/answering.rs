//! Answering one question: every outcome, and who drives then.

use super::{
    case::{Case, list},
    outcome::{assert_same, driven, duplicate, error_kind, granted, left, refusal},
    world::{LEASE, MARGIN, OPEN_FOR, World, answer, bytes, driver, finish, record, suspend, text},
};
use crate::{
    AnswerRequest, AskKey, InterruptStatus, NewAnswer, NewInterrupt, Proof, Receipt, Record, Refusal, RunRef,
    RunStatus, Scope, StoreErrorKind, Suspend, TerminalStatus,
};

list![
    an_accepted_answer_closes_its_question_and_hands_over_the_run,
    b114_the_actor_is_kept_with_the_answer,
    b180_from_its_acceptance_on_an_answered_question_is_not_open,
    an_answer_without_a_driver_is_left_to_workers,
    b105_an_answer_that_nobody_was_told_of_is_found_by_a_worker,
    an_answer_to_a_driven_run_leaves_the_lease_alone,
    an_answer_after_the_driver_died_takes_the_run_over,
    a_second_answer_to_a_run_that_was_left_hands_over_both,
    a_second_answer_gets_the_first_receipt,
    a_duplicate_of_an_ended_run_gets_its_outcome,
    b062_the_same_answer_by_another_proof_is_a_duplicate,
    a_different_answer_is_a_conflict_that_names_the_first,
    b108_a_deadline_is_absolute_and_refuses_at_its_very_moment,
    an_answer_after_a_default_applied_is_expired,
    an_answer_to_a_question_of_an_ended_run_is_superseded,
    b024_an_unknown_question_is_refused,
    b015_a_wrong_secret_is_as_unknown_as_no_question,
    an_answer_that_means_another_run_is_unknown,
    an_answer_from_another_session_is_refused_and_consumes_nothing,
    the_secret_is_checked_before_the_session_and_the_session_before_the_status,
    b124_a_refused_answer_leaves_the_question_open,
    an_answer_by_scope_needs_no_token,
    b113_an_answer_from_outside_the_scope_is_unknown,
    an_answer_by_an_empty_scope_is_an_error,
    an_answer_to_a_question_that_may_be_cancelled_can_be_a_cancellation,
];

async fn an_accepted_answer_closes_its_question_and_hands_over_the_run(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let before = w.store.now().await.unwrap();

    let claimed = granted(w.answer(&paused.open[0], "yes").await);

    assert_eq!(claimed.run, w.run(&paused.run.run_id).await);
    assert_eq!((claimed.run.status, claimed.run.answers), (RunStatus::Running, 1));
    assert_eq!(claimed.run.lease_until, Some(claimed.lease.until));
    assert_eq!((claimed.run.fence, &claimed.run.run_id), (claimed.lease.fence, &claimed.lease.run_id));
    assert!(claimed.lease.until >= before.saturating_add(LEASE));
    assert_eq!((claimed.snapshot, claimed.entries.len()), (bytes("suspended"), 0));
    let given = &claimed.answers[0];
    assert_eq!((claimed.answers.len(), given.seq, given.ask.clone()), (1, 1, AskKey("a".to_owned())));
    assert_eq!((&given.answer, given.by_default), (&text("yes"), false));
    let stored = w.question(&paused.open[0].request_id).await;
    assert_eq!((stored.status, stored.answer), (InterruptStatus::Answered, Some(text("yes"))));
    let receipt = stored.receipt.expect("a receipt");
    assert_eq!((receipt.seq, receipt.at, &receipt.run_id), (1, given.at, &paused.run.run_id));
    assert!(receipt.at >= before);
    assert_eq!(w.question_status(&paused.open[1]).await, InterruptStatus::Pending);
}

async fn b114_the_actor_is_kept_with_the_answer(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let by_ben = NewAnswer { actor: Some("ben@example.com".to_owned()), ..answer(&paused.open[0], "yes") };
    let by_nobody = NewAnswer { actor: None, ..answer(&paused.open[1], "yes") };

    let first = granted(w.answer_all(vec![by_ben]).await);
    let second = driven(w.answer_all(vec![by_nobody]).await);

    assert_eq!(first.answers[0].actor.as_deref(), Some("ben@example.com"));
    let receipt = w.question(&paused.open[0].request_id).await.receipt.unwrap();
    assert_eq!(receipt.actor.as_deref(), Some("ben@example.com"));
    assert_eq!(second[0].actor, None);
}

async fn b180_from_its_acceptance_on_an_answered_question_is_not_open(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    left(w.answer_and_leave(&paused.open[0], "yes").await);
    for store in w.instances().await {
        let question = store.interrupt(&paused.open[0].request_id).await.unwrap().unwrap();
        assert_eq!(question.status, InterruptStatus::Answered);
        assert_eq!(store.run(&paused.run.run_id).await.unwrap().unwrap().status, RunStatus::Running);
    }
    assert!(w.open(&paused.run.run_id).await.is_empty());
}

async fn an_answer_without_a_driver_is_left_to_workers(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;

    let receipts = left(w.answer_and_leave(&paused.open[0], "yes").await);

    assert_eq!((receipts[0].seq, &receipts[0].request_id), (1, &paused.open[0].request_id));
    let run = w.run(&paused.run.run_id).await;
    assert_eq!((run.status, run.lease_until, run.answers), (RunStatus::Running, None, 1));
}

async fn b105_an_answer_that_nobody_was_told_of_is_found_by_a_worker(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    left(w.answer_and_leave(&paused.open[1], "yes").await);

    let claimed = w.claim().await;

    assert_eq!((claimed.len(), &claimed[0].run.run_id), (1, &paused.run.run_id));
    assert_eq!((claimed[0].answers[0].seq, claimed[0].answers[0].answer.clone()), (1, text("yes")));
    assert!(w.claim().await.is_empty(), "it is driven now");
}

async fn an_answer_to_a_driven_run_leaves_the_lease_alone(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    driven(w.answer(&open[0], "yes").await);
    let run = w.run(&lease.run_id).await;
    assert_eq!((run.status, run.fence, run.lease_until), (RunStatus::Running, lease.fence, Some(lease.until)));
}

async fn an_answer_after_the_driver_died_takes_the_run_over(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    w.store.record(Record { entries: vec![bytes("e1"), bytes("e2")], ..record(&lease) }).await.unwrap();
    w.advance(LEASE + MARGIN);

    let claimed = granted(w.answer(&open[0], "yes").await);

    assert!(claimed.lease.fence > lease.fence);
    assert_eq!((claimed.snapshot, claimed.entries), (bytes("opened"), vec![bytes("e1"), bytes("e2")]));
    assert_eq!(claimed.answers.len(), 1);
}

async fn a_second_answer_to_a_run_that_was_left_hands_over_both(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    left(w.answer_and_leave(&paused.open[1], "one").await);

    let claimed = granted(w.answer(&paused.open[0], "two").await);

    let seen: Vec<_> = claimed.answers.iter().map(|a| (a.seq, a.ask.0.as_str(), a.answer.clone())).collect();
    assert_eq!(seen, [(1, "b", text("one")), (2, "a", text("two"))]);
}

async fn a_second_answer_gets_the_first_receipt(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    left(w.answer_and_leave(&paused.open[0], "yes").await);
    let first = w.question(&paused.open[0].request_id).await.receipt.unwrap();
    let before = w.run(&paused.run.run_id).await;
    w.advance(MARGIN);

    let again = NewAnswer { actor: Some("ben".to_owned()), ..answer(&paused.open[0], "yes") };
    let (receipts, run) = duplicate(w.answer_all(vec![again]).await);

    assert_eq!(receipts, [first]);
    assert_eq!(run, before, "a duplicate grants nothing and changes nothing");
    assert_eq!(w.run(&paused.run.run_id).await, before);
    assert_eq!(w.claim().await[0].answers.len(), 1);
    w.advance(OPEN_FOR * 2);
    duplicate(w.answer(&paused.open[0], "yes").await);
}

async fn a_duplicate_of_an_ended_run_gets_its_outcome(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    w.complete(&claimed.lease, 1).await;

    let (receipts, run) = duplicate(w.answer(&paused.open[0], "yes").await);

    assert_eq!((receipts[0].seq, receipts[0].at), (1, claimed.answers[0].at));
    assert_eq!((run.status, run.outcome), (RunStatus::Completed, Some(bytes("outcome"))));
}

async fn b062_the_same_answer_by_another_proof_is_a_duplicate(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    granted(w.answer(&paused.open[0], "yes").await);
    let by_scope = NewAnswer {
        proof: Proof::Scope(Scope::session(paused.run.session_id.clone())),
        session_id: Some(paused.run.session_id.clone()),
        run_id: Some(paused.run.run_id.clone()),
        ..answer(&paused.open[0], "yes")
    };
    duplicate(w.answer_all(vec![by_scope]).await);
}

async fn a_different_answer_is_a_conflict_that_names_the_first(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    let first = Receipt {
        request_id: paused.open[0].request_id.clone(),
        run_id: paused.run.run_id.clone(),
        seq: 1,
        at: claimed.answers[0].at,
        actor: Some("ann".to_owned()),
    };

    assert_eq!(refusal(w.answer(&paused.open[0], "no").await), Refusal::Conflict(first.clone()));
    let spaced = NewAnswer { answer: bytes(r#"{"text": "yes","type":"text"}"#), ..answer(&paused.open[0], "") };
    assert_eq!(refusal(w.answer_all(vec![spaced]).await), Refusal::Conflict(first.clone()), "bytes decide");
    w.complete(&claimed.lease, 1).await;
    assert_eq!(refusal(w.answer(&paused.open[0], "no").await), Refusal::Conflict(first));
    assert_eq!(w.question(&paused.open[0].request_id).await.answer, Some(text("yes")));
}

async fn b108_a_deadline_is_absolute_and_refuses_at_its_very_moment(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b", "c"])).await;
    w.advance(OPEN_FOR / 2);
    let claimed = w.claim().await.remove(0);
    w.store.suspend(suspend(RunRef::Held(claimed.lease), w.asks(&["later"]))).await.unwrap();
    assert_eq!(w.question(&open[0].request_id).await.expires_at, open[0].expires_at, "recovery does not renew it");

    w.advance((OPEN_FOR / 2).saturating_sub(MARGIN));
    granted(w.answer(&open[0], "in time").await);
    w.advance(MARGIN);

    assert!(w.store.now().await.unwrap() >= open[1].expires_at);
    assert_eq!(w.question_status(&open[1]).await, InterruptStatus::Expired, "before anybody closes it");
    assert_eq!(refusal(w.answer(&open[1], "late").await), Refusal::Expired);
    assert_eq!(w.open(&lease.run_id).await.len(), 1, "only the one asked later is open");
    w.expire().await;
    assert_eq!(refusal(w.answer(&open[1], "late").await), Refusal::Expired);
    assert_eq!(w.question_status(&open[0]).await, InterruptStatus::Answered, "an answer does not expire");
}

async fn an_answer_after_a_default_applied_is_expired(w: &World<'_>) {
    let asked = NewInterrupt { default: Some(text("no")), ..w.ask("a") };
    let paused = w.paused_run(w.new_run(), vec![asked]).await;
    w.advance(OPEN_FOR);
    assert_eq!(refusal(w.answer(&paused.open[0], "no").await), Refusal::Expired, "due, not yet closed");
    assert_eq!(w.expire().await.claimed.len(), 1);

    assert_eq!(refusal(w.answer(&paused.open[0], "no").await), Refusal::Expired, "not a duplicate");
    assert_eq!(refusal(w.answer(&paused.open[0], "yes").await), Refusal::Expired, "not a conflict");
}

async fn an_answer_to_a_question_of_an_ended_run_is_superseded(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    let ended = crate::Finish { answers_seen: 1, ..finish(RunRef::Held(claimed.lease), TerminalStatus::Failed) };
    w.store.finish(ended).await.unwrap();

    assert_eq!(refusal(w.answer(&paused.open[1], "late").await), Refusal::Superseded);
    assert_eq!(w.status(&paused.run.run_id).await, RunStatus::Failed);
}

async fn b024_an_unknown_question_is_refused(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let unknown = NewAnswer { request_id: w.request_id(), ..answer(&paused.open[0], "yes") };
    assert_eq!(refusal(w.answer_all(vec![unknown]).await), Refusal::Unknown);
    assert_eq!(w.status(&paused.run.run_id).await, RunStatus::Suspended);
}

async fn b015_a_wrong_secret_is_as_unknown_as_no_question(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    for token in [w.token(), paused.open[1].token.clone()] {
        let forged = NewAnswer { proof: Proof::Token(token.clone()), ..answer(&paused.open[0], "yes") };
        assert_eq!(refusal(w.answer_all(vec![forged]).await), Refusal::Unknown);
    }
    granted(w.answer(&paused.open[0], "yes").await);
    let replayed = NewAnswer { proof: Proof::Token(w.token()), ..answer(&paused.open[0], "yes") };
    assert_eq!(refusal(w.answer_all(vec![replayed]).await), Refusal::Unknown, "a duplicate needs the secret too");
}

async fn an_answer_that_means_another_run_is_unknown(w: &World<'_>) {
    let (mine, other) = (w.paused(&["a"]).await, w.paused(&["a"]).await);
    let astray = NewAnswer { run_id: Some(other.run.run_id.clone()), ..answer(&mine.open[0], "yes") };
    assert_eq!(refusal(w.answer_all(vec![astray]).await), Refusal::Unknown);
    let aimed = NewAnswer { run_id: Some(mine.run.run_id.clone()), ..answer(&mine.open[0], "yes") };
    granted(w.answer_all(vec![aimed]).await);
}

async fn an_answer_from_another_session_is_refused_and_consumes_nothing(w: &World<'_>) {
    let (mine, other) = (w.paused(&["a"]).await, w.paused(&["a"]).await);
    for session in [other.run.session_id.clone(), w.session_id()] {
        let astray = NewAnswer { session_id: Some(session), ..answer(&mine.open[0], "yes") };
        assert_eq!(refusal(w.answer_all(vec![astray]).await), Refusal::WrongSession);
    }
    let aimed = NewAnswer { session_id: Some(mine.run.session_id.clone()), ..answer(&mine.open[0], "yes") };
    granted(w.answer_all(vec![aimed]).await);
}

async fn the_secret_is_checked_before_the_session_and_the_session_before_the_status(w: &World<'_>) {
    let (mine, other) = (w.paused(&["a", "b"]).await, w.paused(&["a"]).await);
    let claimed = granted(w.answer(&mine.open[0], "yes").await);
    w.complete(&claimed.lease, 1).await;
    for question in &mine.open {
        let session_id = Some(other.run.session_id.clone());
        let astray = NewAnswer { session_id: session_id.clone(), ..answer(question, "no") };
        assert_eq!(refusal(w.answer_all(vec![astray.clone()]).await), Refusal::WrongSession);
        let forged = NewAnswer { proof: Proof::Token(w.token()), ..astray.clone() };
        assert_eq!(refusal(w.answer_all(vec![forged]).await), Refusal::Unknown);
        let elsewhere = NewAnswer { run_id: Some(other.run.run_id.clone()), ..astray };
        assert_eq!(refusal(w.answer_all(vec![elsewhere]).await), Refusal::Unknown);
    }
}

async fn b124_a_refused_answer_leaves_the_question_open(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let before = w.run(&paused.run.run_id).await;
    let forged = NewAnswer { proof: Proof::Token(w.token()), ..answer(&paused.open[0], "yes") };
    w.answer_all(vec![forged]).await;
    let astray = NewAnswer { session_id: Some(w.session_id()), ..answer(&paused.open[0], "yes") };
    w.answer_all(vec![astray]).await;

    assert_eq!(w.run(&paused.run.run_id).await, before);
    assert_same(&paused.open[0], &w.question(&paused.open[0].request_id).await);
    granted(w.answer(&paused.open[0], "yes").await);
}

async fn an_answer_by_scope_needs_no_token(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let scope = Scope::session(paused.run.session_id.clone());
    let by_scope = NewAnswer { proof: Proof::Scope(scope), ..answer(&paused.open[0], "yes") };
    granted(w.answer_all(vec![by_scope]).await);
}

async fn b113_an_answer_from_outside_the_scope_is_unknown(w: &World<'_>) {
    let mut run = w.new_run();
    run.context.insert("tenant".to_owned(), crate::Scalar::Text("acme".into()));
    let paused = w.paused_run(run.clone(), w.asks(&["a"])).await;
    let tenant = |name: &str| Scope::default().with("tenant", crate::Scalar::Text(name.into()));
    let by = |scope: Scope| NewAnswer { proof: Proof::Scope(scope), ..answer(&paused.open[0], "yes") };

    let other_session = Scope { session_id: Some(w.session_id()), ..tenant("acme") };
    for scope in [tenant("globex"), other_session, tenant("acme").with("team", crate::Scalar::Int(1))] {
        assert_eq!(refusal(w.answer_all(vec![by(scope)]).await), Refusal::Unknown);
    }
    assert_eq!(w.status(&run.run_id).await, RunStatus::Suspended);
    granted(w.answer_all(vec![by(tenant("acme"))]).await);
    assert_eq!(refusal(w.answer_all(vec![by(tenant("globex"))]).await), Refusal::Unknown, "nor is it a duplicate");
}

async fn an_answer_by_an_empty_scope_is_an_error(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let by_all = NewAnswer { proof: Proof::Scope(Scope::default()), ..answer(&paused.open[0], "yes") };
    let request = AnswerRequest { answers: vec![by_all], driver: Some(driver()) };
    assert_eq!(error_kind(w.store.answer(request).await), StoreErrorKind::ScopeRequired);
    assert_eq!(w.status(&paused.run.run_id).await, RunStatus::Suspended);
}

async fn an_answer_to_a_question_that_may_be_cancelled_can_be_a_cancellation(w: &World<'_>) {
    let asked = NewInterrupt { optional_cancel: true, ..w.ask("a") };
    let paused = w.paused_run(w.new_run(), vec![asked, w.ask("b")]).await;

    let claimed = granted(w.answer_all(vec![super::world::cancellation(&paused.open[0])]).await);

    assert_eq!(claimed.answers[0].answer, bytes(r#"{"type":"cancel"}"#));
    assert_eq!(w.question_status(&paused.open[0]).await, InterruptStatus::Answered);
    assert_eq!(w.open(&paused.run.run_id).await.len(), 1, "the run goes on");
    let request = Suspend { answers_seen: 1, ..suspend(RunRef::Held(claimed.lease), Vec::new()) };
    w.store.suspend(request).await.unwrap();
}
