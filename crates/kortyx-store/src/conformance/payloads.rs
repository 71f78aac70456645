//! Payloads are kept byte for byte, wherever they are put.

use bytes::Bytes;

use super::{
    case::{Case, list},
    chains::{fork, rollback},
    outcome::{duplicate, forked, granted, refusal, rolled_back},
    world::{LEASE, MARGIN, OPEN_FOR, World, answer, bytes, driver, finish, record, suspend},
};
use crate::{
    Finish, NewAnswer, NewCheckpoint, NewInterrupt, OpenRun, Park, Record, Refusal, RunRef, Scalar, Store, Suspend,
    TerminalStatus, WorkflowPin,
};

list![
    an_empty_payload_is_a_payload,
    b117_integers_of_any_size_are_kept_digit_by_digit,
    b118_text_that_is_no_strict_json_is_kept_as_it_is,
    b119_nul_surrogates_emoji_and_invalid_utf8_are_kept,
    b115_every_shape_of_json_is_kept_with_its_white_space_and_key_order,
    b020_falsy_answers_are_answers,
    payloads_of_one_megabyte_are_kept,
    payloads_of_sixteen_megabytes_are_kept,
    b116_what_the_code_cannot_read_stays_as_it_was_written,
    b156_reading_a_paused_run_repairs_nothing,
    texts_with_quotes_wildcards_and_emoji_are_kept,
    contexts_with_any_text_are_kept,
];

async fn an_empty_payload_is_a_payload(w: &World<'_>) {
    travels_everywhere(w, Bytes::new()).await;
}

async fn b117_integers_of_any_size_are_kept_digit_by_digit(w: &World<'_>) {
    let json = r#"{"max":18446744073709551615,"min":-9223372036854775808,"odd":9007199254740993,
        "over":18446744073709551616,"big":1234567890123456789012345678901234567890,"tail":1.10,"exp":1E+400}"#;
    travels_everywhere(w, bytes(json)).await;
}

async fn b118_text_that_is_no_strict_json_is_kept_as_it_is(w: &World<'_>) {
    for text in ["NaN", "-Infinity", r#"{"a":-0.0,"b":NaN}"#, "{", "'; DROP TABLE runs; --"] {
        travels_everywhere(w, bytes(text)).await;
    }
}

async fn b119_nul_surrogates_emoji_and_invalid_utf8_are_kept(w: &World<'_>) {
    let texts = [
        "\"\\u0000\"",
        "\0",
        "a\0b\0",
        r#""\ud800""#,
        r#""\udc00\ud800""#,
        "\"😀👩‍👩‍👧\"",
        "\u{202e}\u{feff}e\u{301}\u{ffff}",
    ];
    for text in texts {
        travels_everywhere(w, bytes(text)).await;
    }
    travels_everywhere(w, Bytes::from_static(b"\xff\xfe\x00\x80\xc3\x28\xed\xa0\x80")).await;
    travels_everywhere(w, (0..=255).collect::<Vec<u8>>().into()).await;
}

async fn b115_every_shape_of_json_is_kept_with_its_white_space_and_key_order(w: &World<'_>) {
    let json = "\u{feff} {\r\n \"b\" : [ null , true,{\"Some\":[1,\"two\"]} ],\t\"a\":{},\"a\":\"twice\",\"\":[[]]}\n";
    travels_everywhere(w, bytes(json)).await;
}

async fn b020_falsy_answers_are_answers(w: &World<'_>) {
    for value in ["false", "0", "0.0", r#""""#, "[]", "{}", "null", ""] {
        let paused = w.paused(&["a"]).await;
        let given = NewAnswer { answer: bytes(value), ..answer(&paused.open[0], "") };
        let claimed = granted(w.answer_all(vec![given.clone()]).await);
        assert_eq!((claimed.answers.len(), &claimed.answers[0].answer), (1, &bytes(value)));
        assert_eq!(w.question(&paused.open[0].request_id).await.answer, Some(bytes(value)));
        duplicate(w.answer_all(vec![given]).await);
        assert!(matches!(refusal(w.answer(&paused.open[0], "other").await), Refusal::Conflict(_)));
    }
}

async fn payloads_of_one_megabyte_are_kept(w: &World<'_>) {
    travels_everywhere(w, noise(1 << 20)).await;
}

async fn payloads_of_sixteen_megabytes_are_kept(w: &World<'_>) {
    travels_everywhere(w, noise(16 << 20)).await;
}

/// Bytes that do not compress (xorshift, Marsaglia 2003).
fn noise(length: usize) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(length).collect::<Vec<u8>>().into()
}

/// Puts the payload in every place that takes one, and reads it back from every place that gives one.
async fn travels_everywhere(w: &World<'_>, payload: Bytes) {
    let run = w.new_run();
    let open = OpenRun { run: run.clone(), driver: driver(), snapshot: payload.clone(), chunks: Vec::new() };
    let lease = w.store.open(open).await.unwrap();
    let asked = NewInterrupt { question: payload.clone(), default: Some(payload.clone()), ..w.ask("a") };
    let later = NewInterrupt { question: payload.clone(), ..asked.clone() };
    let later = NewInterrupt { request_id: w.request_id(), token: w.token(), ask: w.ask("b").ask, ..later };
    let entries = vec![payload.clone(), bytes("between"), payload.clone()];
    let recorded = w.store.record(Record { entries: entries.clone(), publish: vec![asked], ..record(&lease) }).await;
    let question = recorded.unwrap().published.remove(0);
    assert_eq!((&question.question, question.default.as_ref()), (&payload, Some(&payload)));

    let given = NewAnswer { answer: payload.clone(), ..answer(&question, "") };
    w.answer_all(vec![given.clone()]).await;
    w.store.release(&lease).await.unwrap();
    for store in w.instances().await {
        let stored = store.interrupt(&question.request_id).await.unwrap().unwrap();
        assert!(stored.question == payload && stored.answer.as_ref() == Some(&payload), "the question changed");
    }
    let claimed = w.claim().await.remove(0);
    assert!(claimed.snapshot == payload && claimed.entries == entries, "the snapshot or its entries changed");
    assert!(claimed.answers[0].answer == payload, "the answer changed");
    duplicate(w.answer_all(vec![given]).await);

    let checkpoint = NewCheckpoint { state: payload.clone(), ..w.new_checkpoint("turn") };
    let request = Suspend {
        snapshot: payload.clone(),
        answers_seen: 1,
        checkpoint: Some(checkpoint),
        ..suspend(RunRef::Held(claimed.lease), vec![later])
    };
    w.store.suspend(request).await.unwrap();
    for store in w.instances().await {
        travels_through_checkpoints(store.as_ref(), &run.session_id, &payload).await;
    }
    travels_through_copies(w, &run.session_id, &payload).await;
}

async fn travels_through_checkpoints(store: &dyn Store, session: &kortyx_protocol::SessionId, payload: &Bytes) {
    let head = store.head(session).await.unwrap().unwrap();
    let listed = store.list_checkpoints(session).await.unwrap().remove(0);
    let read = store.checkpoint(&head.checkpoint.id).await.unwrap().unwrap();
    for checkpoint in [head, listed, read] {
        assert!(checkpoint.checkpoint.state == *payload, "the state changed");
        assert!(checkpoint.snapshot.as_ref() == Some(payload), "the checkpoint's snapshot changed");
        assert!(checkpoint.interrupts[0].question == *payload, "the checkpoint's question changed");
    }
}

/// Forks, rolls back, lets the default apply, and ends the run, all with the payload.
async fn travels_through_copies(w: &World<'_>, session: &kortyx_protocol::SessionId, payload: &Bytes) {
    let head = w.store.head(session).await.unwrap().unwrap();
    let copy = forked(w.store.fork(fork(w, &head)).await.unwrap()).remove(0);
    assert!(copy.question == *payload, "the fork's question changed");
    let given = NewAnswer { answer: payload.clone(), ..answer(&copy, "") };
    let claimed = granted(w.answer_all(vec![given]).await);
    assert!(claimed.snapshot == *payload, "the fork's snapshot changed");
    w.complete(&claimed.lease, claimed.run.answers).await;

    let newer = w.append(session, "newer").await;
    assert_eq!(newer.parent.as_ref(), Some(&head.checkpoint.id));
    let reopened = rolled_back(w.store.rollback(rollback(w, &head)).await.unwrap()).remove(0);
    assert!(reopened.question == *payload, "the reissued question changed");
    w.advance(OPEN_FOR);
    let batch = w.expire().await;
    let claimed = batch.claimed.into_iter().find(|claimed| claimed.run.run_id == reopened.run_id).unwrap();
    assert!(claimed.snapshot == *payload && claimed.answers[0].answer == *payload, "the default changed");
    let request = Finish {
        outcome: payload.clone(),
        answers_seen: claimed.run.answers,
        ..finish(RunRef::Held(claimed.lease), TerminalStatus::Completed)
    };
    w.store.finish(request).await.unwrap();
    for store in w.instances().await {
        let outcome = store.run(&reopened.run_id).await.unwrap().unwrap().outcome;
        assert!(outcome.as_ref() == Some(payload), "the outcome changed");
    }
}

async fn b116_what_the_code_cannot_read_stays_as_it_was_written(w: &World<'_>) {
    let snapshot = Bytes::from_static(b"{\"v\":999,\"type\":\"moved::away\"}\xff");
    let run = w.new_run();
    let request = Suspend { snapshot: snapshot.clone(), ..suspend(RunRef::New(run.clone(), driver()), w.asks(&["a"])) };
    let open = super::world::saved(w.store.suspend(request).await.unwrap());
    let claimed = granted(w.answer(&open[0], "yes").await);
    for attempt in 0..3 {
        let lease = if attempt == 0 {
            claimed.lease.clone()
        } else {
            let before = Some(w.store.now().await.unwrap().saturating_add(MARGIN));
            let request = crate::ClaimRequest { parked_before: before, ..super::world::claim_request() };
            let again = w.store.claim_orphans(request).await.unwrap().remove(0);
            assert_eq!((&again.snapshot, &again.answers), (&snapshot, &claimed.answers));
            again.lease
        };
        w.store.park(Park { lease, reason: "unknown type".to_owned() }).await.unwrap();
    }
}

async fn b156_reading_a_paused_run_repairs_nothing(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let read = || async {
        let question = w.question(&paused.open[0].request_id).await;
        format!("{:?} {question:?} {:?}", w.run(&paused.run.run_id).await, w.open(&paused.run.run_id).await)
    };
    let before = read().await;
    w.advance(LEASE * 5);
    w.claim().await;
    w.expire().await;
    w.store.prune(&crate::Retention::default(), 100).await.unwrap();
    for store in w.instances().await {
        store.setup().await.unwrap();
    }
    assert_eq!(read().await, before);
    assert_eq!(granted(w.answer(&paused.open[0], "yes").await).snapshot, bytes("suspended"));
}

async fn texts_with_quotes_wildcards_and_emoji_are_kept(w: &World<'_>) {
    let odd = "it's \"quoted\"\\ %_*?[]{}$1 :x ?1 -- ;\r\n\t😀 é ߷ \u{202e}";
    let workflow = WorkflowPin {
        id: format!("id {odd}").into(),
        version: format!("v {odd}").into(),
        fingerprint: format!("f {odd}").into(),
    };
    let run = crate::NewRun { workflow: workflow.clone(), ..w.new_run() };
    let lease = w.driven_run(run.clone()).await;
    let asked = NewInterrupt { node: format!("node {odd}"), workflow: odd.to_owned(), ..w.ask(&format!("key {odd}")) };
    let open = w.published(&lease, vec![asked.clone()]).await;
    let given = NewAnswer { actor: Some(odd.to_owned()), ..answer(&open[0], "yes") };
    w.answer_all(vec![given]).await;
    w.store.park(Park { lease, reason: odd.to_owned() }).await.unwrap();

    let stored = w.question(&asked.request_id).await;
    assert_eq!((stored.ask, stored.node, stored.workflow), (asked.ask.clone(), asked.node, asked.workflow));
    assert_eq!(stored.receipt.unwrap().actor.as_deref(), Some(odd));
    let parked = w.run(&run.run_id).await;
    assert_eq!((parked.workflow, parked.reason.as_deref()), (workflow.clone(), Some(odd)));
    let before = Some(w.store.now().await.unwrap().saturating_add(MARGIN));
    let request =
        crate::ClaimRequest { workflows: vec![workflow], parked_before: before, ..super::world::claim_request() };
    let claimed = w.store.claim_orphans(request).await.unwrap().remove(0);
    assert_eq!((&claimed.answers[0].ask, claimed.answers[0].actor.as_deref()), (&asked.ask, Some(odd)));
    let reason = Some(odd.to_owned());
    let ended = Finish { reason, answers_seen: 1, ..finish(RunRef::Held(claimed.lease), TerminalStatus::Cancelled) };
    w.store.finish(ended).await.unwrap();
    assert_eq!(w.run(&run.run_id).await.reason.as_deref(), Some(odd));
    let checkpoint = NewCheckpoint {
        nodes: vec![odd.to_owned()],
        workflow_version: Some(odd.to_owned()),
        structured_stream_ids: vec![odd.to_owned(), "plain".to_owned()],
        ..w.new_checkpoint(odd)
    };
    w.store.append_checkpoint(&run.session_id, checkpoint.clone()).await.unwrap();
    assert_eq!(w.store.checkpoint(&checkpoint.id).await.unwrap().unwrap().checkpoint, checkpoint);
}

async fn contexts_with_any_text_are_kept(w: &World<'_>) {
    let mut run = w.new_run();
    for (i, key) in ["", " ", "a", "A", "a.b", "$.a", "\"", "'", "😀", "é", "%", "\0", "a\0b"].iter().enumerate() {
        run.context.insert((*key).to_owned(), Scalar::Text(format!("{key}\0😀{i}").into()));
        run.context.insert(format!("{key}#"), Scalar::Int(i64::MIN + i64::try_from(i).unwrap()));
        run.context.insert(format!("{key}?"), Scalar::Bool(i % 2 == 0));
    }
    let paused = w.paused_run(run.clone(), w.asks(&["a"])).await;
    assert_eq!(*paused.open[0].context, run.context);
    for store in w.instances().await {
        assert_eq!(store.run(&run.run_id).await.unwrap().unwrap().context, run.context);
        let question = store.interrupt(&paused.open[0].request_id).await.unwrap().unwrap();
        assert_eq!(*question.context, run.context);
    }
    for (key, value) in &run.context {
        let scope = crate::Scope::default().with(key.clone(), value.clone());
        assert_eq!(w.list(super::world::in_scope(scope)).await.len(), 1, "{key:?}");
    }
}
