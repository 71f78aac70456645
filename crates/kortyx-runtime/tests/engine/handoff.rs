//! Handing a run over to another workflow.

use kortyx_protocol::{FailureCode, StreamChunk};
use kortyx_runtime::{NodeContext, NodeOutput, Turn, Workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    sample::{Counter, asks, idle, named, one_node, yes_no},
    support::{Drive, World, completed, failed, select},
};

/// Hands over to `target` with a field and some state set.
fn hands_over(input: Option<Value>) -> Workflow {
    named("from", move |ctx: NodeContext| {
        let input = input.clone();
        async move {
            ctx.workflow_state("kept", 0u32).set(&7)?;
            ctx.node_state("own", 0u32).set(&7)?;
            let output = NodeOutput::new().data("field", "kept");
            Ok(match &input {
                Some(input) => output.transition_with("target", input),
                None => output.transition_to("target"),
            })
        }
    })
}

/// Says what it sees after having asked.
fn target() -> Workflow {
    named("target", |ctx: NodeContext| async move {
        let answer = ctx.interrupt("q", yes_no("?")).await?;
        let input: Value = ctx.input()?;
        let (kept, own) = (ctx.workflow_state("kept", 0u32).get()?, ctx.node_state("own", 0u32).get()?);
        let field: String = ctx.data("field")?;
        Ok(NodeOutput::new().data("all", &(answer, input, kept, own, field, ctx.workflow())))
    })
}

fn transitions(world: &World) -> Vec<Value> {
    let chunks = world.chunks.lock().unwrap();
    let transitions = chunks.iter().filter(|chunk| matches!(chunk, StreamChunk::Transition { .. }));
    transitions.map(|chunk| serde_json::to_value(chunk).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn data_and_workflow_state_survive_a_handoff_and_the_pause_after_it() {
    for (input, seen) in [(None, json!("first")), (Some(json!({"new": 1})), json!({"new": 1}))] {
        let (from, to) = (hands_over(input.clone()), target());
        let world = World::new(&[&from, &to]);
        assert!(matches!(world.run(&from, json!("first")).await, Drive::Waiting));
        let output = completed(world.answer("q", select(&["yes"])).await);
        assert_eq!(output["all"], json!(["yes", seen, 7, 0, "kept", "target"]));
        let announced = transitions(&world);
        assert_eq!(announced.len(), 1, "told once");
        assert_eq!(announced[0]["transitionTo"], "target");
        assert_eq!(announced[0]["payload"], input.unwrap_or_default());
    }
}

#[tokio::test(start_paused = true)]
async fn the_run_is_bound_to_the_workflow_that_it_was_handed_to() {
    let (from, to) = (hands_over(None), target());
    let world = World::new(&[&from, &to]);
    let mut execution = world.start(&from, &json!(null));
    let Ok(Turn::Suspended(pause)) = execution.advance().await else { panic!("expected a pause") };
    assert_eq!((&*pause.workflow.id, &*pause.workflow.fingerprint), ("target", to.definition().fingerprint()));
    world.run(&from, json!(null)).await;
    // The first workflow is no longer needed, the second is.
    let without = world.redeploy(&[&to]);
    completed(without.answer("q", select(&["yes"])).await);
    world.accept("q", select(&["yes"]));
    let Drive::Parked(failure) = world.redeploy(&[&from]).resume().await else { panic!("expected a parked run") };
    assert_eq!(failure.code, FailureCode::WorkflowChanged);
}

#[tokio::test(start_paused = true)]
async fn a_handoff_goes_to_the_latest_version_and_a_crash_does_not_change_that() {
    let version = |version: &str| Workflow::builder("target").version(version).node("node", asks("q")).build().unwrap();
    let (one, two, three) = (version("1"), version("2"), version("10"));
    let from = named("from", |_| async { Ok(NodeOutput::new().transition_to("target")) });
    let world = World::new(&[&from, &one, &two]);
    world.run(&from, json!(null)).await;
    world.accept("q", select(&["yes"]));
    assert_eq!(completed(world.redeploy(&[&two, &three]).resume().await), json!({"q": "yes"}));
    let Drive::Parked(failure) = world.redeploy(&[&three]).resume().await else { panic!("expected a parked run") };
    assert!(failure.message.contains("version `2`"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn a_handoff_after_a_pause_is_made_once() {
    let from = named("from", |ctx: NodeContext| async move {
        ctx.interrupt("go", yes_no("Go?")).await?;
        Ok(NodeOutput::new().transition_to("target"))
    });
    let to = named("target", asks("q"));
    let world = World::new(&[&from, &to]);
    world.run(&from, json!(null)).await;
    assert!(matches!(world.answer("go", select(&["yes"])).await, Drive::Waiting));
    assert_eq!(transitions(&world).len(), 1);
    assert_eq!(completed(world.answer("q", select(&["yes"])).await), json!({"q": "yes"}));
    assert_eq!(transitions(&world).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_workflow_may_hand_over_to_itself_and_counts_its_visits() {
    let rounds = Counter::default();
    let counter = rounds.clone();
    let flow = named("again", move |ctx: NodeContext| {
        let rounds = counter.clone();
        async move {
            let key = ctx.idempotency_key("x");
            let mut keys: Vec<String> = ctx.optional_data("keys")?.unwrap_or_default();
            assert!(!keys.contains(&key), "each visit has keys of its own");
            keys.push(key);
            let output = NodeOutput::new().data("keys", &keys);
            Ok(if rounds.up() < 2 { output.transition_to("again") } else { output })
        }
    });
    let output = completed(World::new(&[&flow]).run(&flow, json!(null)).await);
    assert_eq!(output["keys"].as_array().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_handoff_to_a_workflow_with_fan_out_goes_on_there() {
    let from = named("from", |_| async { Ok(NodeOutput::new().data("field", &1).transition_to("target")) });
    let to = |version: &str| {
        Workflow::builder("target")
            .version(version)
            .node("start", idle)
            .node("a", asks("a"))
            .node("b", |ctx: NodeContext| async move {
                let field: u32 = ctx.data("field")?;
                Ok(NodeOutput::new().data("b", &field))
            })
            .edge("start", "a")
            .edge("start", "b")
            .build()
            .unwrap()
    };
    let to = to("1");
    let world = World::new(&[&from, &to]);
    world.run(&from, json!(null)).await;
    assert_eq!(completed(world.answer("a", select(&["yes"])).await), json!({"a": "yes", "b": 1, "field": 1}));
}

#[tokio::test(start_paused = true)]
async fn a_sequential_version_may_hand_over_to_a_version_of_itself_with_fan_out() {
    let first = Workflow::builder("flow")
        .version("1")
        .node("start", |_| async { Ok(NodeOutput::new().transition_to("flow")) })
        .build()
        .unwrap();
    let second = Workflow::builder("flow")
        .version("2")
        .node("start", idle)
        .node("a", |_| async { Ok(NodeOutput::new().data("a", &1)) })
        .node("b", |_| async { Ok(NodeOutput::new().data("b", &2)) })
        .edge("start", "a")
        .edge("start", "b")
        .build()
        .unwrap();
    let world = World::new(&[&first, &second]);
    assert_eq!(completed(world.run(&first, json!(null)).await), json!({"a": 1, "b": 2}));
}

#[tokio::test(start_paused = true)]
async fn a_handoff_to_nowhere_fails_the_run_and_tells_nobody() {
    let from = hands_over(None);
    let world = World::new(&[&from]);
    let failure = failed(world.run(&from, json!(null)).await);
    assert_eq!(failure.code, FailureCode::UnknownWorkflow);
    assert!(failure.message.contains("`target`"), "{}", failure.message);
    assert!(transitions(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_branch_cannot_hand_the_run_over() {
    let flow = Workflow::builder("flow")
        .node("start", idle)
        .node("a", |_| async { Ok(NodeOutput::new().transition_to("target")) })
        .node("b", idle)
        .edge("start", "a")
        .edge("start", "b")
        .build()
        .unwrap();
    let to = named("target", idle);
    let world = World::new(&[&flow, &to]);
    assert_eq!(failed(world.run(&flow, json!(null)).await).code, FailureCode::GraphBranchHandoff);
    assert!(transitions(&world).is_empty());
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    amount: u32,
}

#[tokio::test(start_paused = true)]
async fn the_input_of_a_handoff_is_checked() {
    let to = Workflow::builder("target")
        .input::<Order>()
        .node(
            "node",
            |ctx: NodeContext| async move { Ok(NodeOutput::new().data("amount", &ctx.input::<Order>()?.amount)) },
        )
        .build()
        .unwrap()
        .erase();
    for (input, is_fine) in [(Some(json!({"amount": 3})), true), (Some(json!({"amount": "x"})), false), (None, false)] {
        let from = hands_over(input);
        let drive = World::new(&[&from, &to]).run(&from, json!("no order")).await;
        if is_fine {
            assert_eq!(completed(drive)["amount"], 3);
        } else {
            let failure = failed(drive);
            assert_eq!(failure.code, FailureCode::InvalidInput);
            assert!(failure.issues.is_some_and(|issues| !issues.is_empty()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_may_hand_over_and_returns_what_the_other_workflow_ends_with() {
    let child = named("child", |_| async { Ok(NodeOutput::new().data("first", &1).transition_to("target")) });
    let to = named("target", asks("q"));
    let inner = child.clone();
    let parent = one_node(move |ctx| {
        let child = inner.clone();
        async move { Ok(NodeOutput::new().data("child", &ctx.call("child", &child, json!({})).await?)) }
    });
    let world = World::new(&[&parent, &child, &to]);
    world.run(&parent, json!(null)).await;
    let output = completed(world.answer("q", select(&["no"])).await);
    assert_eq!(output, json!({"child": {"first": 1, "q": "no"}}));
}
