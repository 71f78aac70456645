//! Nothing in a node's code can swallow a pause: there is no value to swallow.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use kortyx_protocol::StreamChunk;
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use serde_json::json;

use crate::{
    sample::{Counter, named, one_node, yes_no},
    support::{Drive, World, completed, select},
};

type Asked = BoxFuture<'static, Result<String, NodeError>>;

fn ask(ctx: &NodeContext) -> Asked {
    ctx.interrupt("q", yes_no("?")).boxed()
}

/// A node that asks within a wrapper and sets `answer` to what comes out of it.
async fn wrapped<F: Future<Output = Result<String, NodeError>> + Send>(wrapped: F) -> NodeResult {
    Ok(NodeOutput::new().data("answer", &wrapped.await?))
}

async fn pauses_and_goes_on(flow: Workflow) {
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!(world.open(), ["q"]);
    assert!(matches!(world.resume().await, Drive::Waiting));
    assert_eq!(completed(world.answer("q", select(&["yes"])).await), json!({"answer": "yes"}));
}

#[tokio::test(start_paused = true)]
async fn b172_a_retry_wrapper_retries_no_pause() {
    pauses_and_goes_on(one_node(|ctx| {
        wrapped(async move {
            for _ in 0..5 {
                if let Ok(answer) = ask(&ctx).await {
                    return Ok(answer);
                }
            }
            Err(NodeError::message("swallowed"))
        })
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn b172_an_error_handler_sees_no_pause() {
    pauses_and_goes_on(one_node(|ctx| {
        wrapped(async move { Ok(ask(&ctx).await.unwrap_or_else(|error| format!("handled: {error}"))) })
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn b172_a_timeout_does_not_fire_at_a_pause() {
    pauses_and_goes_on(one_node(|ctx| {
        wrapped(async move { tokio::time::timeout(Duration::from_millis(1), ask(&ctx)).await? })
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn b172_a_panic_guard_catches_no_pause() {
    pauses_and_goes_on(one_node(|ctx| {
        wrapped(async move {
            let caught = AssertUnwindSafe(ask(&ctx)).catch_unwind().await;
            caught.unwrap_or_else(|_| Err(NodeError::message("swallowed")))
        })
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn b172_a_spawned_task_pauses() {
    pauses_and_goes_on(one_node(|ctx| wrapped(async move { tokio::spawn(ask(&ctx)).await? }))).await;
}

#[tokio::test(start_paused = true)]
async fn b172_a_spawned_task_that_asks_later_pauses() {
    pauses_and_goes_on(one_node(|ctx| {
        let asked = async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            ask(&ctx).await
        };
        wrapped(async move { tokio::spawn(asked).await? })
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn b172_shared_and_boxed_futures_pause() {
    pauses_and_goes_on(one_node(|ctx| {
        wrapped(async move {
            let shared = ask(&ctx).map(|answer| answer.map_err(|error| error.to_string())).shared();
            let (one, two) = tokio::join!(shared.clone(), shared);
            assert_eq!(one, two);
            one.map_err(NodeError::message)
        })
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn b171_a_timeout_around_a_step_that_is_handled_ends_the_run_well() {
    let flow = one_node(|ctx| async move {
        let slow = ctx.step("slow", || async {
            tokio::time::sleep(Duration::from_hours(1)).await;
            Ok::<_, NodeError>("slow".to_owned())
        });
        let outcome = tokio::time::timeout(Duration::from_secs(1), slow).await;
        Ok(NodeOutput::new().data("outcome", &outcome.is_err()))
    });
    let world = World::new(&[&flow]);
    assert_eq!(completed(world.run(&flow, json!(null)).await), json!({"outcome": true}));
    assert!(!world.chunks.lock().unwrap().iter().any(|chunk| matches!(chunk, StreamChunk::Error { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_context_that_outlives_its_node_yields_errors() {
    let (late, counter) = (Counter::default(), Counter::default());
    let counters = (late.clone(), counter.clone());
    let child = named("child", |_| async { Ok(NodeOutput::new()) });
    let inner = child.clone();
    let flow = one_node(move |ctx| {
        let ((late, counter), child) = (counters.clone(), inner.clone());
        async move {
            let outliving = ctx.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let ctx = outliving;
                assert!(ctx.interrupt("late", yes_no("?")).await.is_err());
                assert!(ctx.step("late", || counter.effect()).await.is_err());
                assert!(ctx.call("late", &child, json!({})).await.is_err());
                assert!(ctx.now().is_err() && ctx.random_id().is_err() && ctx.data::<u8>("x").is_err());
                assert!(ctx.workflow_state("x", 0).set(&1).is_err());
                ctx.text("late").await;
                late.up();
            });
            Ok(NodeOutput::new())
        }
    });
    let world = World::new(&[&flow, &child]);
    completed(world.run(&flow, json!(null)).await);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((late.get(), counter.get(), world.text()), (1, 0, String::new()));
}

#[tokio::test(start_paused = true)]
async fn destructors_run_at_the_pause() {
    struct Guard(Counter);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.up();
        }
    }
    let released = Counter::default();
    let counter = released.clone();
    let flow = one_node(move |ctx| {
        let guard = Guard(counter.clone());
        async move {
            let answer = ctx.interrupt("q", yes_no("?")).await?;
            drop(guard);
            Ok(NodeOutput::new().data("answer", &answer))
        }
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert_eq!(released.get(), 1);
}
