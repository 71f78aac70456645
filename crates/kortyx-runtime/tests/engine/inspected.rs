//! Stored runs as those see them who look at them.

use kortyx_contracts::Text;
use kortyx_protocol::{RawJson, Timestamp};
use kortyx_runtime::{
    NodeContext, NodeError, NodeOutput, RestoreError, Workflow,
    inspect::{self, ActivationView, CallKind, CallStanding, RunView, Standing},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    sample::{idle, named, yes_no},
    support::{Drive, World, text},
};

/// A run that waits in a child and beside it, with an entry since its snapshot.
async fn waiting() -> (Vec<u8>, Vec<Vec<u8>>) {
    let child = named("child", |ctx| async move {
        ctx.step("inner step", || async { Ok::<_, NodeError>("secret result".to_owned()) }).await?;
        let answer = ctx.interrupt("inner", Text::new("?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let inner = child.clone();
    let flow = Workflow::builder("flow")
        .node("start", idle)
        .node("calls", move |ctx: NodeContext| {
            let child = inner.clone();
            async move { Ok(NodeOutput::new().data("child", &ctx.call("child", &child, json!({"in": 1})).await?)) }
        })
        .node("asks", |ctx: NodeContext| async move {
            ctx.interrupt("a", yes_no("A?")).await?;
            ctx.interrupt("b", Text::new("B?")).await?;
            Ok(NodeOutput::new())
        })
        .edge("start", "calls")
        .edge("start", "asks")
        .build()
        .unwrap();
    let world = World::new(&[&flow, &child]);
    assert!(matches!(world.run(&flow, Value::Null).await, Drive::Waiting));
    let stored = world.stored.lock().unwrap().clone();
    (stored.snapshot.unwrap(), stored.entries)
}

fn view(snapshot: &[u8], entries: &[Vec<u8>]) -> Result<RunView, RestoreError> {
    inspect::view(snapshot, &entries.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn visit<'a>(view: &'a RunView, node: &str) -> &'a ActivationView {
    view.activations.iter().find(|activation| &*activation.node == node).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_waiting_run_shows_its_frames_its_visits_and_what_they_called() {
    let (snapshot, entries) = waiting().await;

    let view = view(&snapshot, &entries).unwrap();

    assert_eq!(view.frames.iter().map(|frame| &*frame.workflow.id).collect::<Vec<_>>(), ["flow", "child"]);
    let (calls, asks) = (visit(&view, "calls"), visit(&view, "asks"));
    assert_eq!(view.frames[1].caller, Some(calls.id));
    assert_eq!(view.frames[0].visits["flow/calls"], 1);
    assert_eq!(view.frames[0].closed["start"], inspect::Closed::Done);
    let child = &calls.calls[0];
    assert_eq!(
        (child.kind, child.standing, child.frame),
        (CallKind::Call, CallStanding::Open, Some(view.frames[1].id))
    );
    let inner = view.activations.iter().find(|activation| activation.frame == view.frames[1].id).unwrap();
    assert_eq!(inner.calls.iter().map(|call| &*call.id).collect::<Vec<_>>(), ["inner step", "inner"]);
    assert_eq!((inner.calls[0].kind, inner.calls[0].standing), (CallKind::Step, CallStanding::Done));
    assert_eq!((asks.standing.clone(), asks.calls[0].standing), (Standing::Waiting, CallStanding::Open));
    assert_eq!(
        asks.calls[0].ask.as_deref().and_then(inspect::visit_of),
        Some(asks.id),
        "storage knows the question by it"
    );
    assert!(!format!("{view:?}").contains("secret result"), "values are no part of it");
}

#[tokio::test(start_paused = true)]
async fn visits_and_calls_say_when_they_were() {
    let (snapshot, entries) = waiting().await;

    let view = view(&snapshot, &entries).unwrap();

    let inner = view.activations.iter().find(|activation| activation.frame == view.frames[1].id).unwrap();
    let (began, ended) = (inner.began_at.unwrap(), inner.calls[0].ended_at.unwrap());
    assert!(Timestamp::MIN < began && began < ended, "{began} {ended}");
    assert_eq!(inner.calls[1].ended_at, None, "the question is open");
}

#[tokio::test(start_paused = true)]
async fn what_ended_since_the_snapshot_is_still_shown() {
    let (snapshot, _) = waiting().await;
    let asks = visit(&view(&snapshot, &[]).unwrap(), "asks").id;
    let completed =
        json!({"v": 1, "events": [{"Completed": {"activation": asks, "data": {}, "state": {}, "closed": null}}]});

    let view = view(&snapshot, &[serde_json::to_vec(&completed).unwrap()]).unwrap();

    assert_eq!(visit(&view, "asks").standing, Standing::Completed);
    assert_eq!(visit(&view, "asks").calls.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_stored_before_times_were_noted_shows_without_them() {
    let (snapshot, _) = waiting().await;
    let mut state: Value = serde_json::from_slice(&snapshot).unwrap();
    for activation in state["activations"].as_object_mut().unwrap().values_mut() {
        activation.as_object_mut().unwrap().remove("at");
    }

    let view = view(&serde_json::to_vec(&state).unwrap(), &[]).unwrap();

    assert!(view.activations.iter().all(|activation| activation.began_at.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_newer_snapshot_is_refused_and_a_newer_entry_ends_the_view() {
    let (snapshot, _) = waiting().await;
    let mut newer: Value = serde_json::from_slice(&snapshot).unwrap();
    newer["v"] = json!(2);
    assert!(matches!(view(&serde_json::to_vec(&newer).unwrap(), &[]), Err(RestoreError::Parked(_))));

    let entries = [r#"{"v":1,"events":[]}"#, r#"{"v":2,"events":[{"Unheard":{}}]}"#, "{"].map(Into::into);
    let unread = view(&snapshot, &entries).unwrap().unread.unwrap();
    assert_eq!(unread.entry, 1);
    assert!(unread.reason.contains("newer release"), "{}", unread.reason);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_calls_itself_is_broken_and_hangs_nobody() {
    let (snapshot, _) = waiting().await;
    let before = view(&snapshot, &[]).unwrap();
    let (calls, pin) = (visit(&before, "calls"), json!({"id": "x", "version": "1", "fingerprint": ""}));
    let key = json!({"id": "again", "occ": 0});
    let called = json!({"Called": {
        "activation": calls.id, "key": key, "identity": "", "frame": calls.frame, "pin": pin, "input": RawJson::null()
    }});
    let answered = json!({"Journaled": {"activation": calls.id, "entry": {
        "key": key, "kind": "interrupt", "value": {"Answer": text("x")}
    }}});
    let entry = serde_json::to_vec(&json!({"v": 1, "events": [called, answered]})).unwrap();

    let unread = view(&snapshot, &[entry]).unwrap().unread.unwrap();

    assert!(unread.reason.contains("called from within itself"), "{}", unread.reason);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn whatever_is_stored_is_looked_at_without_a_panic(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let (mut snapshot, entries) = sample();
        let at = at.index(snapshot.len());
        if cut { snapshot.truncate(at) } else { snapshot[at] = byte }
        let _ = view(&snapshot, &entries);
        let _ = view(&entries.concat(), &[snapshot]);
    }
}

/// As [`waiting`], made once.
fn sample() -> (Vec<u8>, Vec<Vec<u8>>) {
    static SAMPLE: std::sync::OnceLock<(Vec<u8>, Vec<Vec<u8>>)> = std::sync::OnceLock::new();
    let made = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(waiting())
    };
    SAMPLE.get_or_init(made).clone()
}
