//! Workflows and nodes that many tests need.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use kortyx_contracts::{Choice, InterruptContract};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use serde_json::Value;

/// A contract whose answer is any JSON value.
pub(crate) const ANYTHING: InterruptContract<Value, Value> =
    InterruptContract::new("anything").description("Any JSON value").schema_id("test.anything").version("1");

pub(crate) fn yes_no(question: &str) -> Choice {
    Choice::new(question).option("yes", "Yes").option("no", "No")
}

/// A workflow of one node.
pub(crate) fn one_node<F, Fut>(node: F) -> Workflow
where
    F: Fn(NodeContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = NodeResult> + Send + 'static,
{
    named("flow", node)
}

/// A workflow of one node, with this id.
pub(crate) fn named<F, Fut>(id: &str, node: F) -> Workflow
where
    F: Fn(NodeContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = NodeResult> + Send + 'static,
{
    Workflow::builder(id).node("node", node).build().unwrap()
}

/// A node that asks one question of its own name and sets a field of that name to the answer.
pub(crate) fn asks(id: &'static str) -> impl Fn(NodeContext) -> futures_util::future::BoxFuture<'static, NodeResult> {
    move |ctx| {
        Box::pin(async move {
            let answer = ctx.interrupt(id, yes_no(id)).await?;
            Ok(NodeOutput::new().data(id, &answer))
        })
    }
}

/// A node that does nothing.
pub(crate) async fn idle(_: NodeContext) -> NodeResult {
    Ok(NodeOutput::new())
}

/// A tally outside of the engine.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<AtomicUsize>);

impl Counter {
    /// Counts one up and returns the count before.
    pub(crate) fn up(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// The effect of a step: counts one up.
    pub(crate) fn effect(&self) -> impl Future<Output = Result<usize, NodeError>> + use<> {
        let counter = self.clone();
        poll_fn(move |_| Poll::Ready(Ok(counter.up())))
    }
}

/// Throws that are random and the same in every run of the tests: xorshift64* (Vigna, 2016).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(drawn).unwrap() % bound
    }

    /// The items in random order.
    pub(crate) fn shuffled<T>(&mut self, mut items: Vec<T>) -> Vec<T> {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
        items
    }
}

/// The effect of a step that takes time.
pub(crate) async fn slept(time: Duration) -> Result<(), NodeError> {
    tokio::time::sleep(time).await;
    Ok(())
}
