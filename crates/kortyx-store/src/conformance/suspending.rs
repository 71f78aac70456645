//! Suspending a run: it waits, or goes on because something arrived meanwhile.

use std::{collections::BTreeSet, time::Duration};

use kortyx_protocol::Timestamp;

use super::{
    case::{Case, list},
    outcome::{assert_same, driven, error_kind, granted, lease_lost, refusal},
    world::{MARGIN, OPEN_FOR, World, answer, at_once, bytes, driver, ids, keys, record, saved, suspend, text},
};
use crate::{
    AnswerOutcome, AnswerRequest, AskKey, CancelOutcome, Drive, InterruptStatus, NewInterrupt, Record, Refusal, RunRef,
    RunStatus, StoreErrorKind, Suspend, Suspended, WorkflowPin,
};

list![
    a_new_run_is_suspended_in_one_transition,
    a_new_run_without_a_question_cannot_wait,
    suspending_gives_up_the_lease_and_replaces_snapshot_and_entries,
    b034_a_suspension_returns_every_open_question_oldest_first,
    b079_a_suspended_run_can_be_answered_from_anywhere_at_once,
    suspending_binds_the_run_to_the_definition_it_goes_on_with,
    suspending_withdraws_questions,
    suspending_absorbs_the_answers_its_snapshot_holds,
    b103_an_answer_before_the_suspension_is_handed_to_the_driver,
    b103_an_answer_racing_with_the_suspension_is_never_lost,
    b104_answers_streaming_in_over_many_suspensions_are_each_used_once,
    b030_waiting_questions_stay_the_same_while_a_sibling_is_answered,
    b176_after_the_first_of_two_answers_the_second_question_shows,
    suspending_a_run_that_was_asked_to_stop_cancels_it,
    suspending_with_only_expired_questions_ends_the_run,
    an_expired_question_with_a_default_keeps_the_run_waiting,
    b107_a_question_without_any_time_expires_at_once,
    a_refused_suspension_changes_nothing,
];

async fn a_new_run_is_suspended_in_one_transition(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;

    let run = w.run(&paused.run.run_id).await;
    assert_eq!((run.status, run.lease_until, run.answers), (RunStatus::Suspended, None, 0));
    assert_eq!(keys(&paused.open), ["a", "b"]);
    assert_eq!(w.open(&run.run_id).await, ids(&paused.open));
    assert!(w.claim().await.is_empty(), "a run that waits needs no driver");
    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    assert_eq!((claimed.snapshot, claimed.entries.len()), (bytes("suspended"), 0));
    assert!(claimed.lease.fence > run.fence);
}

async fn a_new_run_without_a_question_cannot_wait(w: &World<'_>) {
    let run = w.new_run();
    let request = suspend(RunRef::New(run.clone(), driver()), Vec::new());
    assert_eq!(error_kind(w.store.suspend(request).await), StoreErrorKind::InvalidRequest);
    assert_eq!(w.store.run(&run.run_id).await.unwrap(), None);
}

async fn suspending_gives_up_the_lease_and_replaces_snapshot_and_entries(w: &World<'_>) {
    let lease = w.driven().await;
    w.store.record(Record { entries: vec![bytes("e1"), bytes("e2")], ..record(&lease) }).await.unwrap();

    let open = saved(w.store.suspend(suspend(RunRef::Held(lease.clone()), w.asks(&["a"]))).await.unwrap());

    let run = w.run(&lease.run_id).await;
    assert_eq!((run.status, run.lease_until), (RunStatus::Suspended, None));
    lease_lost(w.store.record(record(&lease)).await);
    let claimed = granted(w.answer(&open[0], "yes").await);
    assert_eq!((claimed.snapshot, claimed.entries.len()), (bytes("suspended"), 0));
    assert_eq!(claimed.run.status, RunStatus::Running);
}

async fn b034_a_suspension_returns_every_open_question_oldest_first(w: &World<'_>) {
    let lease = w.driven().await;
    let first = w.published(&lease, w.asks(&["z", "c"])).await;
    w.advance(MARGIN);
    w.published(&lease, w.asks(&["y"])).await;
    driven(w.answer(&first[0], "yes").await);
    w.advance(MARGIN);

    let request = Suspend { answers_seen: 1, ..suspend(RunRef::Held(lease.clone()), w.asks(&["b", "a"])) };
    let open = saved(w.store.suspend(request).await.unwrap());

    assert_eq!(keys(&open), ["c", "y", "b", "a"]);
    assert_eq!(w.open(&lease.run_id).await, ids(&open));
}

async fn b079_a_suspended_run_can_be_answered_from_anywhere_at_once(w: &World<'_>) {
    let stores = w.instances().await;
    for round in 0..20 {
        let paused = w.paused(&["a"]).await;
        let store = &stores[round % stores.len()];
        assert_same(&paused.open[0], &store.interrupt(&paused.open[0].request_id).await.unwrap().unwrap());
        let request = AnswerRequest { answers: vec![answer(&paused.open[0], "yes")], driver: Some(driver()) };
        assert_eq!(granted(store.answer(request).await.unwrap()).run.run_id, paused.run.run_id);
    }
}

async fn suspending_binds_the_run_to_the_definition_it_goes_on_with(w: &World<'_>) {
    let lease = w.driven().await;
    let target = WorkflowPin { id: "publish".into(), version: "7".into(), fingerprint: "ff00".into() };
    let request = Suspend { workflow: target.clone(), ..suspend(RunRef::Held(lease.clone()), w.asks(&["a"])) };
    let open = saved(w.store.suspend(request).await.unwrap());

    assert_eq!(w.run(&lease.run_id).await.workflow, target);
    let claimed = granted(w.answer(&open[0], "yes").await);
    assert_eq!(claimed.run.workflow, target);
    w.store.release(&claimed.lease).await.unwrap();
    assert!(w.claim().await.is_empty(), "a worker without the target cannot drive it");
}

async fn suspending_withdraws_questions(w: &World<'_>) {
    let lease = w.driven().await;
    let first = w.published(&lease, w.asks(&["a", "b"])).await;
    let withdraw = vec![AskKey("a".to_owned()), AskKey("unknown".to_owned())];
    let request = Suspend { withdraw, ..suspend(RunRef::Held(lease), w.asks(&["c"])) };

    let open = saved(w.store.suspend(request).await.unwrap());

    assert_eq!(keys(&open), ["b", "c"]);
    assert_eq!(w.question_status(&first[0]).await, InterruptStatus::Superseded);
    assert_eq!(refusal(w.answer(&first[0], "late").await), Refusal::Superseded);
}

async fn suspending_absorbs_the_answers_its_snapshot_holds(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let first = granted(w.answer(&paused.open[0], "one").await);
    assert_eq!(first.answers.len(), 1);

    let request = Suspend { answers_seen: 1, ..suspend(RunRef::Held(first.lease), w.asks(&["c"])) };
    assert_eq!(keys(&saved(w.store.suspend(request).await.unwrap())), ["b", "c"]);

    let second = granted(w.answer(&paused.open[1], "two").await);
    let seqs: Vec<_> = second.answers.iter().map(|a| (a.seq, a.answer.clone())).collect();
    assert_eq!(seqs, [(2, text("two"))], "the first is in the snapshot");
    assert_eq!(w.run(&paused.run.run_id).await.answers, 2);
}

async fn b103_an_answer_before_the_suspension_is_handed_to_the_driver(w: &World<'_>) {
    let lease = w.driven().await;
    w.store.record(Record { entries: vec![bytes("e1")], ..record(&lease) }).await.unwrap();
    let open = w.published(&lease, w.asks(&["a"])).await;
    driven(w.answer(&open[0], "early").await);
    let refused = w.ask("b");
    let checkpoint = w.new_checkpoint("turn");
    let request =
        Suspend { checkpoint: Some(checkpoint.clone()), ..suspend(RunRef::Held(lease.clone()), vec![refused.clone()]) };

    let Suspended::Answered(answers) = w.store.suspend(request).await.unwrap() else { panic!("expected the answer") };

    assert_eq!((answers.len(), answers[0].seq, answers[0].answer.clone()), (1, 1, text("early")));
    let run = w.run(&lease.run_id).await;
    assert_eq!((run.status, run.lease_until), (RunStatus::Running, Some(lease.until)), "the lease is kept");
    assert!(w.store.interrupt(&refused.request_id).await.unwrap().is_none(), "nothing was published");
    assert!(w.store.checkpoint(&checkpoint.id).await.unwrap().is_none(), "no checkpoint was appended");
    w.store.record(record(&lease)).await.unwrap();
    w.store.release(&lease).await.unwrap();
    let claimed = w.claim().await.remove(0);
    assert_eq!((claimed.snapshot, claimed.entries), (bytes("opened"), vec![bytes("e1")]), "nothing was stored");
    assert_eq!(claimed.answers, answers);
}

async fn b103_an_answer_racing_with_the_suspension_is_never_lost(w: &World<'_>) {
    let stores = w.instances().await;
    for round in 0..60 {
        let lease = w.driven().await;
        let open = w.published(&lease, w.asks(&["a"])).await;
        let request = suspend(RunRef::Held(lease), Vec::new());
        let (driver_store, answer_store) = (w.store.clone(), stores[round % stores.len()].clone());
        let answers = AnswerRequest { answers: vec![answer(&open[0], "yes")], driver: Some(driver()) };

        let suspending = tokio::spawn(async move { driver_store.suspend(request).await.unwrap() });
        let answering = tokio::spawn(async move { answer_store.answer(answers).await.unwrap() });

        match (suspending.await.unwrap(), answering.await.unwrap()) {
            (Suspended::Answered(seen), AnswerOutcome::Accepted(_, Drive::Driven)) => assert_eq!(seen.len(), 1),
            (Suspended::Saved(_), AnswerOutcome::Accepted(_, Drive::Granted(claimed))) => {
                assert_eq!((claimed.answers.len(), claimed.snapshot), (1, bytes("suspended")));
            }
            (suspended, answered) => panic!("nobody or two drive: {suspended:?} and {answered:?}"),
        }
    }
}

async fn b104_answers_streaming_in_over_many_suspensions_are_each_used_once(w: &World<'_>) {
    const QUESTIONS: usize = 24;
    let names: Vec<String> = (0..=QUESTIONS).map(|i| format!("q{i}")).collect();
    let paused = w.paused(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let stores = w.instances().await;

    let used = at_once(paused.open[..QUESTIONS].iter().enumerate().map(|(i, question)| {
        let store = stores[i % stores.len()].clone();
        let request = AnswerRequest { answers: vec![answer(question, &i.to_string())], driver: Some(driver()) };
        async move {
            let mut used = Vec::new();
            let AnswerOutcome::Accepted(_, drive) = store.answer(request).await.unwrap() else { panic!("refused") };
            let Drive::Granted(claimed) = drive else { return used };
            let (mut answers, mut seen) = (claimed.answers, 0);
            for _ in 0..=QUESTIONS {
                for answer in answers {
                    seen = answer.seq;
                    used.push((answer.seq, answer.ask));
                }
                let run = RunRef::Held(claimed.lease.clone());
                match store.suspend(Suspend { answers_seen: seen, ..suspend(run, Vec::new()) }).await.unwrap() {
                    Suspended::Saved(_) => return used,
                    Suspended::Answered(more) => answers = more,
                    other => panic!("{other:?}"),
                }
            }
            panic!("answers that were seen are returned again and again");
        }
    }))
    .await;

    let mut used: Vec<_> = used.into_iter().flatten().collect();
    used.sort();
    let seqs: Vec<u64> = used.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, (1..=QUESTIONS as u64).collect::<Vec<_>>());
    let asks: BTreeSet<_> = used.into_iter().map(|(_, ask)| ask).collect();
    assert_eq!(asks.len(), QUESTIONS);
    let run = w.run(&paused.run.run_id).await;
    assert_eq!((run.status, run.answers), (RunStatus::Suspended, QUESTIONS as u64));
}

async fn b030_waiting_questions_stay_the_same_while_a_sibling_is_answered(w: &World<'_>) {
    let paused = w.paused(&["a", "b", "c"]).await;
    w.advance(MARGIN);
    let claimed = granted(w.answer(&paused.open[1], "yes").await);
    let request = Suspend { answers_seen: 1, ..suspend(RunRef::Held(claimed.lease), Vec::new()) };
    let open = saved(w.store.suspend(request).await.unwrap());

    assert_eq!(keys(&open), ["a", "c"]);
    for (before, after) in [(&paused.open[0], &open[0]), (&paused.open[2], &open[1])] {
        assert_same(before, after);
        assert_same(before, &w.question(&before.request_id).await);
    }
}

async fn b176_after_the_first_of_two_answers_the_second_question_shows(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open[1..]), "also while the first is worked on");
    let request = Suspend { answers_seen: 1, ..suspend(RunRef::Held(claimed.lease), Vec::new()) };
    w.store.suspend(request).await.unwrap();

    assert_eq!(w.status(&paused.run.run_id).await, RunStatus::Suspended);
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open[1..]));
}

async fn suspending_a_run_that_was_asked_to_stop_cancels_it(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b"])).await;
    driven(w.answer(&open[1], "yes").await);
    assert_eq!(w.cancel(&lease.run_id).await, [CancelOutcome::Requested(lease.run_id.clone())]);
    let late = w.ask("c");

    let outcome = w.store.suspend(suspend(RunRef::Held(lease.clone()), vec![late.clone()])).await.unwrap();

    assert!(matches!(outcome, Suspended::Cancelled), "{outcome:?}");
    let run = w.run(&lease.run_id).await;
    assert_eq!((run.status, run.lease_until), (RunStatus::Cancelled, None));
    assert_eq!(run.reason.as_deref(), Some("not needed"));
    assert_eq!(w.question_status(&open[0]).await, InterruptStatus::Cancelled);
    assert_eq!(w.question_status(&open[1]).await, InterruptStatus::Answered);
    let published = w.store.interrupt(&late.request_id).await.unwrap();
    assert!(published.is_none_or(|question| question.status == InterruptStatus::Cancelled));
    assert!(w.open(&lease.run_id).await.is_empty());
    lease_lost(w.store.record(record(&lease)).await);
}

async fn suspending_with_only_expired_questions_ends_the_run(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b"])).await;
    w.advance(OPEN_FOR + MARGIN);

    let outcome = w.store.suspend(suspend(RunRef::Held(lease.clone()), Vec::new())).await.unwrap();

    assert!(matches!(outcome, Suspended::Expired), "{outcome:?}");
    let run = w.run(&lease.run_id).await;
    assert_eq!((run.status, run.lease_until), (RunStatus::Expired, None));
    assert_eq!(w.question_status(&open[0]).await, InterruptStatus::Expired);
    assert_eq!(refusal(w.answer(&open[1], "late").await), Refusal::Expired);
    lease_lost(w.store.record(record(&lease)).await);
}

async fn an_expired_question_with_a_default_keeps_the_run_waiting(w: &World<'_>) {
    let lease = w.driven().await;
    let mut asked = w.ask("a");
    asked.default = Some(text("no"));
    w.published(&lease, vec![asked]).await;
    w.advance(OPEN_FOR + MARGIN);

    saved(w.store.suspend(suspend(RunRef::Held(lease.clone()), Vec::new())).await.unwrap());

    assert_eq!(w.status(&lease.run_id).await, RunStatus::Suspended);
    let batch = w.expire().await;
    assert_eq!((batch.claimed.len(), batch.claimed[0].answers[0].answer.clone()), (1, text("no")));
}

async fn b107_a_question_without_any_time_expires_at_once(w: &World<'_>) {
    let none = || NewInterrupt { expires_in: Duration::ZERO, ..w.ask("none") };
    let ever = NewInterrupt { expires_in: Duration::MAX, ..w.ask("ever") };

    let only = w.store.suspend(suspend(RunRef::New(w.new_run(), driver()), vec![none()])).await.unwrap();
    assert!(matches!(only, Suspended::Expired), "{only:?}");
    let none = none();
    let paused = w.paused_run(w.new_run(), vec![none.clone(), ever]).await;

    assert_eq!(keys(&paused.open), ["ever"]);
    assert_eq!(paused.open[0].expires_at, Timestamp::MAX);
    assert_eq!(w.question(&none.request_id).await.status, InterruptStatus::Expired);
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open));
    w.advance(OPEN_FOR * 1_000);
    granted(w.answer(&paused.open[0], "yes").await);
}

async fn a_refused_suspension_changes_nothing(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a", "b"])).await;
    let checkpoint = w.append(&w.session_id(), "first").await.checkpoint;
    let withdraw = vec![AskKey("b".to_owned())];
    let held = || RunRef::Held(lease.clone());

    let taken_place = Suspend { withdraw: withdraw.clone(), ..suspend(held(), w.asks(&["a"])) };
    assert_eq!(error_kind(w.store.suspend(taken_place).await), StoreErrorKind::InvalidRequest);
    let mut taken = w.ask("c");
    taken.request_id = open[0].request_id.clone();
    let taken_id = Suspend { withdraw: withdraw.clone(), ..suspend(held(), vec![taken]) };
    assert_eq!(error_kind(w.store.suspend(taken_id).await), StoreErrorKind::AlreadyExists);
    let taken_checkpoint = Suspend { withdraw, checkpoint: Some(checkpoint), ..suspend(held(), w.asks(&["d"])) };
    assert_eq!(error_kind(w.store.suspend(taken_checkpoint).await), StoreErrorKind::AlreadyExists);

    assert_eq!(w.open(&lease.run_id).await, ids(&open));
    assert_eq!(w.run(&lease.run_id).await.lease_until, Some(lease.until));
    w.store.release(&lease).await.unwrap();
    assert_eq!(w.claim().await.remove(0).snapshot, bytes("opened"));
}
