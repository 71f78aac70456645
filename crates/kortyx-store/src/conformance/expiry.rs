//! Questions past their time, on the store's clock.

use std::time::Duration;

use super::{
    case::{Case, list},
    outcome::{granted, left, refusal},
    world::{
        LEASE, MARGIN, OPEN_FOR, Paused, World, at_once, expire_request, ids, in_scope, pin, record, suspend, text,
    },
};
use crate::{
    ClaimRequest, ExpireRequest, InterruptStatus, NewInterrupt, NewRun, Park, Record, Refusal, RunRef, RunStatus,
    Scope, Suspend, WorkflowPin,
};

list![
    nothing_expires_before_its_time,
    a_run_whose_only_question_expired_ends,
    an_expired_question_reads_as_expired_before_anybody_closes_it,
    a_run_goes_on_waiting_while_another_question_is_open,
    a_default_applies_and_its_run_is_handed_out,
    a_default_is_left_to_workers_that_have_the_code,
    a_default_after_answers_that_nobody_used_comes_after_them,
    an_expiry_under_a_driver_is_told_to_the_driver,
    an_accepted_answer_outlives_the_expiry_of_its_sibling,
    defaults_of_a_parked_run_are_kept_and_it_stays_parked,
    a_parked_run_with_nothing_open_and_nothing_to_deliver_ends,
    expiring_takes_no_more_than_asked_for_and_says_when_more_is_due,
    expiring_never_hands_out_a_run_that_was_asked_to_stop,
    what_read_as_expired_never_reads_as_anything_else,
    b110_concurrent_expiries_close_each_question_once,
    an_answer_and_an_expiry_never_both_win,
];

fn with_default(w: &World<'_>, key: &str) -> NewInterrupt {
    NewInterrupt { default: Some(text("no")), ..w.ask(key) }
}

async fn defaulting(w: &World<'_>, keys: &[&str]) -> Paused {
    w.paused_run(w.new_run(), keys.iter().map(|key| with_default(w, key)).collect()).await
}

async fn nothing_expires_before_its_time(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    w.advance(OPEN_FOR.saturating_sub(MARGIN));
    let batch = w.expire().await;
    assert!(batch.interrupts.is_empty() && batch.ended.is_empty() && batch.claimed.is_empty() && !batch.more);
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open));
}

async fn a_run_whose_only_question_expired_ends(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    w.advance(OPEN_FOR);

    let batch = w.expire().await;

    assert_eq!(ids(&batch.interrupts), ids(&paused.open));
    assert!(batch.interrupts.iter().all(|q| q.status == InterruptStatus::Expired && q.receipt.is_none()));
    assert_eq!((batch.ended, batch.claimed.len()), (vec![paused.run.run_id.clone()], 0));
    assert_eq!(w.status(&paused.run.run_id).await, RunStatus::Expired);
    assert_eq!(w.question_status(&paused.open[0]).await, InterruptStatus::Expired);
    assert!(w.expire().await.interrupts.is_empty(), "once");
    assert!(w.claim().await.is_empty());
}

async fn an_expired_question_reads_as_expired_before_anybody_closes_it(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    w.advance(OPEN_FOR);
    for store in w.instances().await {
        let question = store.interrupt(&paused.open[0].request_id).await.unwrap().unwrap();
        assert_eq!((question.status, question.answer), (InterruptStatus::Expired, None));
    }
    assert!(w.open(&paused.run.run_id).await.is_empty());
    let by_session = in_scope(Scope::session(paused.run.session_id.clone()));
    assert!(w.list(by_session).await.is_empty());
    assert_eq!(refusal(w.answer(&paused.open[0], "late").await), Refusal::Expired);
}

async fn a_run_goes_on_waiting_while_another_question_is_open(w: &World<'_>) {
    let long = NewInterrupt { expires_in: OPEN_FOR * 2, ..w.ask("long") };
    let paused = w.paused_run(w.new_run(), vec![w.ask("short"), long]).await;
    w.advance(OPEN_FOR);

    let batch = w.expire().await;

    assert_eq!((ids(&batch.interrupts), batch.ended.len()), (ids(&paused.open[..1]), 0));
    assert_eq!(w.status(&paused.run.run_id).await, RunStatus::Suspended);
    assert_eq!(w.open(&paused.run.run_id).await, ids(&paused.open[1..]));
    w.advance(OPEN_FOR);
    assert_eq!(w.expire().await.ended, [paused.run.run_id]);
}

async fn a_default_applies_and_its_run_is_handed_out(w: &World<'_>) {
    let paused = w.paused_run(w.new_run(), vec![with_default(w, "a"), w.ask("b")]).await;
    w.advance(OPEN_FOR);

    let mut batch = w.expire().await;

    assert_eq!(ids(&batch.interrupts), ids(&paused.open));
    assert!(batch.ended.is_empty(), "a default is to be delivered");
    let claimed = batch.claimed.remove(0);
    assert!(batch.claimed.is_empty());
    assert_eq!((claimed.run.status, claimed.run.answers), (RunStatus::Running, 1));
    assert_eq!(claimed.answers.len(), 1);
    let given = &claimed.answers[0];
    assert_eq!((given.seq, given.ask.0.as_str(), &given.answer), (1, "a", &text("no")));
    assert_eq!((given.by_default, &given.actor), (true, &None));
    let stored = w.question(&paused.open[0].request_id).await;
    assert_eq!((stored.status, stored.answer), (InterruptStatus::Expired, Some(text("no"))));
    w.complete(&claimed.lease, 1).await;
}

async fn a_default_is_left_to_workers_that_have_the_code(w: &World<'_>) {
    let other = WorkflowPin { fingerprint: "ffff".into(), ..pin() };
    let run = NewRun { workflow: other.clone(), ..w.new_run() };
    let request = Suspend {
        workflow: other.clone(),
        ..suspend(RunRef::New(run.clone(), super::world::driver()), vec![with_default(w, "a")])
    };
    w.store.suspend(request).await.unwrap();
    let known = defaulting(w, &["a"]).await;
    w.advance(OPEN_FOR);

    let batch = w.expire().await;

    assert_eq!((batch.interrupts.len(), batch.ended.len(), batch.claimed.len()), (2, 0, 1));
    assert_eq!(batch.claimed[0].run.run_id, known.run.run_id);
    let stored = w.run(&run.run_id).await;
    assert_eq!((stored.status, stored.lease_until), (RunStatus::Running, None));
    let request = ClaimRequest { workflows: vec![other], ..super::world::claim_request() };
    let claimed = w.store.claim_orphans(request).await.unwrap().remove(0);
    assert!(claimed.answers[0].by_default);
}

async fn a_default_after_answers_that_nobody_used_comes_after_them(w: &World<'_>) {
    let paused = w.paused_run(w.new_run(), vec![w.ask("a"), with_default(w, "b")]).await;
    left(w.answer_and_leave(&paused.open[0], "yes").await);
    w.advance(OPEN_FOR);

    let claimed = w.expire().await.claimed.remove(0);

    let seen: Vec<_> = claimed.answers.iter().map(|a| (a.seq, a.ask.0.as_str(), a.by_default)).collect();
    assert_eq!(seen, [(1, "a", false), (2, "b", true)]);
}

async fn an_expiry_under_a_driver_is_told_to_the_driver(w: &World<'_>) {
    let lease = w.driven().await;
    let mut open = w.published(&lease, vec![with_default(w, "a"), w.ask("b")]).await;
    let busy = w.driven().await;
    open.extend(w.published(&busy, w.asks(&["a"])).await);
    w.advance(OPEN_FOR);
    let lease = w.store.renew(&lease, LEASE, 0).await.unwrap().lease;
    let busy = w.store.renew(&busy, LEASE, 0).await.unwrap().lease;

    let batch = w.expire().await;

    assert_eq!((ids(&batch.interrupts), batch.ended.len(), batch.claimed.len()), (ids(&open), 0, 0));
    w.complete(&busy, 0).await;
    let run = w.run(&lease.run_id).await;
    assert_eq!((run.status, run.fence, run.lease_until), (RunStatus::Running, lease.fence, Some(lease.until)));
    let recorded = w.store.record(record(&lease)).await.unwrap();
    assert_eq!((recorded.answers.len(), recorded.answers[0].by_default), (1, true));
    assert_eq!(w.store.renew(&lease, LEASE, 0).await.unwrap().answers, recorded.answers);
}

async fn an_accepted_answer_outlives_the_expiry_of_its_sibling(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    left(w.answer_and_leave(&paused.open[0], "yes").await);
    w.advance(OPEN_FOR);

    let batch = w.expire().await;

    assert_eq!((ids(&batch.interrupts), batch.ended.len()), (ids(&paused.open[1..]), 0));
    let claimed = w.claim().await.remove(0);
    assert_eq!((claimed.run.run_id, claimed.answers[0].answer.clone()), (paused.run.run_id, text("yes")));
}

async fn defaults_of_a_parked_run_are_kept_and_it_stays_parked(w: &World<'_>) {
    let paused = defaulting(w, &["a", "b"]).await;
    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    w.store.park(Park { lease: claimed.lease, reason: "changed".to_owned() }).await.unwrap();
    w.advance(OPEN_FOR);

    let batch = w.expire().await;

    assert_eq!((batch.interrupts.len(), batch.ended.len(), batch.claimed.len()), (1, 0, 0));
    let run = w.run(&paused.run.run_id).await;
    assert_eq!((run.status, run.answers, run.lease_until), (RunStatus::Parked, 2, None));
    let after = w.store.now().await.unwrap().saturating_add(MARGIN);
    let request = ClaimRequest { parked_before: Some(after), ..super::world::claim_request() };
    let claimed = w.store.claim_orphans(request).await.unwrap().remove(0);
    let seen: Vec<_> = claimed.answers.iter().map(|a| (a.ask.0.as_str(), a.by_default)).collect();
    assert_eq!(seen, [("a", false), ("b", true)]);
}

async fn a_parked_run_with_nothing_open_and_nothing_to_deliver_ends(w: &World<'_>) {
    let idle = w.parked(&["a"]).await;
    let waiting = w.paused(&["a", "b"]).await;
    let claimed = granted(w.answer(&waiting.open[0], "yes").await);
    w.store.park(Park { lease: claimed.lease, reason: "changed".to_owned() }).await.unwrap();
    w.advance(OPEN_FOR);

    let batch = w.expire().await;

    assert_eq!(batch.ended, std::slice::from_ref(&idle.run.run_id));
    assert_eq!(w.status(&idle.run.run_id).await, RunStatus::Expired);
    assert_eq!(w.status(&waiting.run.run_id).await, RunStatus::Parked, "its answer is kept");
}

async fn expiring_takes_no_more_than_asked_for_and_says_when_more_is_due(w: &World<'_>) {
    let mut due = Vec::new();
    for _ in 0..5 {
        due.extend(ids(&w.paused(&["a"]).await.open));
        w.advance(Duration::from_secs(1));
    }
    w.advance(OPEN_FOR);

    let mut closed = Vec::new();
    let mut more = true;
    for _ in 0..10 {
        let batch = w.store.expire_due(ExpireRequest { limit: 2, ..expire_request() }).await.unwrap();
        assert!(batch.interrupts.len() <= 2);
        assert_eq!(batch.ended.len(), batch.interrupts.len());
        closed.extend(ids(&batch.interrupts));
        more = batch.more;
        if !more {
            break;
        }
    }

    assert!(!more);
    closed.sort();
    due.sort();
    assert_eq!(closed, due);
}

async fn expiring_never_hands_out_a_run_that_was_asked_to_stop(w: &World<'_>) {
    let lease = w.driven().await;
    w.published(&lease, vec![with_default(w, "a"), w.ask("b")]).await;
    w.cancel(&lease.run_id).await;
    w.advance(OPEN_FOR);

    let batch = w.expire().await;

    assert_eq!((batch.interrupts.len(), batch.claimed.len()), (2, 0));
    assert!(w.claim().await.is_empty());
    assert_eq!(w.status(&lease.run_id).await, RunStatus::Cancelled);
}

async fn what_read_as_expired_never_reads_as_anything_else(w: &World<'_>) {
    let withdrawing = w.driven().await;
    let withdrawn = w.published(&withdrawing, w.asks(&["a"])).await.remove(0);
    let finishing = w.driven().await;
    let left_over = w.published(&finishing, w.asks(&["a"])).await.remove(0);
    let cancelled = w.paused(&["a"]).await;
    w.advance(OPEN_FOR);
    let questions = [&withdrawn, &left_over, &cancelled.open[0]];
    for question in questions {
        assert_eq!(w.question_status(question).await, InterruptStatus::Expired);
    }

    let withdraw = vec![withdrawn.ask.clone()];
    w.store.record(Record { withdraw, ..record(&withdrawing) }).await.unwrap();
    w.complete(&finishing, 0).await;
    w.cancel(&cancelled.run.run_id).await;
    w.expire().await;

    for question in questions {
        assert_eq!(w.question_status(question).await, InterruptStatus::Expired);
        assert_eq!(refusal(w.answer(question, "late").await), Refusal::Expired);
    }
}

async fn b110_concurrent_expiries_close_each_question_once(w: &World<'_>) {
    let stores = w.instances().await;
    for _ in 0..10 {
        defaulting(w, &["a", "b"]).await;
        w.paused(&["a"]).await;
    }
    w.advance(OPEN_FOR);

    let batches = at_once((0..6).map(|i| {
        let store = stores[i % stores.len()].clone();
        async move { store.expire_due(expire_request()).await.unwrap() }
    }))
    .await;

    let mut closed: Vec<_> = batches.iter().flat_map(|batch| ids(&batch.interrupts)).collect();
    closed.sort();
    closed.dedup();
    assert_eq!((closed.len(), batches.iter().map(|batch| batch.interrupts.len()).sum::<usize>()), (30, 30));
    assert_eq!(batches.iter().map(|batch| batch.ended.len()).sum::<usize>(), 10);
    let claimed: Vec<_> = batches.iter().flat_map(|batch| &batch.claimed).collect();
    assert_eq!(claimed.len(), 10);
    assert!(claimed.iter().all(|claimed| claimed.answers.len() == 2), "a run's defaults apply together");
}

async fn an_answer_and_an_expiry_never_both_win(w: &World<'_>) {
    let paused = defaulting(w, &["a"]).await;
    w.advance(OPEN_FOR);
    let (store, expiring) = (w.store.clone(), w.store.clone());
    let request = crate::AnswerRequest {
        answers: vec![super::world::answer(&paused.open[0], "late")],
        driver: Some(super::world::driver()),
    };
    let answering = tokio::spawn(async move { store.answer(request).await.unwrap() });
    let expiring = tokio::spawn(async move { expiring.expire_due(expire_request()).await.unwrap() });

    assert_eq!(refusal(answering.await.unwrap()), Refusal::Expired);
    let batch = expiring.await.unwrap();
    assert_eq!((batch.claimed.len(), batch.claimed[0].answers.len()), (1, 1));
}
