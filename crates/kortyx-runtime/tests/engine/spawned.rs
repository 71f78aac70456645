//! Calls from tasks that a node spawns: they are part of the node as long as it runs, and over when it is.

use std::time::Duration;

use kortyx_contracts::Text;
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use serde_json::json;

use crate::support::{Drive, World, completed, text};

fn asking_child() -> Workflow {
    let ask = |ctx: NodeContext| async move {
        let answer = ctx.interrupt("q", Text::new("Q?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    };
    Workflow::builder("child").node("ask", ask).build().unwrap()
}

/// A node that calls the child in a task of its own.
async fn delegate(ctx: NodeContext, child: Workflow) -> NodeResult {
    let called = tokio::spawn(async move { ctx.call("child", &child, json!(null)).await });
    let output = called.await??;
    Ok(NodeOutput::new().data("called", &output))
}

#[tokio::test(start_paused = true)]
async fn a_child_called_in_a_spawned_task_pauses_the_node() {
    let child = asking_child();
    let inner = child.clone();
    let flow =
        Workflow::builder("flow").node("node", move |ctx: NodeContext| delegate(ctx, inner.clone())).build().unwrap();
    let world = World::new(&[&flow, &child]);
    let drive = tokio::time::timeout(Duration::from_secs(9), world.run(&flow, json!(null))).await;
    assert!(matches!(drive, Ok(Drive::Waiting)), "{drive:?}");
    assert_eq!(completed(world.answer("q", text("yes")).await), json!({"called": {"answer": "yes"}}));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_outlives_its_pass_leaves_the_child_to_the_next_pass() {
    let child = asking_child();
    let inner = child.clone();
    let work = |ctx: NodeContext| async move {
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(9)).await;
            Ok::<_, NodeError>(())
        };
        ctx.step("slow", slow).await?;
        Ok(NodeOutput::new().data("worked", &true))
    };
    let flow = Workflow::builder("flow")
        .node("begin", |_| async { Ok(NodeOutput::new()) })
        .node("delegate", move |ctx: NodeContext| delegate(ctx, inner.clone()))
        .node("work", work)
        .edge("begin", "delegate")
        .edge("begin", "work")
        .build()
        .unwrap();
    let world = World::new(&[&flow, &child]);
    let mut execution = world.start(&flow, &json!(null));
    let handle = execution.handle();
    let driver = {
        let world = world.clone();
        tokio::spawn(async move { world.drive(&mut execution).await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.accept("q", text("yes"));
    handle.deliver(world.stored.lock().unwrap().answers.clone());
    assert_eq!(completed(driver.await.unwrap()), json!({"called": {"answer": "yes"}, "worked": true}));
}
