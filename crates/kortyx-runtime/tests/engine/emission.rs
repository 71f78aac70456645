//! Chunks: in order, once, and only as fast as the receiver takes them.

use std::time::Duration;

use kortyx_protocol::StreamChunk;
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Workflow};
use serde_json::json;

use crate::{
    sample::{Counter, one_node, slept, yes_no},
    support::{Drive, Wait, World, completed, select},
};

#[tokio::test(start_paused = true)]
async fn a_slow_receiver_holds_the_node_back_and_the_pause_too() {
    let said = Counter::default();
    let counter = said.clone();
    let flow = one_node(move |ctx| {
        let said = counter.clone();
        async move {
            let talk = async {
                for i in 0..3 {
                    ctx.text(i.to_string()).await;
                    said.up();
                }
                Ok::<_, NodeError>(())
            };
            let (answer, talked) = tokio::join!(ctx.interrupt("q", yes_no("?")), talk);
            talked?;
            Ok(NodeOutput::new().data("answer", &answer?))
        }
    });
    let world = World::new(&[&flow]);
    *world.meddler.lock().unwrap() = Some(Box::new(|| Wait::Millis(200)));
    let began = tokio::time::Instant::now();
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
    assert_eq!((said.get(), world.text()), (3, "012".into()));
}

#[tokio::test(start_paused = true)]
async fn joined_branches_each_deliver_once_over_pauses() {
    let flow = one_node(|ctx| async move {
        let branch = async |name: &str| {
            ctx.text(format!("{name}1 ")).await;
            ctx.interrupt(name, yes_no("?")).await?;
            ctx.text(format!("{name}2 ")).await;
            Ok::<_, NodeError>(())
        };
        tokio::try_join!(branch("a"), branch("b"))?;
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    world.answer("b", select(&["yes"])).await;
    completed(world.answer("a", select(&["yes"])).await);
    assert_eq!(world.text(), "a1 b1 b2 a2 ");
}

#[tokio::test(start_paused = true)]
async fn what_a_step_says_is_said_while_it_runs_and_never_again() {
    let flow = one_node(|ctx| async move {
        ctx.step("talks", || async {
            ctx.text("step ").await;
            slept(Duration::from_secs(1)).await?;
            ctx.text("step ").await;
            Ok::<_, NodeError>(())
        })
        .await?;
        ctx.text("step ").await;
        ctx.interrupt("q", yes_no("?")).await?;
        ctx.text("after").await;
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert!(matches!(world.resume().await, Drive::Waiting));
    completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(world.text(), "step step step after");
}

#[tokio::test(start_paused = true)]
async fn the_message_of_an_output_is_sent_once_when_the_node_ends() {
    let flow = Workflow::builder("flow")
        .node("first", |_| async { Ok(NodeOutput::new().ui("one ")) })
        .node("second", |ctx: NodeContext| async move {
            ctx.interrupt("q", yes_no("?")).await?;
            Ok(NodeOutput::new().ui("two").intent("leave"))
        })
        .edge("first", "second")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert_eq!(world.text(), "one ");
    assert_eq!(completed(world.answer("q", select(&["yes"])).await), json!({"intent": "leave"}));
    assert_eq!(world.text(), "one two");
}

#[tokio::test(start_paused = true)]
async fn a_structured_stream_keeps_its_id_over_a_pause_and_each_use_has_its_own() {
    let flow = one_node(|ctx| async move {
        let first = ctx.structured("doc", "test.doc");
        first.set("a", &1).await?;
        ctx.structured("doc", "test.doc").set("a", &1).await?;
        ctx.interrupt("q", yes_no("?")).await?;
        first.set("b", &2).await?;
        first.finish(&json!({"a": 1, "b": 2})).await?;
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    completed(world.answer("q", select(&["yes"])).await);
    let chunks = world.chunks.lock().unwrap();
    let ids: Vec<String> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            StreamChunk::StructuredData(chunk) => Some(chunk.stream_id.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 4);
    assert_ne!(ids[0], ids[1]);
    assert_eq!((&ids[0], &ids[0]), (&ids[2], &ids[3]));
}

#[tokio::test(start_paused = true)]
async fn chunks_name_their_node() {
    let flow = one_node(|ctx| async move {
        ctx.status("working").await;
        ctx.text("x").await;
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&flow]);
    completed(world.run(&flow, json!(null)).await);
    let wire = serde_json::to_value(&*world.chunks.lock().unwrap()).unwrap();
    assert_eq!(wire[0], json!({"type": "status", "message": "working", "node": "node"}));
    assert_eq!(wire[1]["node"], "node");
}
