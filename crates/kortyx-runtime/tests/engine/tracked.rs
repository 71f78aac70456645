//! What a session keeps of a run's turns.

use std::sync::{Arc, atomic::Ordering};

use kortyx_protocol::{ResumeResponse, StreamChunk};
use kortyx_runtime::{Execution, NodeContext, NodeOutput, Turn, TurnState, Workflow};
use serde_json::{Value, json};

use crate::{
    sample::{Counter, asks, idle, one_node, yes_no},
    support::{Drive, World, select},
};

fn yes() -> ResumeResponse {
    select(&["yes"])
}

/// Drives a turn to its end and gives what is kept of it, with the workflow that it ends in.
async fn turn(world: &Arc<World>, execution: &mut Execution) -> (String, TurnState) {
    assert!(matches!(world.drive(execution).await, Drive::Waiting | Drive::Ended(_)));
    let (pin, turn) = execution.handle().turn().unwrap();
    (pin.id.to_string(), turn)
}

async fn next_turn(world: &Arc<World>, question: &str) -> (String, TurnState) {
    world.accept(question, yes());
    turn(world, &mut world.restore().unwrap()).await
}

fn kept(turn: &TurnState) -> Value {
    json!({ "data": turn.data, "state": turn.workflow_state, "nodes": turn.nodes })
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_tracked_tells_nothing() {
    let flow = one_node(asks("q"));
    let world = World::new(&[&flow]);
    let mut execution = world.start(&flow, &Value::Null);
    let Ok(Turn::Suspended(pause)) = execution.advance().await else { panic!("it asks") };
    assert!(pause.turn.is_none() && execution.handle().turn().is_none());
    assert!(!String::from_utf8(pause.snapshot).unwrap().contains("trace"));
}

#[tokio::test(start_paused = true)]
async fn each_turn_tells_its_nodes_and_where_the_run_stands_through_handoffs() {
    let counts = |ctx: NodeContext| async move {
        let count = ctx.workflow_state("count", 0u32);
        count.set(&(count.get()? + 1))?;
        ctx.node_state("own", 0u32).set(&1)?;
        Ok(NodeOutput::new().data("counted", &true))
    };
    let hands_over = |_: NodeContext| async move { Ok(NodeOutput::new().transition_to("second")) };
    let first = Workflow::builder("first")
        .node("count", counts)
        .node("ask", asks("q1"))
        .node("leave", hands_over)
        .edge("count", "ask")
        .edge("ask", "leave");
    let second = Workflow::builder("second").node("more", asks("q2")).node("end", idle).edge("more", "end");
    let (first, second) = (first.build().unwrap(), second.build().unwrap());
    let world = World::new(&[&first, &second]);

    let (workflow, state) = turn(&world, &mut world.start_tracked(&first)).await;
    let expected = json!({"data": {"counted": true}, "state": {"count": 1}, "nodes": ["count", "ask"]});
    assert_eq!((workflow.as_str(), kept(&state)), ("first", expected));

    let (workflow, state) = next_turn(&world, "q1").await;
    let expected =
        json!({"data": {"counted": true, "q1": "yes"}, "state": {"count": 1}, "nodes": ["ask", "leave", "more"]});
    assert_eq!((workflow.as_str(), kept(&state)), ("second", expected));

    let (workflow, state) = next_turn(&world, "q2").await;
    let data = json!({"counted": true, "q1": "yes", "q2": "yes"});
    let expected = json!({"data": data, "state": {"count": 1}, "nodes": ["more", "end"]});
    assert_eq!((workflow.as_str(), kept(&state)), ("second", expected));
}

#[tokio::test(start_paused = true)]
async fn a_turn_tells_the_streams_that_it_wrote_to_and_no_others() {
    let flow = one_node(|ctx| async move {
        let before = ctx.structured("before", "t");
        before.set("a", &1).await?;
        before.set("b", &2).await?;
        let inner = ctx.clone();
        ctx.step("within", move || async move { inner.structured("step", "t").set("x", &1).await }).await?;
        ctx.interrupt("q", yes_no("?")).await?;
        ctx.structured("after", "t").set("a", &1).await?;
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&flow]);
    let ids = |world: &World| -> Vec<String> {
        let chunks = world.chunks.lock().unwrap();
        let ids = chunks.iter().filter_map(|chunk| match chunk {
            StreamChunk::StructuredData(chunk) => Some(chunk.stream_id.to_string()),
            _ => None,
        });
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids.dedup();
        ids
    };
    let (_, first) = turn(&world, &mut world.start_tracked(&flow)).await;
    assert_eq!((first.structured_stream_ids.len(), &first.structured_stream_ids), (2, &ids(&world)));
    world.chunks.lock().unwrap().clear();
    let (_, second) = next_turn(&world, "q").await;
    assert_eq!((second.structured_stream_ids.len(), &second.structured_stream_ids), (1, &ids(&world)));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_a_crash_interrupts_is_told_whole() {
    let steps = |ctx: NodeContext| async move {
        ctx.structured("s", "t").set("a", &1).await?;
        ctx.step("one", || Counter::default().effect()).await?;
        ctx.step("two", || Counter::default().effect()).await?;
        Ok(NodeOutput::new())
    };
    let flow = Workflow::builder("flow").node("first", idle).node("second", steps).node("third", asks("q"));
    let flow = flow.edge("first", "second").edge("second", "third").build().unwrap();
    for writes in 1..5 {
        let world = World::new(&[&flow]);
        world.writes_left.store(writes, Ordering::SeqCst);
        let drive = world.drive(&mut world.start_tracked(&flow)).await;
        world.writes_left.store(u64::MAX, Ordering::SeqCst);
        let mut again = world.restore().unwrap();
        if matches!(drive, Drive::Crashed) {
            assert!(matches!(world.drive(&mut again).await, Drive::Waiting));
            let (_, state) = again.handle().turn().unwrap();
            assert_eq!(state.nodes, ["first", "second", "third"], "{writes} writes");
            assert_eq!(state.structured_stream_ids.len(), 1, "{writes} writes");
        } else {
            assert_eq!(again.handle().turn().unwrap().1.nodes, [""; 0], "the next turn has done nothing yet");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_childs_nodes_are_its_own() {
    let child = Workflow::builder("child").node("inner", asks("q")).build().unwrap();
    let called = child.clone();
    let parent = one_node(move |ctx| {
        let child = called.clone();
        async move {
            let data: Value = ctx.call("c", &child, Value::Null).await?;
            Ok(NodeOutput::new().data("child", &data))
        }
    });
    let world = World::new(&[&parent, &child]);
    let (_, state) = turn(&world, &mut world.start_tracked(&parent)).await;
    assert_eq!(kept(&state), json!({"data": {}, "state": {}, "nodes": ["node"]}));
    let (_, state) = next_turn(&world, "q").await;
    assert_eq!(kept(&state), json!({"data": {"child": {"q": "yes"}}, "state": {}, "nodes": ["node"]}));
}

#[tokio::test(start_paused = true)]
async fn a_graph_with_fan_out_tells_what_its_ended_branches_wrote() {
    let writes = |value: u32| move |_: NodeContext| async move { Ok(NodeOutput::new().data("x", &value)) };
    let flow = Workflow::builder("flow")
        .node("start", writes(1))
        .node("left", writes(2))
        .node("right", asks("q"))
        .node("join", idle)
        .edge("start", "left")
        .edge("start", "right")
        .edge("left", "join")
        .edge("right", "join")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    let (_, state) = turn(&world, &mut world.start_tracked(&flow)).await;
    assert_eq!(kept(&state), json!({"data": {"x": 2}, "state": {}, "nodes": ["start", "left", "right"]}));
    let (_, state) = next_turn(&world, "q").await;
    assert_eq!(kept(&state), json!({"data": {"q": "yes", "x": 2}, "state": {}, "nodes": ["right", "join"]}));
}
