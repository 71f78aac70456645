//! The limit of node executions: a question to go on, not an end.

use kortyx_protocol::{FailureCode, StreamChunk};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow, workflow::END};
use serde_json::json;

use crate::{
    sample::{Counter, idle, one_node},
    support::{Drive, World, completed, failed, select},
};

/// Counts `entered` up to `rounds`, with at most `limit` node executions before the run asks.
fn looping(entered: &Counter, rounds: usize, limit: u32) -> Workflow {
    let entered = entered.clone();
    Workflow::builder("flow")
        .node("count", move |_: NodeContext| {
            let count = entered.up() + 1;
            let condition = if count < rounds { "again" } else { "done" };
            async move { Ok(NodeOutput::new().data("count", &count).condition(condition)) }
        })
        .edge_if("count", "count", "again")
        .edge_if("count", END, "done")
        .max_node_executions(limit)
        .build()
        .unwrap()
}

fn limit_chunks(world: &World) -> Vec<(u64, u64)> {
    let chunks = world.chunks.lock().unwrap();
    let limits = chunks.iter().filter_map(|chunk| match chunk {
        StreamChunk::LimitReached { maximum, consumed, limit, .. } => {
            assert_eq!(&**limit, "max_node_executions");
            Some((*maximum, *consumed))
        }
        _ => None,
    });
    limits.collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_at_its_limit_says_so_once_and_asks() {
    let entered = Counter::default();
    let flow = looping(&entered, 100, 3);
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!((entered.get(), limit_chunks(&world)), (3, vec![(3, 3)]));
    assert_eq!(world.open(), ["limit-reached"]);
    for _ in 0..3 {
        assert!(matches!(world.resume().await, Drive::Waiting));
    }
    assert_eq!((entered.get(), limit_chunks(&world).len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn going_on_gives_a_fresh_allowance() {
    let entered = Counter::default();
    let flow = looping(&entered, 8, 3);
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert!(matches!(world.answer("limit-reached", select(&["continue"])).await, Drive::Waiting));
    assert_eq!(entered.get(), 6);
    assert_eq!(completed(world.answer("limit-reached", select(&["continue"])).await), json!({"count": 8}));
    assert_eq!(limit_chunks(&world), [(3, 3), (6, 6)]);
}

#[tokio::test(start_paused = true)]
async fn stopping_at_the_limit_fails_the_run() {
    let entered = Counter::default();
    let flow = looping(&entered, 100, 3);
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    let failure = failed(world.answer("limit-reached", select(&["stop"])).await);
    assert_eq!(failure.code, FailureCode::LimitReached);
    assert!(failure.message.contains("3 node executions"), "{}", failure.message);
    assert_eq!(entered.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn children_use_up_the_same_allowance_and_get_a_whole_one() {
    let entered = Counter::default();
    let counter = entered.clone();
    let child = Workflow::builder("child")
        .node("count", move |_: NodeContext| {
            let condition = if counter.up() < 3 { "again" } else { "done" };
            async move { Ok(NodeOutput::new().condition(condition)) }
        })
        .edge_if("count", "count", "again")
        .edge_if("count", END, "done")
        .unlimited_node_executions()
        .build()
        .unwrap();
    let inner = child.clone();
    let parent = Workflow::builder("flow")
        .node("node", move |ctx: NodeContext| {
            let child = inner.clone();
            async move {
                ctx.call("child", &child, json!({})).await?;
                Ok(NodeOutput::new())
            }
        })
        .max_node_executions(2)
        .build()
        .unwrap();
    let world = World::new(&[&parent, &child]);
    assert!(matches!(world.run(&parent, json!(null)).await, Drive::Waiting));
    assert_eq!(entered.get(), 1);
    // The root's limit counts, not the child's, which is none.
    assert!(matches!(world.answer("limit-reached", select(&["continue"])).await, Drive::Waiting));
    assert_eq!(entered.get(), 3);
    completed(world.answer("limit-reached", select(&["continue"])).await);
    assert_eq!(limit_chunks(&world), [(2, 2), (4, 4)]);
}

#[tokio::test(start_paused = true)]
async fn branches_at_the_limit_each_wait_and_each_go_on() {
    let flow = Workflow::builder("flow")
        .node("start", idle)
        .node("a", idle)
        .node("b", idle)
        .node("join", |_| async { Ok(NodeOutput::new().data("joined", &true)) })
        .edge("start", "a")
        .edge("start", "b")
        .edge("a", "join")
        .edge("b", "join")
        .max_node_executions(2)
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    let mut last = world.run(&flow, json!(null)).await;
    while matches!(last, Drive::Waiting) {
        last = world.answer("limit-reached", select(&["continue"])).await;
    }
    assert_eq!(completed(last), json!({"joined": true}));
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_a_run_never_asks() {
    let entered = Counter::default();
    let flow = looping(&entered, 5000, 5000);
    completed(World::new(&[&flow]).run(&flow, json!(null)).await);
    assert_eq!(entered.get(), 5000);
    let flow = one_node(idle);
    completed(World::new(&[&flow]).run(&flow, json!(null)).await);
}
