//! Recording steps, publishing and withdrawing questions while a driver works.

use super::{
    case::{Case, list},
    outcome::{assert_same, driven, error_kind, granted, refusal},
    world::{LEASE, MARGIN, OPEN_FOR, World, answer, bytes, ids, keys, of_run, record, saved, suspend, text},
};
use crate::{AskKey, InterruptStatus, NewInterrupt, Record, Refusal, RunRef, RunStatus, StoreErrorKind, Suspend};

list![
    recorded_entries_survive_their_driver_in_order,
    a_recorded_question_is_stored_as_it_was_asked,
    b111_a_question_published_in_mid_run_can_be_answered_at_once,
    b130_a_question_has_the_same_ids_wherever_it_is_read,
    recording_hands_over_answers_that_the_driver_has_not_seen,
    recording_does_not_absorb_answers,
    recording_leaves_the_lease_as_it_is,
    b110_a_withdrawn_question_is_superseded_and_says_so,
    withdrawing_what_is_not_open_is_ignored,
    a_place_whose_question_is_open_takes_no_second_one,
    a_place_whose_question_was_closed_takes_another,
    withdrawing_comes_before_publishing,
    a_taken_question_id_is_refused_and_nothing_is_recorded,
];

async fn recorded_entries_survive_their_driver_in_order(w: &World<'_>) {
    let lease = w.driven().await;
    let batches = [vec!["1", "2"], vec![], vec!["3"], vec!["4", "5", "6"]];
    for batch in batches {
        let entries = batch.into_iter().map(bytes).collect();
        w.store.record(Record { entries, ..record(&lease) }).await.unwrap();
    }
    w.advance(LEASE + MARGIN);

    let claimed = w.claim().await.remove(0);

    let expected: Vec<_> = (1..=6).map(|i| bytes(&i.to_string())).collect();
    assert_eq!(claimed.entries, expected);
    assert_eq!(claimed.snapshot, bytes("opened"));
    w.store.record(Record { entries: vec![bytes("7")], ..record(&claimed.lease) }).await.unwrap();
    w.store.release(&claimed.lease).await.unwrap();
    assert_eq!(w.claim().await.remove(0).entries.len(), 7, "a second driver's entries follow the first one's");
}

async fn a_recorded_question_is_stored_as_it_was_asked(w: &World<'_>) {
    let run = w.new_run();
    let lease = w.driven_run(run.clone()).await;
    let asked = NewInterrupt {
        workflow: "child".to_owned(),
        node: "choose".to_owned(),
        default: Some(text("no")),
        optional_cancel: true,
        after_response_completed: true,
        ..w.ask("pick#2")
    };
    let before = w.store.now().await.unwrap();

    let published = w.published(&lease, vec![asked.clone()]).await;

    let stored = w.question(&asked.request_id).await;
    assert_same(&published[0], &stored);
    assert_eq!(stored.request_id, asked.request_id);
    assert!(stored.token.matches(&asked.token));
    assert_eq!((&stored.run_id, &stored.session_id), (&run.run_id, &run.session_id));
    assert_eq!((stored.ask, stored.workflow, stored.node), (asked.ask, asked.workflow, asked.node));
    assert_eq!((stored.question, stored.default), (asked.question, asked.default));
    assert!(stored.optional_cancel && stored.after_response_completed);
    assert_eq!((stored.status, stored.answer, stored.receipt), (InterruptStatus::Pending, None, None));
    assert!(stored.created_at >= before);
    assert_eq!(stored.expires_at, stored.created_at.saturating_add(OPEN_FOR));
}

async fn b111_a_question_published_in_mid_run_can_be_answered_at_once(w: &World<'_>) {
    let lease = w.driven().await;
    for round in 1..=3_u64 {
        let published = w.published(&lease, w.asks(&[&format!("pick#{round}")])).await;
        for store in w.instances().await {
            assert!(store.interrupt(&published[0].request_id).await.unwrap().is_some());
        }
        let receipts = driven(w.answer(&published[0], "yes").await);
        assert_eq!(receipts[0].seq, round);
    }
    assert_eq!(w.status(&lease.run_id).await, RunStatus::Running);
}

async fn b130_a_question_has_the_same_ids_wherever_it_is_read(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let first = &paused.open[0];
    assert_same(first, &w.question(&first.request_id).await);
    assert_same(first, &w.list(of_run(&paused.run.run_id)).await[0]);
    let claimed = granted(w.answer(first, "yes").await);
    assert_eq!((&claimed.answers[0].request_id, &claimed.answers[0].ask), (&first.request_id, &first.ask));
}

async fn recording_hands_over_answers_that_the_driver_has_not_seen(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b", "c"])).await;
    driven(w.answer(&open[1], "to b").await);
    driven(w.answer(&open[0], "to a").await);

    let all = w.store.record(record(&lease)).await.unwrap();
    let newer = w.store.record(Record { answers_seen: 1, ..record(&lease) }).await.unwrap();
    let none = w.store.record(Record { answers_seen: 2, ..record(&lease) }).await.unwrap();

    let seen: Vec<_> = all.answers.iter().map(|a| (a.seq, a.ask.0.as_str(), a.answer.clone())).collect();
    assert_eq!(seen, [(1, "b", text("to b")), (2, "a", text("to a"))]);
    assert!(all.answers.iter().all(|a| !a.by_default && a.actor.as_deref() == Some("ann")));
    assert_eq!(newer.answers, all.answers[1..]);
    assert!(none.answers.is_empty() && !none.cancel_requested);
}

async fn recording_does_not_absorb_answers(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    driven(w.answer(&open[0], "yes").await);
    w.store.record(Record { answers_seen: 1, entries: vec![bytes("e")], ..record(&lease) }).await.unwrap();
    w.advance(LEASE + MARGIN);

    let claimed = w.claim().await.remove(0);

    assert_eq!(claimed.answers.len(), 1, "no snapshot holds it yet");
    assert_eq!((claimed.answers[0].seq, claimed.answers[0].answer.clone()), (1, text("yes")));
}

async fn recording_leaves_the_lease_as_it_is(w: &World<'_>) {
    let lease = w.driven().await;
    w.advance(LEASE / 2);
    w.store.record(Record { entries: vec![bytes("e")], ..record(&lease) }).await.unwrap();
    let run = w.run(&lease.run_id).await;
    assert_eq!((run.lease_until, run.fence), (Some(lease.until), lease.fence));
    w.advance(LEASE / 2 + MARGIN);
    assert_eq!(w.claim().await.len(), 1, "recording does not renew");
}

async fn b110_a_withdrawn_question_is_superseded_and_says_so(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b"])).await;

    w.store.record(Record { withdraw: vec![AskKey("b".to_owned())], ..record(&lease) }).await.unwrap();

    assert_eq!(w.question_status(&open[1]).await, InterruptStatus::Superseded);
    assert_eq!(w.open(&lease.run_id).await, ids(&open[..1]));
    assert_eq!(refusal(w.answer(&open[1], "late").await), Refusal::Superseded);
    driven(w.answer(&open[0], "yes").await);
}

async fn withdrawing_what_is_not_open_is_ignored(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b"])).await;
    driven(w.answer(&open[0], "yes").await);

    let withdraw = vec![AskKey("a".to_owned()), AskKey("never asked".to_owned()), AskKey(String::new())];
    w.store.record(Record { withdraw, ..record(&lease) }).await.unwrap();

    assert_eq!(w.question_status(&open[0]).await, InterruptStatus::Answered);
    assert_eq!(w.question_status(&open[1]).await, InterruptStatus::Pending);
}

async fn a_place_whose_question_is_open_takes_no_second_one(w: &World<'_>) {
    let lease = w.driven().await;
    w.published(&lease, w.asks(&["a"])).await;
    let refused = w.asks(&["b", "a"]);

    let again = Record { publish: refused.clone(), entries: vec![bytes("e")], ..record(&lease) };
    assert_eq!(error_kind(w.store.record(again).await), StoreErrorKind::InvalidRequest);
    let twice = Record { publish: w.asks(&["c", "c"]), entries: vec![bytes("e")], ..record(&lease) };
    assert_eq!(error_kind(w.store.record(twice).await), StoreErrorKind::InvalidRequest);

    assert_eq!(w.open(&lease.run_id).await.len(), 1);
    assert!(w.store.interrupt(&refused[0].request_id).await.unwrap().is_none());
    w.store.release(&lease).await.unwrap();
    assert!(w.claim().await.remove(0).entries.is_empty(), "nothing of a refused call happened");
}

async fn a_place_whose_question_was_closed_takes_another(w: &World<'_>) {
    let lease = w.driven().await;
    let first = w.published(&lease, w.asks(&["a", "b"])).await;
    driven(w.answer(&first[0], "one").await);
    w.store.record(Record { withdraw: vec![AskKey("b".to_owned())], ..record(&lease) }).await.unwrap();

    let second = w.published(&lease, w.asks(&["a", "b"])).await;

    assert_eq!(w.open(&lease.run_id).await, ids(&second));
    driven(w.answer_all(vec![answer(&second[0], "two"), answer(&second[1], "three")]).await);
    let answers = w.store.record(record(&lease)).await.unwrap().answers;
    let seen: Vec<_> = answers.iter().map(|a| (a.ask.0.as_str(), a.answer.clone())).collect();
    assert_eq!(seen, [("a", text("one")), ("a", text("two")), ("b", text("three"))]);
}

async fn withdrawing_comes_before_publishing(w: &World<'_>) {
    let lease = w.driven().await;
    let first = w.published(&lease, w.asks(&["a", "b"])).await;
    let withdraw = vec![AskKey("a".to_owned())];

    let request = Record { withdraw: withdraw.clone(), publish: w.asks(&["a"]), ..record(&lease) };
    let second = w.store.record(request).await.unwrap().published;
    assert_eq!(w.question_status(&first[0]).await, InterruptStatus::Superseded);
    assert_eq!(w.open(&lease.run_id).await, [first[1].request_id.clone(), second[0].request_id.clone()]);

    let request = Suspend { withdraw, ..suspend(RunRef::Held(lease), w.asks(&["a"])) };
    assert_eq!(keys(&saved(w.store.suspend(request).await.unwrap())), ["b", "a"]);
    assert_eq!(w.question_status(&second[0]).await, InterruptStatus::Superseded);
}

async fn a_taken_question_id_is_refused_and_nothing_is_recorded(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let lease = w.driven().await;
    let mut taken = w.ask("y");
    taken.request_id = paused.open[0].request_id.clone();

    let publish = vec![w.ask("x"), taken];
    let refused = Record { publish, entries: vec![bytes("e")], ..record(&lease) };

    assert_eq!(error_kind(w.store.record(refused).await), StoreErrorKind::AlreadyExists);
    assert!(w.open(&lease.run_id).await.is_empty());
    assert_same(&paused.open[0], &w.question(&paused.open[0].request_id).await);
    let published = w.published(&lease, w.asks(&["x", "y"])).await;
    assert_eq!(keys(&published), ["x", "y"]);
    w.store.release(&lease).await.unwrap();
    assert!(w.claim().await.remove(0).entries.is_empty(), "nothing of a refused call happened");
}
