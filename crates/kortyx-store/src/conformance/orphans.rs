//! Runs whose driver is gone, and runs that were set aside.

use std::time::Duration;

use super::{
    case::{Case, list},
    outcome::{driven, granted, lease_lost, left, refusal},
    world::{LEASE, MARGIN, World, bytes, claim_request, ids, pin, record, text},
};
use crate::{
    CancelOutcome, ClaimRequest, InterruptStatus, NewRun, Park, Record, Refusal, RunRef, RunStatus, Suspend,
    WorkflowPin,
};

list![
    b087_an_orphan_comes_with_everything_it_needs_to_go_on,
    b089_runs_that_wait_or_ended_or_are_driven_are_no_orphans,
    orphans_come_oldest_first_and_no_more_than_asked_for,
    orphans_come_only_to_workers_that_have_their_exact_definition,
    an_orphan_that_was_asked_to_stop_is_closed_rather_than_handed_out,
    b078_an_orphan_can_be_claimed_through_another_connection,
    a_parked_run_keeps_its_questions_and_its_answers,
    a_parked_run_is_left_alone_unless_asked_for,
    an_answer_to_a_parked_run_wakes_it,
    an_answer_to_a_parked_run_may_be_left_to_workers,
    a_run_may_be_parked_again_and_again_without_losing_an_answer,
];

async fn b087_an_orphan_comes_with_everything_it_needs_to_go_on(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let first = granted(w.answer(&paused.open[0], "one").await);
    w.store.record(Record { entries: vec![bytes("e1"), bytes("e2")], ..record(&first.lease) }).await.unwrap();
    driven(w.answer(&paused.open[1], "two").await);
    w.advance(LEASE + MARGIN);

    let claimed = w.claim().await.remove(0);

    assert_eq!(claimed.run, w.run(&paused.run.run_id).await);
    assert_eq!((claimed.lease.fence, claimed.run.lease_until), (claimed.run.fence, Some(claimed.lease.until)));
    assert_eq!((claimed.snapshot, claimed.entries), (bytes("suspended"), vec![bytes("e1"), bytes("e2")]));
    let seen: Vec<_> = claimed.answers.iter().map(|a| (a.seq, a.answer.clone())).collect();
    assert_eq!(seen, [(1, text("one")), (2, text("two"))]);
}

async fn b089_runs_that_wait_or_ended_or_are_driven_are_no_orphans(w: &World<'_>) {
    w.paused(&["a"]).await;
    w.parked(&["a"]).await;
    let ended = w.driven().await;
    w.complete(&ended, 0).await;
    w.advance(LEASE + MARGIN);
    w.driven().await;
    assert!(w.claim().await.is_empty());
}

async fn orphans_come_oldest_first_and_no_more_than_asked_for(w: &World<'_>) {
    let mut expected = Vec::new();
    let other = WorkflowPin { id: "another".into(), ..pin() };
    for i in 0..5 {
        let workflow = if i % 2 == 0 { pin() } else { other.clone() };
        expected.push(w.driven_run(NewRun { workflow, ..w.new_run() }).await.run_id);
        w.advance(Duration::from_secs(1));
    }
    let workflows = vec![other, pin()];
    w.advance(LEASE + MARGIN);

    let none = ClaimRequest { limit: 0, ..claim_request() };
    assert!(w.store.claim_orphans(none).await.unwrap().is_empty());
    let mut claimed = Vec::new();
    for limit in [2, 2, 2] {
        let request = ClaimRequest { limit, workflows: workflows.clone(), ..claim_request() };
        let some = w.store.claim_orphans(request).await.unwrap();
        assert!(some.len() <= 2);
        claimed.extend(some.into_iter().map(|claimed| claimed.run.run_id));
    }

    assert_eq!(claimed, expected);
}

async fn orphans_come_only_to_workers_that_have_their_exact_definition(w: &World<'_>) {
    let other_version = WorkflowPin { version: "2".into(), ..pin() };
    let other_code = WorkflowPin { fingerprint: "ffff".into(), ..pin() };
    let other_id = WorkflowPin { id: "Review".into(), ..pin() };
    for workflow in [&other_version, &other_code, &other_id] {
        w.driven_run(NewRun { workflow: workflow.clone(), ..w.new_run() }).await;
    }
    w.advance(LEASE + MARGIN);

    assert!(w.claim().await.is_empty());
    let nothing = ClaimRequest { workflows: Vec::new(), ..claim_request() };
    assert!(w.store.claim_orphans(nothing).await.unwrap().is_empty());
    let some = ClaimRequest { workflows: vec![pin(), other_id.clone(), other_code.clone()], ..claim_request() };
    let claimed = w.store.claim_orphans(some).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| &claimed.run.workflow).collect::<Vec<_>>(), [&other_code, &other_id]);
}

async fn an_orphan_that_was_asked_to_stop_is_closed_rather_than_handed_out(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    assert_eq!(w.cancel(&lease.run_id).await, [CancelOutcome::Requested(lease.run_id.clone())]);
    w.advance(LEASE + MARGIN);

    assert!(w.claim().await.is_empty());

    let run = w.run(&lease.run_id).await;
    assert_eq!((run.status, run.lease_until), (RunStatus::Cancelled, None));
    assert_eq!(w.question_status(&open[0]).await, InterruptStatus::Cancelled);
    assert_eq!(refusal(w.answer(&open[0], "late").await), Refusal::Cancelled);
    lease_lost(w.store.record(record(&lease)).await);
}

async fn b078_an_orphan_can_be_claimed_through_another_connection(w: &World<'_>) {
    for store in w.instances().await {
        let paused = w.paused(&["a"]).await;
        left(w.answer_and_leave(&paused.open[0], "yes").await);
        let claimed = store.claim_orphans(claim_request()).await.unwrap();
        assert_eq!((claimed.len(), &claimed[0].run.run_id), (1, &paused.run.run_id));
        store.record(record(&claimed[0].lease)).await.unwrap();
        w.complete(&claimed[0].lease, 1).await;
    }
}

async fn a_parked_run_keeps_its_questions_and_its_answers(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    w.store.record(Record { entries: vec![bytes("e1")], ..record(&claimed.lease) }).await.unwrap();
    let reason = r#"{"code":"REPLAY_DIVERGED"}"#;

    w.store.park(Park { lease: claimed.lease.clone(), reason: reason.to_owned() }).await.unwrap();

    let run = w.run(&paused.run.run_id).await;
    assert_eq!((run.status, run.lease_until), (RunStatus::Parked, None));
    assert_eq!(run.reason.as_deref(), Some(reason));
    assert_eq!(w.open(&run.run_id).await, ids(&paused.open[1..]));
    let after = run.updated_at.saturating_add(Duration::from_millis(1));
    let request = ClaimRequest { parked_before: Some(after), ..claim_request() };
    let again = w.store.claim_orphans(request).await.unwrap().remove(0);
    assert_eq!(
        (again.snapshot, again.entries, again.answers),
        (bytes("suspended"), vec![bytes("e1")], claimed.answers)
    );
    assert_eq!((again.run.status, again.run.reason), (RunStatus::Running, None), "it is not set aside any more");
}

async fn a_parked_run_is_left_alone_unless_asked_for(w: &World<'_>) {
    let parked = w.parked(&["a"]).await;
    let at = w.run(&parked.run.run_id).await.updated_at;
    w.advance(MARGIN);
    assert!(w.claim().await.is_empty());
    let too_early = ClaimRequest { parked_before: Some(at), ..claim_request() };
    assert!(w.store.claim_orphans(too_early).await.unwrap().is_empty());
    let after = at.saturating_add(Duration::from_millis(1));
    let without_code = ClaimRequest { workflows: Vec::new(), parked_before: Some(after), ..claim_request() };
    assert!(w.store.claim_orphans(without_code).await.unwrap().is_empty());
    let asked_for = ClaimRequest { parked_before: Some(after), ..claim_request() };
    assert_eq!(w.store.claim_orphans(asked_for.clone()).await.unwrap().len(), 1);
    assert!(w.store.claim_orphans(asked_for).await.unwrap().is_empty(), "it is driven now");
}

async fn an_answer_to_a_parked_run_wakes_it(w: &World<'_>) {
    let parked = w.parked(&["a", "b"]).await;

    let claimed = granted(w.answer(&parked.open[0], "yes").await);

    assert_eq!((claimed.run.status, claimed.answers.len()), (RunStatus::Running, 1));
    assert_eq!(claimed.snapshot, bytes("opened"));
    driven(w.answer(&parked.open[1], "yes").await);
}

async fn an_answer_to_a_parked_run_may_be_left_to_workers(w: &World<'_>) {
    let parked = w.parked(&["a"]).await;
    left(w.answer_and_leave(&parked.open[0], "yes").await);
    assert_eq!(w.status(&parked.run.run_id).await, RunStatus::Running);
    assert_eq!(w.claim().await.remove(0).answers.len(), 1);
}

async fn a_run_may_be_parked_again_and_again_without_losing_an_answer(w: &World<'_>) {
    let parked = w.parked(&["a", "b", "c"]).await;
    for (i, question) in parked.open.iter().enumerate() {
        let claimed = granted(w.answer(question, &i.to_string()).await);
        assert_eq!(claimed.answers.len(), i + 1);
        w.store.park(Park { lease: claimed.lease, reason: format!("attempt {i}") }).await.unwrap();
        assert_eq!(w.run(&parked.run.run_id).await.reason, Some(format!("attempt {i}")));
    }
    let now = w.store.now().await.unwrap().saturating_add(MARGIN);
    let request = ClaimRequest { parked_before: Some(now), ..claim_request() };
    let claimed = w.store.claim_orphans(request).await.unwrap().remove(0);
    let request = Suspend { answers_seen: 3, ..super::world::suspend(RunRef::Held(claimed.lease), w.asks(&["d"])) };
    w.store.suspend(request).await.unwrap();
    assert_eq!(w.run(&parked.run.run_id).await.answers, 3);
}
