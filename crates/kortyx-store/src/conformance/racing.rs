//! Many answers at the same moment.

use super::{
    case::{Case, list},
    outcome::{duplicate, granted},
    world::{World, answer, at_once, cancel_request, cancellation, driver, ids, record, text},
};
use crate::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelTarget, Drive, InterruptStatus, NewAnswer, Refusal, RunStatus,
};

list![
    b094_two_concurrent_resumes_one_wins,
    b094_of_a_hundred_different_answers_one_is_accepted,
    b051_of_a_hundred_equal_answers_all_get_one_receipt,
    two_people_answering_two_questions_are_both_accepted_and_one_drives,
    a_hundred_answers_to_a_hundred_questions_have_one_driver,
    concurrent_batches_over_the_same_questions_are_applied_whole_or_not_at_all,
    an_answer_and_a_cancellation_never_both_win,
];

/// Sends each batch from a task of its own, over every instance there is.
async fn race(w: &World<'_>, batches: Vec<Vec<NewAnswer>>) -> Vec<AnswerOutcome> {
    let stores = w.instances().await;
    at_once(batches.into_iter().enumerate().map(|(i, answers)| {
        let store = stores[i % stores.len()].clone();
        async move { store.answer(AnswerRequest { answers, driver: Some(driver()) }).await.unwrap() }
    }))
    .await
}

fn is_granted(outcome: &AnswerOutcome) -> bool {
    matches!(outcome, AnswerOutcome::Accepted(_, Drive::Granted(_)))
}

async fn b094_two_concurrent_resumes_one_wins(w: &World<'_>) {
    for _ in 0..20 {
        let paused = w.paused(&["a"]).await;
        let batches = vec![vec![answer(&paused.open[0], "yes")], vec![answer(&paused.open[0], "no")]];
        let outcomes = race(w, batches).await;
        assert_eq!(outcomes.iter().filter(|outcome| is_granted(outcome)).count(), 1, "{outcomes:?}");
        let lost = outcomes.into_iter().find(|outcome| !is_granted(outcome)).unwrap();
        let winner = w.question(&paused.open[0].request_id).await.receipt.unwrap();
        assert_eq!(super::outcome::refusal(lost), Refusal::Conflict(winner));
    }
}

async fn b094_of_a_hundred_different_answers_one_is_accepted(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let outcomes = race(w, (0..100).map(|i| vec![answer(&paused.open[0], &i.to_string())]).collect()).await;

    let stored = w.question(&paused.open[0].request_id).await;
    let receipt = stored.receipt.expect("one was accepted");
    let mut winners = 0;
    for (i, outcome) in outcomes.into_iter().enumerate() {
        if is_granted(&outcome) {
            winners += 1;
            assert_eq!(stored.answer, Some(text(&i.to_string())));
            assert_eq!(granted(outcome).answers.len(), 1);
        } else {
            assert_eq!(super::outcome::refusal(outcome), Refusal::Conflict(receipt.clone()));
        }
    }
    assert_eq!((winners, w.run(&paused.run.run_id).await.answers), (1, 1));
}

async fn b051_of_a_hundred_equal_answers_all_get_one_receipt(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let outcomes = race(w, (0..100).map(|_| vec![answer(&paused.open[0], "yes")]).collect()).await;

    let receipt = w.question(&paused.open[0].request_id).await.receipt.expect("one was accepted");
    let (winners, repeats): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(is_granted);
    assert_eq!((winners.len(), repeats.len()), (1, 99));
    for outcome in repeats {
        assert_eq!(duplicate(outcome).0, std::slice::from_ref(&receipt));
    }
    assert_eq!(w.run(&paused.run.run_id).await.answers, 1);
}

async fn two_people_answering_two_questions_are_both_accepted_and_one_drives(w: &World<'_>) {
    for _ in 0..20 {
        let paused = w.paused(&["a", "b"]).await;
        let outcomes = race(w, paused.open.iter().map(|question| vec![answer(question, "yes")]).collect()).await;
        let granted = outcomes.iter().filter(|outcome| is_granted(outcome)).count();
        let driven = outcomes.iter().filter(|o| matches!(o, AnswerOutcome::Accepted(_, Drive::Driven))).count();
        assert_eq!((granted, driven), (1, 1), "{outcomes:?}");
        assert_eq!(w.run(&paused.run.run_id).await.answers, 2);
    }
}

async fn a_hundred_answers_to_a_hundred_questions_have_one_driver(w: &World<'_>) {
    let names: Vec<String> = (0..100).map(|i| format!("q{i}")).collect();
    let paused = w.paused(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let outcomes = race(w, paused.open.iter().map(|question| vec![answer(question, "yes")]).collect()).await;

    let (mut granted_ones, driven): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(is_granted);
    assert_eq!((granted_ones.len(), driven.len()), (1, 99));
    let lease = granted(granted_ones.remove(0)).lease;
    let answers = w.store.record(record(&lease)).await.unwrap().answers;
    assert_eq!(answers.iter().map(|a| a.seq).collect::<Vec<_>>(), (1..=100).collect::<Vec<_>>());
    let mut answered: Vec<_> = answers.into_iter().map(|a| a.request_id).collect();
    let mut asked = ids(&paused.open);
    answered.sort();
    asked.sort();
    assert_eq!(answered, asked);
}

async fn concurrent_batches_over_the_same_questions_are_applied_whole_or_not_at_all(w: &World<'_>) {
    let paused = w.paused(&["a", "b", "c"]).await;
    let batch = |i: usize| paused.open.iter().cycle().skip(i % 3).take(3).map(|q| answer(q, &i.to_string())).collect();
    let outcomes = race(w, (0..30).map(batch).collect()).await;

    assert_eq!(outcomes.iter().filter(|outcome| is_granted(outcome)).count(), 1);
    let refused = outcomes.iter().filter(|o| matches!(o, AnswerOutcome::Refused(all) if all.len() == 3)).count();
    assert_eq!(refused, 29);
    let mut stored = Vec::new();
    for question in &paused.open {
        stored.push(w.question(&question.request_id).await.answer.expect("answered"));
    }
    assert!(stored.iter().all(|answer| *answer == stored[0]), "one batch answered all three");
}

async fn an_answer_and_a_cancellation_never_both_win(w: &World<'_>) {
    for round in 0..30 {
        let paused = w.paused(&["a"]).await;
        let (answering, cancelling) = (w.store.clone(), w.store.clone());
        let request = AnswerRequest { answers: vec![answer(&paused.open[0], "yes")], driver: Some(driver()) };
        let run_id = paused.run.run_id.clone();
        let by_answer = AnswerRequest { answers: vec![cancellation(&paused.open[0])], driver: None };
        let answering = tokio::spawn(async move { answering.answer(request).await.unwrap() });
        let cancelling = tokio::spawn(async move {
            if round % 2 == 0 {
                return !matches!(cancelling.answer(by_answer).await.unwrap(), AnswerOutcome::Refused(_));
            }
            let outcomes = cancelling.cancel(cancel_request(CancelTarget::Run(run_id.clone()))).await.unwrap();
            outcomes == [CancelOutcome::Cancelled(run_id)]
        });
        let (answered, cancelled) = (answering.await.unwrap(), cancelling.await.unwrap());
        assert_ne!(is_granted(&answered), cancelled, "{answered:?}");
        let (run, question) = (w.status(&paused.run.run_id).await, w.question_status(&paused.open[0]).await);
        let expected = if cancelled {
            (RunStatus::Cancelled, InterruptStatus::Cancelled)
        } else {
            (RunStatus::Running, InterruptStatus::Answered)
        };
        assert_eq!((run, question), expected);
    }
}
