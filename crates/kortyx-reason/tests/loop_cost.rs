//! What the loop costs beside the model: so much for each step, however long the conversation is.
//!
//! A test program of its own, since it counts allocations of the whole process; and one test, since others would be counted too.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what fails in a test panics")]

use std::{
    alloc::System,
    sync::{Arc, Mutex},
};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ExecuteOptions};
use kortyx_protocol::ExecutionResult;
use kortyx_reason::{
    FinishReason, Message, Model, ModelError, ModelEvent, ModelRequest, ModelStream, Reason, ReasonExt as _,
    ToolContext, ToolError, tool,
};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MEGABYTE: usize = 1 << 20;

/// A model that calls a tool in every pass but the last, says so much, and counts what was asked of the allocator when each pass began.
struct Calling {
    passes: usize,
    said: usize,
    marks: Arc<Mutex<Vec<Cost>>>,
}

/// Allocations and bytes.
type Cost = (usize, usize);

impl Model for Calling {
    fn name(&self) -> &'static str {
        "calling"
    }

    fn stream<'a>(&'a self, _: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        let stats = ALLOCATOR.stats();
        let grown = usize::try_from(stats.bytes_reallocated.max(0)).unwrap();
        let mut marks = self.marks.lock().unwrap();
        marks.push((stats.allocations + stats.reallocations, stats.bytes_allocated + grown));
        let call = ModelEvent::ToolCall { index: 0, tool: "add".into(), arguments: r#"{"a":1,"b":2}"#.into() };
        let call = (marks.len() < self.passes).then_some(call);
        let events = [
            Some(ModelEvent::Text("word ".repeat(self.said / 5))),
            call,
            Some(ModelEvent::Finish(FinishReason::Other)),
        ];
        async move { Ok(stream::iter(events.into_iter().flatten().map(Ok)).boxed()) }.boxed()
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

async fn add(sum: Sum, _: ToolContext) -> Result<i64, ToolError> {
    Ok(sum.a + sum.b)
}

/// What was counted at the beginning of each pass of a run with so many passes after so long a history.
async fn marks(passes: usize, said: usize, history: usize) -> Vec<Cost> {
    let marks: Arc<Mutex<Vec<Cost>>> = Arc::new(Mutex::new(Vec::with_capacity(passes)));
    let kept = marks.clone();
    let node = move |ctx: NodeContext| {
        let model = Calling { passes, said, marks: kept.clone() };
        async move {
            let before = Message::user("word ".repeat(history / 5));
            let reason = Reason::new(model).history([before]).input("Add.").max_steps(1000);
            let reasoned = ctx.reason("add", reason.tool(tool("add", "Adds", add))).await?;
            Ok(NodeOutput::new().data("steps", &reasoned.steps))
        }
    };
    let workflow = Workflow::builder("adding").node("add", node).build().unwrap();
    let agent = Agent::builder().workflow(&workflow).store(MemoryStore::new()).without_worker().build().await.unwrap();
    let result = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let ExecutionResult::Completed { data, .. } = result else { panic!("{result:?}") };
    assert_eq!(data, json!({ "steps": passes }));
    std::mem::take(&mut *marks.lock().unwrap())
}

/// What each step took on average, from one pass to another.
fn step(marks: &[Cost], from: usize, to: usize) -> Cost {
    let ((few, less), (many, more)) = (marks[from], marks[to]);
    ((many - few) / (to - from), (more - less) / (to - from))
}

#[tokio::test]
async fn a_step_costs_the_same_however_long_the_conversation_is() {
    let (plain, behind) = (marks(60, 5, 0).await, marks(60, 5, MEGABYTE).await);
    let ((allocations, bytes), (allocations_behind, bytes_behind)) = (step(&plain, 10, 59), step(&behind, 10, 59));
    assert!(allocations < 200, "{allocations} allocations a step");
    assert!(
        allocations_behind <= allocations + 1,
        "{allocations_behind} allocations a step behind a megabyte, {allocations} without"
    );
    assert!(bytes_behind <= bytes + bytes / 10, "{bytes_behind} bytes a step behind a megabyte, {bytes} without");

    // The loop makes a long conversation of its own: two kilobytes in each step.
    let talk = marks(400, 2_000, 0).await;
    let ((_, early), (_, late)) = (step(&talk, 20, 60), step(&talk, 350, 390));
    assert!(late <= early + early / 4, "{late} bytes a step after 350 steps, {early} after 20");
}
