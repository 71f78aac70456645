//! What a loop of reasoning costs beside its model.

use std::sync::{Arc, Mutex, PoisonError};

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

use crate::{
    allocation,
    error::Error,
    number::{Unit, float_of},
    options::Options,
    process,
    row::{Row, Target},
    statistics::{Pairs, median},
};

/// From the issue: what a step may take beside the model, in microseconds.
const MICROS: f64 = 50.0;
/// From the issue: how often a step may ask for memory.
const ALLOCATIONS: f64 = 200.0;
/// A step that read or wrote the conversation would cost ten times as much behind ten times as much.
const RATIO: f64 = 1.5;
/// A short and a long conversation, in bytes.
const SHORT: usize = 100_000;
const LONG: usize = 1_000_000;
/// What the model says in each pass of the loop that makes its own long conversation.
const SAID: usize = 2_500;
/// Passes that only warm up.
const WARM_UP: usize = 10;

/// A call to reason.
#[derive(Clone, Copy)]
struct Loop {
    /// How often the model speaks.
    passes: usize,
    /// How long the conversation is before, in bytes.
    history: usize,
    /// How much the model says in each pass.
    said: usize,
    /// What is read at the beginning of each pass.
    read: fn() -> f64,
}

/// Microseconds of the processor for a step: a pass, what is recorded of it, a tool, its result.
pub(crate) async fn reason(options: &Options) -> Result<Vec<Row>, Error> {
    let (samples, passes) = options.size((15, 400), (3, 60));
    let (mut plain, mut behind, mut grown) = (Vec::new(), Pairs::default(), Pairs::default());
    let last = LONG / SAID;
    for _ in 0..samples {
        plain.push(step(&Loop::new(passes, 0).marks().await?, WARM_UP, passes));
        let (long, short) = (Loop::new(passes, LONG), Loop::new(passes, SHORT));
        let behind_of = |marks: &[f64]| step(marks, WARM_UP, passes);
        behind.push(behind_of(&long.marks().await?), behind_of(&short.marks().await?));
        let talk = Loop { said: SAID, ..Loop::new(last, 0) }.marks().await?;
        let early = SHORT / SAID;
        grown.push(step(&talk, last - early, last), step(&talk, early / 2, early + early / 2));
    }
    let held = |what: &str, pairs: &Pairs| {
        let row = Row::new(format!("memory:   {what}"), pairs.measured(), Unit::Micros);
        row.against(pairs.reference(), pairs.ratio()).target(Target::AtMost(RATIO))
    };
    Ok(vec![
        Row::new("memory: processor time of a step of reasoning, beside the model", median(&plain), Unit::Micros)
            .target(Target::AtMost(MICROS)),
        held("behind 1 MB of history, against 100 kB", &behind),
        held("behind 1 MB that the loop itself has grown to, against 100 kB", &grown),
    ])
}

/// How often such a step asks for memory.
pub(crate) async fn reason_allocations(options: &Options) -> Result<Vec<Row>, Error> {
    let passes = options.size(400, 60);
    allocation::count()?;
    let of = |history| Loop { read: counted, ..Loop::new(passes, history) };
    let (plain, behind) = (of(0).marks().await?, of(LONG).marks().await?);
    let row = |what: &str, marks: &[f64]| {
        Row::new(what, step(marks, WARM_UP, passes), Unit::None).target(Target::AtMost(ALLOCATIONS))
    };
    Ok(vec![
        row("memory: allocations of a step of reasoning", &plain),
        row("memory:   behind 1 MB of history", &behind),
    ])
}

/// What one step takes, from one pass to another.
fn step(marks: &[f64], from: usize, to: usize) -> f64 {
    let at = |pass: usize| marks.get(pass).copied().unwrap_or(f64::NAN);
    let last = to.min(marks.len().saturating_sub(1));
    (at(last) - at(from)) / float_of(last.saturating_sub(from))
}

fn micros() -> f64 {
    process::thread_time().as_secs_f64() * 1e6
}

fn counted() -> f64 {
    allocation::count().map_or(f64::NAN, float_of)
}

impl Loop {
    fn new(passes: usize, history: usize) -> Self {
        Self { passes, history, said: 5, read: micros }
    }

    /// Runs it; returns what was read at the beginning of each pass.
    async fn marks(self) -> Result<Vec<f64>, Error> {
        let model = Calling { of: self, marks: Arc::default() };
        let marks = model.marks.clone();
        let node = move |ctx: NodeContext| {
            let model = model.clone();
            async move {
                let before = Message::user("word ".repeat(self.history / 5));
                let reason = Reason::new(model).history([before]).input("Add.").max_steps(u32::MAX);
                let reasoned = ctx.reason("add", reason.tool(tool("add", "Adds", add))).await?;
                Ok(NodeOutput::new().data("steps", &reasoned.steps))
            }
        };
        let workflow = Workflow::builder("adding").node("add", node).build()?;
        let agent = Agent::builder().workflow(&workflow).store(MemoryStore::new()).without_worker().build().await?;
        match agent.execute(&workflow, json!({}), ExecuteOptions::new()).await? {
            ExecutionResult::Completed { .. } => {
                Ok(std::mem::take(&mut *marks.lock().unwrap_or_else(PoisonError::into_inner)))
            }
            other => Err(Error::unexpected(format!("a run must complete, not: {other:?}"))),
        }
    }
}

/// A model that calls a tool in every pass but the last.
#[derive(Clone)]
struct Calling {
    of: Loop,
    marks: Arc<Mutex<Vec<f64>>>,
}

impl Model for Calling {
    fn name(&self) -> &'static str {
        "calling"
    }

    fn stream<'a>(&'a self, _: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        let spoken = {
            let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
            marks.push((self.of.read)());
            marks.len()
        };
        let text = ModelEvent::Text("word ".repeat(self.of.said / 5));
        let call = ModelEvent::ToolCall { index: 0, tool: "add".into(), arguments: r#"{"a":1,"b":2}"#.into() };
        let call = (spoken < self.of.passes).then_some(call);
        let events = [Some(text), call, Some(ModelEvent::Finish(FinishReason::Other))];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_pass_of_the_loop_leaves_a_mark() {
        let marks = Loop { said: SAID, ..Loop::new(20, SHORT) }.marks().await.unwrap();

        assert_eq!(marks.len(), 20);
        assert!(step(&marks, 1, 20) > 0.0);
    }

    #[test]
    fn a_step_is_what_lies_between_two_passes() {
        assert!((step(&[0.0, 10.0, 14.0, 18.0], 1, 4) - 4.0).abs() < 1e-9);
        assert!(step(&[], 1, 4).is_nan());
    }
}
