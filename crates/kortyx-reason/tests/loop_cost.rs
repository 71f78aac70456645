//! What the loop costs beside the model: so much for each step, however long the conversation is.
//!
//! A test program of its own, since it counts allocations of the whole process; and one test, since others would be counted too.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails in a test panics")]

use std::alloc::System;

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
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MEGABYTE: usize = 1 << 20;

/// A model that calls a tool in every pass but the last.
struct Calling {
    passes: usize,
}

impl Model for Calling {
    fn name(&self) -> &'static str {
        "calling"
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        let spoken = request.messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count();
        let said = if spoken + 1 < self.passes {
            ModelEvent::ToolCall { index: 0, tool: "add".into(), arguments: r#"{"a":1,"b":2}"#.into() }
        } else {
            ModelEvent::Text("Done.".into())
        };
        let events = [Ok(said), Ok(ModelEvent::Finish(FinishReason::Other))];
        async move { Ok(stream::iter(events).boxed()) }.boxed()
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

/// How many allocations and bytes a run takes with so many passes after so long a history.
async fn cost(passes: usize, history: usize) -> (usize, usize) {
    let node = move |ctx: NodeContext| async move {
        let before = Message::user("word ".repeat(history / 5));
        let reason = Reason::new(Calling { passes }).history([before]).input("Add.").max_steps(1000);
        let reasoned = ctx.reason("add", reason.tool(tool("add", "Adds", add))).await?;
        Ok(NodeOutput::new().data("steps", &reasoned.steps))
    };
    let workflow = Workflow::builder("adding").node("add", node).build().unwrap();
    let agent = Agent::builder().workflow(&workflow).store(MemoryStore::new()).without_worker().build().await.unwrap();
    let region = Region::new(ALLOCATOR);
    let result = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let stats = region.change();
    let ExecutionResult::Completed { data, .. } = result else { panic!("{result:?}") };
    assert_eq!(data, json!({ "steps": passes }));
    let grown = usize::try_from(stats.bytes_reallocated.max(0)).unwrap();
    (stats.allocations, stats.bytes_allocated + grown)
}

#[tokio::test]
async fn a_step_costs_the_same_however_long_the_conversation_is() {
    cost(10, 0).await; // what is made once in a process
    let ((few, _), (many, _)) = (cost(50, 0).await, cost(150, 0).await);
    let step = (many - few) / 100;
    assert!(step < 200, "{step} allocations a step");
    let ((_, few), (_, many)) = (cost(20, MEGABYTE).await, cost(40, MEGABYTE).await);
    let step = (many - few) / 20;
    assert!(step < MEGABYTE / 16, "{step} bytes a step behind a megabyte");
}
