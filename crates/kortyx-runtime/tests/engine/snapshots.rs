//! Stored states that are newer, broken, or made by other code.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kortyx_contracts::Text;
use kortyx_protocol::FailureCode;
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, RestoreError, Workflow};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    sample::{Counter, asks, idle, named, one_node, slept, yes_no},
    support::{Drive, World, completed, select, text},
};

/// A run that waits in a branch, in a child and in the middle of a loop: its workflows and its world, with entries.
async fn rich() -> (Vec<Workflow>, Arc<World>) {
    let child = named("child", |ctx| async move {
        ctx.step("inner", || async { Ok::<_, NodeError>(json!({"big": u64::MAX})) }).await?;
        let answer = ctx.interrupt("inner", Text::new("?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let inner = child.clone();
    let flow = Workflow::builder("flow")
        .node("start", |ctx: NodeContext| async move {
            ctx.workflow_state("n", 0u32).set(&1)?;
            ctx.node_state("n", 0u32).set(&1)?;
            Ok(NodeOutput::new().data("field", "text"))
        })
        .node("calls", move |ctx: NodeContext| {
            let child = inner.clone();
            async move {
                let output = ctx.call("child", &child, json!({"in": 1})).await?;
                Ok(NodeOutput::new().data("child", &output))
            }
        })
        .node("asks", |ctx: NodeContext| async move {
            let stamp = (ctx.now()?, ctx.random_id()?, ctx.workflow_state("n", 0u32).get()?);
            ctx.text("seen").await;
            let (a, b) = ctx.interrupt_all((("a", yes_no("A?")), ("b", Text::new("B?")))).await?;
            Ok(NodeOutput::new().data("both", &(a, b, stamp.1)))
        })
        .node("end", idle)
        .edge("start", "calls")
        .edge("start", "asks")
        .edge("calls", "end")
        .edge("asks", "end")
        .build()
        .unwrap();
    let workflows = vec![flow, child];
    let world = World::new(&workflows.iter().collect::<Vec<_>>());
    assert!(matches!(world.run(&workflows[0], json!({"x": [1, 2.5, null]})).await, Drive::Waiting));
    world.accept("b", text("b"));
    // The answer is stored as an entry, as a driver does whose run goes on.
    world.accept("inner", text("i"));
    assert!(matches!(world.resume().await, Drive::Waiting));
    (workflows, world)
}

async fn finishes(world: &Arc<World>) -> Value {
    completed(world.answer("a", select(&["yes"])).await)
}

#[tokio::test(start_paused = true)]
async fn a_rich_state_goes_on_from_its_snapshot() {
    let (workflows, world) = rich().await;
    let world = world.redeploy(&workflows.iter().collect::<Vec<_>>());
    let output = finishes(&world).await;
    assert_eq!((&output["both"][0], &output["child"]["answer"]), (&json!("yes"), &json!("i")));
}

fn edited(snapshot: &[u8], edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(snapshot).unwrap();
    edit(&mut value);
    serde_json::to_vec(&value).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_newer_snapshot_or_entry_is_refused_and_parks_the_run() {
    let (_, world) = rich().await;
    let snapshot = world.stored.lock().unwrap().snapshot.clone().unwrap();
    let newer = |format: Value| serde_json::to_vec(&format).unwrap();
    let of_today = edited(&snapshot, |state| state["v"] = json!(2));
    for (snapshot, entries) in [
        (of_today, vec![]),
        (newer(json!({"v": 2, "everything": "is different"})), vec![]),
        (snapshot.clone(), vec![newer(json!({"v": 9, "events": []}))]),
        (snapshot.clone(), vec![newer(json!({"v": 9, "events": [{"Unheard": {}}]}))]),
    ] {
        *world.stored.lock().unwrap() =
            crate::support::Stored { snapshot: Some(snapshot), entries, ..Default::default() };
        match world.restore().err() {
            Some(RestoreError::Parked(failure)) => {
                assert_eq!(failure.code, FailureCode::WorkflowChanged);
                assert!(failure.message.contains("newer release"), "{}", failure.message);
            }
            other => panic!("expected a parked run, found {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_reads_but_cannot_be_is_corrupt() {
    let (_, world) = rich().await;
    let snapshot = world.stored.lock().unwrap().snapshot.clone().unwrap();
    let edits: [Edit; 9] = [
        ("no root", |state| drop(state["frames"].as_object_mut().unwrap().remove("0"))),
        ("a root with a caller", |state| {
            state["frames"]["0"]["parent"] = json!({"activation": 2, "key": {"id": "x", "occ": 0}});
        }),
        ("frames not counted", |state| state["next_frame"] = json!(0)),
        ("activations not counted", |state| state["next_activation"] = json!(0)),
        ("an activation in no frame", |state| first_activation(state)["frame"] = json!(99)),
        ("a node that is none", |state| first_activation(state)["node"] = json!("nowhere")),
        ("no branch in a graph with fan-out", |state| {
            first_activation(state).as_object_mut().unwrap().remove("branch");
        }),
        ("a child that is missing", |state| {
            let child = json!({"key": {"id": "x", "occ": 0}, "identity": "child@1", "frame": 7});
            first_activation(state)["journal"]["children"] = json!([child]);
        }),
        ("a frame that nobody called", |state| {
            let mut frame = state["frames"]["0"].clone();
            frame["parent"] = json!({"activation": 2, "key": {"id": "x", "occ": 0}});
            state["frames"]["1"] = frame;
        }),
    ];
    for (what, edit) in edits {
        world.stored.lock().unwrap().snapshot = Some(edited(&snapshot, edit));
        match world.restore().err() {
            Some(RestoreError::Corrupt(_)) => {}
            other => panic!("{what}: found {other:?}"),
        }
    }
    world.stored.lock().unwrap().snapshot = Some(snapshot);
    finishes(&world).await;
}

/// What is broken, and how.
type Edit = (&'static str, fn(&mut Value));

fn first_activation(state: &mut Value) -> &mut Value {
    state["activations"].as_object_mut().unwrap().values_mut().next().unwrap()
}

/// What a random hand does to bytes.
#[derive(Debug, Clone)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Digit(prop::sample::Index, u8),
    Remove(prop::sample::Index, u8),
}

impl Damage {
    fn to(&self, bytes: &mut Vec<u8>) {
        match self {
            _ if bytes.is_empty() => {}
            Self::Flip(at, bits) => {
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
            }
            Self::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Self::Digit(at, digit) => {
                let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
                if !digits.is_empty() {
                    bytes[digits[at.index(digits.len())]] = b'0' + digit % 10;
                }
            }
            Self::Remove(at, count) => {
                let from = at.index(bytes.len());
                drop(bytes.drain(from..bytes.len().min(from + usize::from(*count))));
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        1 => (at(), 1..=255u8).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        1 => at().prop_map(Damage::Cut),
        4 => (at(), any::<u8>()).prop_map(|(at, digit)| Damage::Digit(at, digit)),
        1 => (at(), any::<u8>()).prop_map(|(at, count)| Damage::Remove(at, count)),
    ]
}

fn paused<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(future)
}

/// Restores whatever the bytes are and drives it on for a while: anything may come out but a panic or a hang.
async fn survives(world: Arc<World>) {
    let Ok(mut execution) = world.restore() else { return };
    let hour = Duration::from_mins(50);
    let _ = tokio::time::timeout(hour, execution.advance()).await;
}

#[test]
fn no_damage_to_a_snapshot_panics_or_hangs() {
    let (workflows, world) = paused(rich());
    world.accept("a", select(&["yes"]));
    let stored = world.stored.lock().unwrap().clone();
    let workflows: Vec<&Workflow> = workflows.iter().collect();
    proptest!(ProptestConfig::with_cases(600), |(damages in prop::collection::vec(damage(), 1..4))| {
        let world = world.redeploy(&workflows);
        let mut damaged = stored.clone();
        for damage in &damages {
            damage.to(damaged.snapshot.as_mut().unwrap());
        }
        *world.stored.lock().unwrap() = damaged;
        paused(survives(world.clone()));
    });
}

#[test]
fn no_damage_to_an_entry_panics_or_hangs() {
    let steps = Counter::default();
    let counter = steps.clone();
    let child = named("child", asks("inner"));
    let inner = child.clone();
    let flow = one_node(move |ctx| {
        let (child, steps) = (inner.clone(), counter.clone());
        async move {
            for i in 0..3 {
                ctx.step(&format!("{i}"), || steps.effect()).await?;
                ctx.now()?;
                ctx.text("x").await;
            }
            let call = ctx.call("child", &child, json!({}));
            let last = ctx.step("last", || slept(Duration::from_secs(9)));
            let (call, last) = tokio::join!(call, last);
            last?;
            Ok(NodeOutput::new().data("child", &call?))
        }
    });
    let world = World::new(&[&flow, &child]);
    // Everything but the last write: the state is in the entries.
    world.writes_left.store(6, Ordering::SeqCst);
    assert!(matches!(paused(world.run(&flow, json!(null))), Drive::Crashed));
    let stored = world.stored.lock().unwrap().clone();
    assert!(stored.entries.len() > 2, "{}", stored.entries.len());
    proptest!(ProptestConfig::with_cases(600), |(damages in prop::collection::vec((any::<prop::sample::Index>(), damage()), 1..4))| {
        let world = world.redeploy(&[&flow, &child]);
        let mut damaged = stored.clone();
        for (at, damage) in &damages {
            let at = at.index(damaged.entries.len());
            damage.to(&mut damaged.entries[at]);
        }
        *world.stored.lock().unwrap() = damaged;
        paused(survives(world.clone()));
    });
}
