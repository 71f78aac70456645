//! Many of everything in one transition, and the longest and shortest of what has a length.

use std::{collections::BTreeSet, time::Duration};

use kortyx_protocol::Timestamp;

use super::{
    case::{Case, list},
    outcome::{driven, granted},
    world::{
        LEASE, MARGIN, OPEN_FOR, World, answer, bytes, cancel_request, claim_request, driver, ids, in_scope, keys,
        of_run, pin, record, suspend, text,
    },
};
use crate::{
    CancelTarget, ClaimRequest, Driver, NewInterrupt, OpenRun, Record, RunRef, Scalar, Scope, Suspend, WorkflowPin,
};

list![
    a_thousand_entries_in_one_call_are_kept_in_order,
    three_hundred_questions_are_published_answered_and_withdrawn_together,
    a_worker_may_know_five_hundred_definitions,
    a_session_of_many_runs_is_cancelled_whole,
    a_context_of_two_hundred_values_can_be_asked_for,
    many_defaults_of_one_run_apply_together,
    an_ask_key_may_be_empty_or_very_long,
    a_lease_may_last_for_ever_or_not_at_all,
];

async fn a_thousand_entries_in_one_call_are_kept_in_order(w: &World<'_>) {
    let lease = w.driven().await;
    let entries: Vec<_> = (0..1_000).map(|i| bytes(&i.to_string())).collect();
    w.store.record(Record { entries: entries.clone(), ..record(&lease) }).await.unwrap();
    w.store.release(&lease).await.unwrap();
    assert_eq!(w.claim().await.remove(0).entries, entries);
}

async fn three_hundred_questions_are_published_answered_and_withdrawn_together(w: &World<'_>) {
    let names: Vec<String> = (0..300).map(|i| format!("q{i}")).collect();
    let lease = w.driven().await;
    let open = w.published(&lease, names.iter().map(|name| w.ask(name)).collect()).await;
    assert_eq!(keys(&open), names);

    let receipts = driven(w.answer_all(open[..150].iter().map(|question| answer(question, "yes")).collect()).await);
    let withdraw = open[150..290].iter().map(|question| question.ask.clone()).collect();
    let recorded = w.store.record(Record { withdraw, ..record(&lease) }).await.unwrap();

    assert_eq!(receipts.iter().map(|receipt| receipt.seq).collect::<Vec<_>>(), (1..=150).collect::<Vec<_>>());
    assert_eq!(recorded.answers.len(), 150);
    assert_eq!(w.open(&lease.run_id).await, ids(&open[290..]));
}

async fn a_worker_may_know_five_hundred_definitions(w: &World<'_>) {
    let lease = w.driven().await;
    w.store.release(&lease).await.unwrap();
    let others = (0..500).map(|i| WorkflowPin { version: format!("other {i}").into(), ..pin() });
    let unknown = ClaimRequest { workflows: others.clone().collect(), ..claim_request() };
    assert!(w.store.claim_orphans(unknown).await.unwrap().is_empty());
    let known = ClaimRequest { workflows: others.chain([pin()]).collect(), ..claim_request() };
    assert_eq!(w.store.claim_orphans(known).await.unwrap().len(), 1);
}

async fn a_session_of_many_runs_is_cancelled_whole(w: &World<'_>) {
    let session = w.session_id();
    for _ in 0..120 {
        w.paused_run(w.new_run_in(&session), w.asks(&["a", "b"])).await;
    }
    let outcomes = w.store.cancel(cancel_request(CancelTarget::Session(session.clone()))).await.unwrap();
    assert_eq!(outcomes.len(), 120);
    assert!(w.list(in_scope(Scope::session(session))).await.is_empty());
}

async fn a_context_of_two_hundred_values_can_be_asked_for(w: &World<'_>) {
    let mut run = w.new_run();
    run.context = (0..200).map(|i| (format!("key {i}"), Scalar::Int(i))).collect();
    let paused = w.paused_run(run.clone(), w.asks(&["a"])).await;
    let whole = Scope { session_id: None, context: run.context.clone() };
    assert_eq!(ids(&w.list(in_scope(whole.clone())).await), ids(&paused.open));
    assert!(w.list(in_scope(whole.with("key 199", Scalar::Int(0)))).await.is_empty());
    assert_eq!(w.run(&run.run_id).await.context, run.context);
}

async fn many_defaults_of_one_run_apply_together(w: &World<'_>) {
    let names: Vec<String> = (0..90).map(|i| format!("q{i}")).collect();
    let asks = names.iter().map(|name| NewInterrupt { default: Some(text(name)), ..w.ask(name) }).collect();
    let paused = w.paused_run(w.new_run(), asks).await;
    w.advance(OPEN_FOR);

    let claimed = w.expire().await.claimed.remove(0);

    assert_eq!(claimed.answers.iter().map(|a| a.seq).collect::<Vec<_>>(), (1..=90).collect::<Vec<_>>());
    let given: BTreeSet<_> = claimed.answers.iter().map(|a| (a.request_id.clone(), a.answer.clone())).collect();
    let expected = ids(&paused.open).into_iter().zip(names.iter().map(|name| text(name)));
    assert_eq!(given, expected.collect());
}

async fn an_ask_key_may_be_empty_or_very_long(w: &World<'_>) {
    let long = "k".repeat(10_000);
    let other = format!("{long}2");
    let names = ["", " ", long.as_str(), other.as_str()];
    let paused = w.paused(&names).await;
    assert_eq!(keys(&paused.open), names);
    let claimed = granted(w.answer(&paused.open[3], "yes").await);
    assert_eq!(claimed.answers[0].ask, paused.open[3].ask);
    let withdraw = vec![paused.open[0].ask.clone(), paused.open[2].ask.clone()];
    let request = Suspend { withdraw, answers_seen: 1, ..suspend(RunRef::Held(claimed.lease), Vec::new()) };
    w.store.suspend(request).await.unwrap();
    assert_eq!(keys(&w.list(of_run(&paused.run.run_id)).await), [" "]);
}

async fn a_lease_may_last_for_ever_or_not_at_all(w: &World<'_>) {
    let open = |ttl| OpenRun {
        run: w.new_run(),
        driver: Driver { ttl, ..driver() },
        snapshot: bytes("s"),
        chunks: Vec::new(),
    };
    let ever = w.store.open(open(Duration::MAX)).await.unwrap();
    let never = w.store.open(open(Duration::ZERO)).await.unwrap();
    assert_eq!(ever.until, Timestamp::MAX);

    w.advance(LEASE * 100_000);

    let claimed: Vec<_> = w.claim().await.into_iter().map(|claimed| claimed.run.run_id).collect();
    assert_eq!(claimed, [never.run_id]);
    assert_eq!(w.store.renew(&ever, Duration::MAX, 0).await.unwrap().lease.until, Timestamp::MAX);
    w.store.renew(&ever, MARGIN, 0).await.unwrap();
    w.advance(MARGIN * 2);
    assert_eq!(w.claim().await[0].run.run_id, ever.run_id);
}
