//! Asking a run to stop.

use std::{sync::Arc, time::Duration};

use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Outcome, Workflow, workflow::NodeOptions, workflow::Retry};
use serde_json::json;
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    sample::{Counter, asks, idle, named, one_node, slept, yes_no},
    support::{Drive, World},
};

/// Starts the run, asks it to stop after so many seconds, and says how it ended and how long it took.
async fn cancelled_after(world: &Arc<World>, flow: &Workflow, seconds: u64) -> (Drive, Duration) {
    let mut execution = world.start(flow, &json!(null));
    let handle = execution.handle();
    let same = world.clone();
    let began = Instant::now();
    let running: JoinHandle<Drive> = tokio::spawn(async move { same.drive(&mut execution).await });
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    handle.cancel();
    (running.await.unwrap(), began.elapsed())
}

fn is_cancelled(drive: &Drive) -> bool {
    matches!(drive, Drive::Ended(Outcome::Cancelled))
}

#[tokio::test(start_paused = true)]
async fn a_node_sees_the_token_and_may_finish_what_must_not_be_cut() {
    let (finished, next) = (Counter::default(), Counter::default());
    let counters = (finished.clone(), next.clone());
    let flow = Workflow::builder("flow")
        .node("work", move |ctx: NodeContext| {
            let finished = counters.0.clone();
            async move {
                ctx.cancelled().cancelled().await;
                ctx.step("finish", || slept(Duration::from_secs(2))).await?;
                finished.up();
                Ok(NodeOutput::new())
            }
        })
        .node("next", move |_: NodeContext| {
            counters.1.up();
            async { Ok(NodeOutput::new()) }
        })
        .edge("work", "next")
        .build()
        .unwrap();
    let (drive, took) = cancelled_after(&World::new(&[&flow]), &flow, 10).await;
    assert!(is_cancelled(&drive), "{drive:?}");
    assert_eq!((finished.get(), next.get()), (1, 0), "nothing new begins");
    assert_eq!(took.as_secs(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_listen_is_dropped_after_the_grace() {
    let flow = one_node(|_| async {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Ok(NodeOutput::new())
    });
    let (drive, took) = cancelled_after(&World::new(&[&flow]), &flow, 10).await;
    assert!(is_cancelled(&drive), "{drive:?}");
    assert_eq!(took.as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn b167_a_run_that_comes_to_wait_after_it_was_asked_to_stop_ends() {
    let flow = Workflow::builder("flow")
        .node("start", idle)
        .node("ask", asks("q"))
        .node("work", |ctx: NodeContext| async move {
            ctx.cancelled().cancelled().await;
            ctx.interrupt("late", yes_no("?")).await?;
            Ok(NodeOutput::new())
        })
        .edge("start", "ask")
        .edge("start", "work")
        .build()
        .unwrap();
    let (drive, took) = cancelled_after(&World::new(&[&flow]), &flow, 3).await;
    assert!(is_cancelled(&drive), "{drive:?}");
    assert_eq!(took.as_secs(), 3, "at once");
}

#[tokio::test(start_paused = true)]
async fn b169_a_run_may_be_stopped_at_any_moment() {
    let child = named("child", |ctx| async move {
        ctx.step("inner", || slept(Duration::from_secs(3))).await?;
        ctx.text("inner").await;
        Ok(NodeOutput::new())
    });
    let inner = child.clone();
    let retry = Retry::attempts(3).delay(Duration::from_secs(7));
    let flow = Workflow::builder("flow")
        .node_with("flaky", NodeOptions::new().retry(retry), |ctx: NodeContext| async move {
            ctx.step("outer", || slept(Duration::from_secs(2))).await?;
            if ctx.now()?.as_millis() % 3 == 0 { Err(NodeError::message("flaky")) } else { Ok(NodeOutput::new()) }
        })
        .node("calls", move |ctx: NodeContext| {
            let child = inner.clone();
            async move {
                ctx.call("child", &child, json!({})).await?;
                Ok(NodeOutput::new())
            }
        })
        .edge("flaky", "calls")
        .build()
        .unwrap();
    for seconds in 0..15 {
        let world = World::new(&[&flow, &child]);
        let (drive, took) = cancelled_after(&world, &flow, seconds).await;
        assert!(matches!(drive, Drive::Ended(_)), "{seconds}: {drive:?}");
        assert!(took.as_secs() <= seconds + 5, "{seconds}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_before_another_attempt_is_not_waited_for() {
    let flow = Workflow::builder("flow")
        .node_with(
            "node",
            NodeOptions::new().retry(Retry::attempts(3).delay(Duration::from_mins(1))),
            |_: NodeContext| async { Err(NodeError::message("always")) },
        )
        .build()
        .unwrap();
    let (drive, took) = cancelled_after(&World::new(&[&flow]), &flow, 10).await;
    assert!(is_cancelled(&drive), "{drive:?}");
    assert_eq!(took.as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_child_between_two_nodes_is_not_waited_for() {
    let child = Workflow::builder("child")
        .node("listens", |ctx: NodeContext| async move {
            ctx.cancelled().cancelled().await;
            Ok(NodeOutput::new())
        })
        .node("next", idle)
        .edge("listens", "next")
        .build()
        .unwrap();
    let inner = child.clone();
    let flow = one_node(move |ctx| {
        let child = inner.clone();
        async move {
            ctx.call("child", &child, json!({})).await?;
            Ok(NodeOutput::new())
        }
    });
    let (drive, took) = cancelled_after(&World::new(&[&flow, &child]), &flow, 10).await;
    assert!(is_cancelled(&drive), "{drive:?}");
    assert_eq!(took.as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_run_asked_to_stop_before_it_begins_does_nothing() {
    let entered = Counter::default();
    let counter = entered.clone();
    let flow = one_node(move |_| {
        counter.up();
        async { Ok(NodeOutput::new()) }
    });
    let world = World::new(&[&flow]);
    let mut execution = world.start(&flow, &json!(null));
    execution.handle().cancel();
    assert!(is_cancelled(&world.drive(&mut execution).await));
    assert_eq!(entered.get(), 0);
}
