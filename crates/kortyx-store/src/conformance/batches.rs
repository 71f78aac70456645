//! Several answers at once: all or none.

use super::{
    case::{Case, list},
    outcome::{accepted, driven, duplicate, error_kind, granted, refused},
    world::{OPEN_FOR, World, answer, cancellation, driver, ids, text},
};
use crate::{AnswerRequest, InterruptStatus, NewAnswer, NewInterrupt, Proof, Refusal, RunStatus, StoreErrorKind};

list![
    b033_answers_submitted_together_are_all_applied,
    b035_one_two_and_ten_answers_are_accepted_alike,
    b024_one_refused_answer_refuses_them_all,
    a_refused_batch_names_every_refused_answer,
    a_repeated_batch_gets_the_first_receipts,
    b036_a_batch_may_repeat_what_was_accepted_before,
    b125_a_conflict_in_a_batch_leaves_the_other_questions_open,
    an_expired_question_in_a_batch_leaves_the_others_open,
    a_batch_that_contradicts_itself_is_an_error,
    answers_to_questions_of_different_runs_are_an_error,
    b113_a_batch_does_not_tell_whether_a_foreign_question_exists,
    a_cancellation_stands_alone,
    a_batch_is_used_in_the_order_of_its_answers,
];

async fn b033_answers_submitted_together_are_all_applied(w: &World<'_>) {
    let paused = w.paused(&["a", "b", "c"]).await;
    let batch = vec![answer(&paused.open[2], "3"), answer(&paused.open[0], "1")];

    let claimed = granted(w.answer_all(batch).await);

    let seen: Vec<_> = claimed.answers.iter().map(|a| (a.seq, a.ask.0.as_str(), a.answer.clone())).collect();
    assert_eq!(seen, [(1, "c", text("3")), (2, "a", text("1"))]);
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open[1..2]));
    assert_eq!(w.run(&paused.run.run_id).await.answers, 2);
}

async fn b035_one_two_and_ten_answers_are_accepted_alike(w: &World<'_>) {
    for count in [1, 2, 10] {
        let names: Vec<String> = (0..count).map(|i| format!("q{i}")).collect();
        let paused = w.paused(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let batch = paused.open.iter().map(|question| answer(question, "yes")).collect();
        let claimed = granted(w.answer_all(batch).await);
        assert_eq!(claimed.answers.len(), count);
    }
}

async fn b024_one_refused_answer_refuses_them_all(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let before = w.run(&paused.run.run_id).await;
    let unknown = NewAnswer { request_id: w.request_id(), ..answer(&paused.open[1], "no") };

    let refusals = refused(w.answer_all(vec![answer(&paused.open[0], "yes"), unknown.clone()]).await);

    assert_eq!(refusals, [(unknown.request_id, Refusal::Unknown)]);
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open));
    assert_eq!(w.run(&paused.run.run_id).await, before);
    assert_eq!(w.question(&paused.open[0].request_id).await.receipt, None);
}

async fn a_refused_batch_names_every_refused_answer(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b", "c", "d"])).await;
    let receipt = driven(w.answer(&open[0], "yes").await).remove(0);
    let withdraw = vec![open[1].ask.clone()];
    w.store.record(crate::Record { withdraw, ..super::world::record(&lease) }).await.unwrap();
    let astray = NewAnswer { session_id: Some(w.session_id()), ..answer(&open[2], "yes") };
    let batch = vec![answer(&open[3], "fine"), answer(&open[1], "late"), astray, answer(&open[0], "no")];

    let mut refusals = refused(w.answer_all(batch).await);

    refusals.sort_by_key(|(id, _)| open.iter().position(|question| question.request_id == *id));
    let expected = [Refusal::Conflict(receipt), Refusal::Superseded, Refusal::WrongSession];
    assert_eq!(refusals, ids(&open[..3]).into_iter().zip(expected).collect::<Vec<_>>());
    assert_eq!(w.question_status(&open[3]).await, InterruptStatus::Pending);
}

async fn a_repeated_batch_gets_the_first_receipts(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let batch = vec![answer(&paused.open[0], "1"), answer(&paused.open[1], "2")];
    let (first, _) = accepted(w.answer_all(batch.clone()).await);

    let (again, run) = duplicate(w.answer_all(batch.into_iter().rev().collect()).await);

    assert_eq!(again, first.into_iter().rev().collect::<Vec<_>>(), "in the order of the request");
    assert_eq!(run.answers, 2);
}

async fn b036_a_batch_may_repeat_what_was_accepted_before(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let first = accepted(w.answer_all(vec![answer(&paused.open[0], "1")]).await).0.remove(0);

    let (both, _) = accepted(w.answer_all(vec![answer(&paused.open[1], "2"), answer(&paused.open[0], "1")]).await);

    assert_eq!((both[0].seq, &both[0].request_id), (2, &paused.open[1].request_id));
    assert_eq!(both[1], first, "what was accepted before keeps its receipt");
    assert_eq!(w.run(&paused.run.run_id).await.answers, 2);
}

async fn b125_a_conflict_in_a_batch_leaves_the_other_questions_open(w: &World<'_>) {
    let paused = w.paused(&["a", "b", "c"]).await;
    let claimed = granted(w.answer_all(vec![answer(&paused.open[0], "1"), answer(&paused.open[1], "2")]).await);
    let batch = vec![answer(&paused.open[0], "1"), answer(&paused.open[1], "other"), answer(&paused.open[2], "3")];

    let refusals = refused(w.answer_all(batch).await);

    assert_eq!(refusals.len(), 1, "the repeated one is not refused: {refusals:?}");
    assert!(matches!(&refusals[0], (id, Refusal::Conflict(_)) if *id == paused.open[1].request_id));
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open[2..]));
    assert_eq!(w.run(&paused.run.run_id).await, claimed.run);
}

async fn an_expired_question_in_a_batch_leaves_the_others_open(w: &World<'_>) {
    let long = NewInterrupt { expires_in: OPEN_FOR * 2, ..w.ask("long") };
    let paused = w.paused_run(w.new_run(), vec![w.ask("short"), long]).await;
    w.advance(OPEN_FOR);

    let refusals = refused(w.answer_all(paused.open.iter().map(|q| answer(q, "yes")).collect()).await);

    assert_eq!(refusals, [(paused.open[0].request_id.clone(), Refusal::Expired)]);
    assert_eq!(w.status(&paused.run.run_id).await, RunStatus::Suspended);
    granted(w.answer(&paused.open[1], "yes").await);
}

async fn a_batch_that_contradicts_itself_is_an_error(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let twice = vec![answer(&paused.open[0], "yes"), answer(&paused.open[0], "yes")];
    for answers in [Vec::new(), twice] {
        let request = AnswerRequest { answers, driver: Some(driver()) };
        assert_eq!(error_kind(w.store.answer(request).await), StoreErrorKind::InvalidRequest);
    }
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open));
}

async fn answers_to_questions_of_different_runs_are_an_error(w: &World<'_>) {
    let session = w.session_id();
    let first = w.paused_run(w.new_run_in(&session), w.asks(&["a"])).await;
    let second = w.paused_run(w.new_run_in(&session), w.asks(&["a"])).await;
    let answers = vec![answer(&first.open[0], "yes"), answer(&second.open[0], "yes")];

    let request = AnswerRequest { answers, driver: Some(driver()) };

    assert_eq!(error_kind(w.store.answer(request).await), StoreErrorKind::InvalidRequest);
    for paused in [first, second] {
        assert_eq!(w.status(&paused.run.run_id).await, RunStatus::Suspended);
        granted(w.answer(&paused.open[0], "yes").await);
    }
}

async fn b113_a_batch_does_not_tell_whether_a_foreign_question_exists(w: &World<'_>) {
    let (mine, foreign) = (w.paused(&["a"]).await, w.paused(&["a"]).await);
    let forged = NewAnswer { proof: Proof::Token(w.token()), ..answer(&foreign.open[0], "yes") };
    let nothing = NewAnswer { request_id: w.request_id(), ..forged.clone() };
    for probe in [forged, nothing] {
        let refusals = refused(w.answer_all(vec![answer(&mine.open[0], "yes"), probe.clone()]).await);
        assert_eq!(refusals, [(probe.request_id, Refusal::Unknown)]);
    }
}

async fn a_cancellation_stands_alone(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let answers = vec![answer(&paused.open[0], "yes"), cancellation(&paused.open[1])];
    let request = AnswerRequest { answers, driver: Some(driver()) };
    assert_eq!(error_kind(w.store.answer(request).await), StoreErrorKind::InvalidRequest);
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open));

    let asked = NewInterrupt { optional_cancel: true, ..w.ask("c") };
    let optional = w.paused_run(w.new_run(), vec![w.ask("a"), asked]).await;
    let claimed = granted(w.answer_all(vec![answer(&optional.open[0], "yes"), cancellation(&optional.open[1])]).await);
    assert_eq!(claimed.answers.len(), 2, "one that its node sees is an answer like any other");
}

async fn a_batch_is_used_in_the_order_of_its_answers(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b", "c"])).await;
    let order = [1, 2, 0];
    let receipts = driven(w.answer_all(order.iter().map(|i| answer(&open[*i], "yes")).collect()).await);
    assert_eq!(receipts.iter().map(|receipt| receipt.seq).collect::<Vec<_>>(), [1, 2, 3]);
    let named: Vec<_> = receipts.into_iter().map(|receipt| receipt.request_id).collect();
    assert_eq!(named, order.map(|i| open[i].request_id.clone()));
    assert_eq!(w.status(&lease.run_id).await, RunStatus::Running);
}
