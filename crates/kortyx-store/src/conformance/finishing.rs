//! Ending a run.

use super::{
    case::{Case, list},
    outcome::{driven, error_kind, granted, lease_lost, refusal},
    world::{MARGIN, World, answer, bytes, driver, finish, ids, of_run, pin, record, suspend, text},
};
use crate::{
    CancelOutcome, Finish, Finished, InterruptStatus, Refusal, RunRef, RunStatus, StoreErrorKind, TerminalStatus,
    WorkflowPin,
};

list![
    a_finished_run_keeps_its_outcome_and_its_definition,
    a_new_run_is_finished_in_one_transition,
    the_questions_left_over_are_superseded,
    the_questions_of_a_cancelled_run_are_cancelled,
    b072_an_answer_before_the_end_is_handed_to_the_driver,
    b031_no_terminal_status_ever_changes,
    b096_a_terminal_run_takes_no_write,
    a_driver_that_was_asked_to_stop_may_finish_as_it_must,
    a_refused_finish_changes_nothing,
    b179_no_question_of_a_finished_run_is_marked_open,
];

async fn a_finished_run_keeps_its_outcome_and_its_definition(w: &World<'_>) {
    for (status, expected) in [
        (TerminalStatus::Completed, RunStatus::Completed),
        (TerminalStatus::Failed, RunStatus::Failed),
        (TerminalStatus::Cancelled, RunStatus::Cancelled),
    ] {
        let lease = w.driven().await;
        w.advance(MARGIN);
        let workflow = WorkflowPin { version: "2".into(), ..pin() };
        let reason = Some("on request".to_owned());
        let request = Finish { workflow: workflow.clone(), reason, ..finish(RunRef::Held(lease.clone()), status) };

        assert_eq!(w.store.finish(request).await.unwrap(), Finished::Done);

        let run = w.run(&lease.run_id).await;
        assert_eq!((run.status, run.workflow, run.lease_until), (expected, workflow, None));
        assert_eq!((run.outcome, run.reason.as_deref()), (Some(bytes("outcome")), Some("on request")));
        assert!(run.updated_at > run.created_at);
        assert!(w.claim().await.is_empty());
    }
}

async fn a_new_run_is_finished_in_one_transition(w: &World<'_>) {
    let run = w.new_run();
    let checkpoint = w.new_checkpoint("turn");
    let request = Finish {
        checkpoint: Some(checkpoint.clone()),
        ..finish(RunRef::New(run.clone(), driver()), TerminalStatus::Completed)
    };

    assert_eq!(w.store.finish(request.clone()).await.unwrap(), Finished::Done);

    let stored = w.run(&run.run_id).await;
    assert_eq!((stored.status, stored.lease_until), (RunStatus::Completed, None));
    assert_eq!((&stored.session_id, stored.outcome), (&run.session_id, Some(bytes("outcome"))));
    let head = w.store.head(&run.session_id).await.unwrap().unwrap();
    assert_eq!((head.checkpoint, head.run_id), (checkpoint, Some(run.run_id)));
    assert_eq!(error_kind(w.store.finish(request).await), StoreErrorKind::AlreadyExists);
    assert!(w.claim().await.is_empty());
}

async fn the_questions_left_over_are_superseded(w: &World<'_>) {
    for status in [TerminalStatus::Completed, TerminalStatus::Failed] {
        let lease = w.driven().await;
        let open = w.published(&lease, w.asks(&["a", "b"])).await;
        driven(w.answer(&open[0], "yes").await);
        let request = Finish { answers_seen: 1, ..finish(RunRef::Held(lease), status) };
        w.store.finish(request).await.unwrap();

        assert_eq!(w.question_status(&open[0]).await, InterruptStatus::Answered);
        assert_eq!(w.question_status(&open[1]).await, InterruptStatus::Superseded);
        assert_eq!(refusal(w.answer(&open[1], "late").await), Refusal::Superseded);
    }
}

async fn the_questions_of_a_cancelled_run_are_cancelled(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    w.store.finish(finish(RunRef::Held(lease), TerminalStatus::Cancelled)).await.unwrap();
    assert_eq!(w.question_status(&open[0]).await, InterruptStatus::Cancelled);
    assert_eq!(refusal(w.answer(&open[0], "late").await), Refusal::Cancelled);
}

async fn b072_an_answer_before_the_end_is_handed_to_the_driver(w: &World<'_>) {
    let run = w.new_run();
    let lease = w.driven_run(run.clone()).await;
    let open = w.published(&lease, w.asks(&["a", "b"])).await;
    driven(w.answer(&open[0], "early").await);
    let held = || RunRef::Held(lease.clone());
    let checkpoint = Some(w.new_checkpoint("turn"));
    let request = Finish { checkpoint: checkpoint.clone(), ..finish(held(), TerminalStatus::Completed) };

    let Finished::Answered(answers) = w.store.finish(request).await.unwrap() else { panic!("expected the answer") };

    assert_eq!((answers.len(), answers[0].seq, answers[0].answer.clone()), (1, 1, text("early")));
    let stored = w.run(&lease.run_id).await;
    assert_eq!((stored.status, stored.outcome, stored.lease_until), (RunStatus::Running, None, Some(lease.until)));
    assert_eq!(w.open(&run.run_id).await, ids(&open[1..]));
    assert!(w.store.head(&run.session_id).await.unwrap().is_none(), "no checkpoint was appended");
    let again = Finish { checkpoint, answers_seen: 1, ..finish(held(), TerminalStatus::Completed) };
    assert_eq!(w.store.finish(again).await.unwrap(), Finished::Done);
    assert_eq!(w.store.head(&run.session_id).await.unwrap().unwrap().run_id, Some(run.run_id));
}

async fn b031_no_terminal_status_ever_changes(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    w.complete(&lease, 0).await;
    let before = w.run(&lease.run_id).await;
    w.advance(MARGIN * 1_000);

    let ended = [CancelOutcome::Ended(lease.run_id.clone(), RunStatus::Completed)];
    assert_eq!(w.cancel(&lease.run_id).await, ended);
    w.answer(&open[0], "late").await;
    w.expire().await;
    assert!(w.claim().await.is_empty());

    assert_eq!(w.run(&lease.run_id).await, before);
    assert_eq!(w.question_status(&open[0]).await, InterruptStatus::Superseded);
}

async fn b096_a_terminal_run_takes_no_write(w: &World<'_>) {
    let lease = w.driven().await;
    w.complete(&lease, 0).await;
    let held = || RunRef::Held(lease.clone());

    lease_lost(w.store.record(record(&lease)).await);
    lease_lost(w.store.suspend(suspend(held(), w.asks(&["a"]))).await);
    lease_lost(w.store.finish(finish(held(), TerminalStatus::Failed)).await);
    lease_lost(w.store.park(crate::Park { lease: lease.clone(), reason: "late".to_owned() }).await);
    lease_lost(w.store.renew(&lease, MARGIN, 0).await);
    lease_lost(w.store.release(&lease).await);
    assert_eq!(w.status(&lease.run_id).await, RunStatus::Completed);
}

async fn a_driver_that_was_asked_to_stop_may_finish_as_it_must(w: &World<'_>) {
    for status in [TerminalStatus::Completed, TerminalStatus::Cancelled] {
        let lease = w.driven().await;
        w.cancel(&lease.run_id).await;
        let request = finish(RunRef::Held(lease.clone()), status);
        assert_eq!(w.store.finish(request).await.unwrap(), Finished::Done);
        assert_eq!(w.status(&lease.run_id).await, RunStatus::from(status), "it was past stopping, or stopped");
    }
}

async fn a_refused_finish_changes_nothing(w: &World<'_>) {
    let taken = w.append(&w.session_id(), "first").await.checkpoint;
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    let request = Finish { checkpoint: Some(taken), ..finish(RunRef::Held(lease.clone()), TerminalStatus::Completed) };

    assert_eq!(error_kind(w.store.finish(request).await), StoreErrorKind::AlreadyExists);

    assert_eq!(w.status(&lease.run_id).await, RunStatus::Running);
    driven(w.answer_all(vec![answer(&open[0], "yes")]).await);
    w.complete(&lease, 1).await;
}

async fn b179_no_question_of_a_finished_run_is_marked_open(w: &World<'_>) {
    let paused = w.paused(&["a", "b", "c"]).await;
    let claimed = granted(w.answer(&paused.open[1], "yes").await);
    w.complete(&claimed.lease, 1).await;
    assert!(w.list(of_run(&paused.run.run_id)).await.is_empty());
    for question in &paused.open {
        assert_ne!(w.question_status(question).await, InterruptStatus::Pending);
    }
}
