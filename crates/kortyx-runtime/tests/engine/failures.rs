//! Failures: what reaches the client, and what stays on the server.

use std::{future::poll_fn, time::Duration};

use kortyx_protocol::{Failure, FailureCode};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    sample::{Counter, asks, idle, one_node, slept, yes_no},
    support::{Drive, World, completed, failed, select},
};

async fn failure_of<F, Fut>(node: F) -> Failure
where
    F: Fn(NodeContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = NodeResult> + Send + 'static,
{
    let flow = one_node(node);
    failed(World::new(&[&flow]).run(&flow, json!(null)).await)
}

#[tokio::test(start_paused = true)]
async fn a_private_error_never_reaches_the_wire() {
    let failure = failure_of(|_| async { Err(std::io::Error::other("password=hunter2"))? }).await;
    assert_eq!(failure.code, FailureCode::ExecutionFailed);
    let wire = serde_json::to_string(&failure).unwrap();
    assert!(!wire.contains("hunter2"), "{wire}");
    assert!(wire.contains("the node `node` of the workflow `flow` failed"), "{wire}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_the_run_and_its_text_stays_on_the_server() {
    fn panics() -> impl Future<Output = NodeResult> + Send {
        poll_fn(|_| panic!("password={}", "hunter2"))
    }
    for failure in [
        failure_of(|_| panics()).await,
        failure_of(|_| -> std::future::Ready<NodeResult> { panic!("hunter2") }).await,
        failure_of(|ctx| async move {
            ctx.step("x", || async { panics().await.map(drop) }).await?;
            Ok(NodeOutput::new())
        })
        .await,
    ] {
        assert_eq!(failure.code, FailureCode::ExecutionFailed);
        assert!(!serde_json::to_string(&failure).unwrap().contains("hunter2"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_one_branch_lets_the_others_finish() {
    let finished = Counter::default();
    let counter = finished.clone();
    let flow = Workflow::builder("flow")
        .node("start", idle)
        .node("panics", |_| async { panic!("now") })
        .node("works", move |ctx: NodeContext| {
            let finished = counter.clone();
            async move {
                ctx.step("slow", || slept(Duration::from_secs(5))).await?;
                finished.up();
                Ok(NodeOutput::new())
            }
        })
        .edge("start", "panics")
        .edge("start", "works")
        .build()
        .unwrap();
    failed(World::new(&[&flow]).run(&flow, json!(null)).await);
    assert_eq!(finished.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_after_a_pause_fails_the_run_too() {
    let flow = one_node(|ctx| async move {
        ctx.interrupt("q", yes_no("?")).await?;
        panic!("now")
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert_eq!(failed(world.answer("q", select(&["yes"])).await).code, FailureCode::ExecutionFailed);
}

#[tokio::test(start_paused = true)]
async fn a_destructor_that_panics_at_the_pause_does_no_harm() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "in a destructor");
        }
    }
    let flow = one_node(|ctx| async move {
        let bomb = Bomb;
        let answer = ctx.interrupt("q", yes_no("?")).await?;
        std::mem::forget(bomb);
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!(completed(world.answer("q", select(&["yes"])).await), json!({"answer": "yes"}));
}

#[tokio::test(start_paused = true)]
async fn an_error_that_its_author_made_public_reaches_the_client() {
    let failure = failure_of(|_| async { Err(NodeError::public("too-many", "at most 100 seats")) }).await;
    assert_eq!((failure.code, &*failure.message), (FailureCode::DomainError, "at most 100 seats"));
    assert_eq!(failure.details.unwrap()["code"], "too-many");
}

#[tokio::test(start_paused = true)]
async fn a_failure_passes_through_a_node_as_it_is() {
    let failure = failure_of(|_| async { Err(Failure::new(FailureCode::ProviderRefusal, "no"))? }).await;
    assert_eq!(failure, Failure::new(FailureCode::ProviderRefusal, "no"));
}

#[tokio::test(start_paused = true)]
async fn an_output_that_fits_no_edge_fails_and_names_the_edges() {
    let flow = Workflow::builder("flow")
        .node("node", |_| async { Ok(NodeOutput::new().condition("maybe")) })
        .edge_if("node", "node", "again")
        .edge_if("node", kortyx_runtime::workflow::END, "done")
        .build()
        .unwrap();
    let failure = failed(World::new(&[&flow]).run(&flow, json!(null)).await);
    assert_eq!(failure.code, FailureCode::NoRoute);
    for part in ["`maybe`", "`again`", "`done`"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    amount: u8,
}

#[tokio::test(start_paused = true)]
async fn input_and_output_are_checked_against_their_schemas() {
    let flow = Workflow::builder("flow")
        .input::<Order>()
        .output::<Order>()
        .node("node", |ctx: NodeContext| async move {
            let order: Order = ctx.input()?;
            Ok(NodeOutput::new().data("amount", &(u32::from(order.amount) * 100)))
        })
        .build()
        .unwrap()
        .erase();
    let world = World::new(&[&flow]);
    let failure = world.try_start(&flow, &json!({"amount": 300})).err().unwrap();
    assert_eq!((failure.code, &*failure.issues.unwrap()[0].path), (FailureCode::InvalidInput, "/amount"));
    assert_eq!(completed(world.run(&flow, json!({"amount": 2})).await), json!({"amount": 200}));
    let failure = failed(world.run(&flow, json!({"amount": 3})).await);
    assert_eq!((failure.code, &*failure.issues.unwrap()[0].path), (FailureCode::InvalidOutput, "/amount"));
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_is_not_registered_does_not_start() {
    let (known, unknown) = (one_node(idle), crate::sample::named("unknown", idle));
    let world = World::new(&[&known]);
    assert_eq!(world.try_start(&unknown, &json!(null)).err().unwrap().code, FailureCode::UnknownWorkflow);
    // Nor does another definition under a known name.
    let other = Workflow::builder("flow").node("other", idle).build().unwrap();
    assert_eq!(world.try_start(&other, &json!(null)).err().unwrap().code, FailureCode::UnknownWorkflow);
}

#[tokio::test(start_paused = true)]
async fn a_failed_branch_fails_its_dependents_and_others_finish() {
    let flow = Workflow::builder("flow")
        .node("start", idle)
        .node("fails", |_| async { Err(NodeError::public("x", "first cause")) })
        .node("asks", asks("q"))
        .node("join", idle)
        .node("after", idle)
        .edge("start", "fails")
        .edge("start", "asks")
        .edge("fails", "join")
        .edge("asks", "join")
        .edge("join", "after")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting), "the other branch still asks");
    let failure = failed(world.answer("q", select(&["yes"])).await);
    assert_eq!((failure.code, &*failure.message), (FailureCode::DomainError, "first cause"));
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_storage_fails_stops_at_once_and_goes_on_later() {
    let (steps, after) = (Counter::default(), Counter::default());
    let counters = (steps.clone(), after.clone());
    let flow = one_node(move |ctx| {
        let (steps, after) = counters.clone();
        async move {
            // Whatever the node does with errors, it does not go on without its record.
            let _ = ctx.step("s", || steps.effect()).await;
            after.up();
            Ok(NodeOutput::new())
        }
    });
    let world = World::new(&[&flow]);
    world.writes_left.store(1, std::sync::atomic::Ordering::SeqCst);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Crashed));
    assert_eq!((steps.get(), after.get()), (1, 0));
    world.writes_left.store(u64::MAX, std::sync::atomic::Ordering::SeqCst);
    completed(world.resume().await);
    assert_eq!((steps.get(), after.get()), (2, 1));
}
