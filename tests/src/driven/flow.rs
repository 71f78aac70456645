//! The workflows that the driver program runs: every kind of durable point is in them.

use std::sync::Arc;

use futures_util::future::try_join_all;
use kortyx::{
    InterruptContract, NodeContext, NodeOutput, NodeResult, Text, Workflow,
    runtime::workflow::{DefinitionError, END},
};
use kortyx_testkit::Log;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The effects of one rich run, each of which happens once.
pub(super) const EFFECTS: [&str; 9] =
    ["charge", "note-1", "note-2", "left", "right", "prepare", "apply-1", "apply-2", "archive"];

/// The questions of one rich run, by their author's ids: an id as often as it is asked.
pub(super) const QUESTIONS: [&str; 6] = ["round", "round", "left", "right", "approve", "approve"];

/// The effects of one run that works on after its response, each of which happens once.
pub(super) const BACKGROUND_EFFECTS: [&str; 4] = ["take", "work", "deliver", "bill"];

/// The workflows, with the log that their effects go to.
pub struct Flows {
    /// Plain code, steps, a loop that asks twice, two parallel questions, a child that asks twice, a last step.
    pub rich: Workflow,
    /// The child of `rich`.
    pub child: Workflow,
    /// Asks as often as its input says, with a step after each answer.
    pub asking: Workflow,
    /// Asks as often as its input says, all at once, with one step when all is answered.
    pub crowd: Workflow,
    /// Completes its response, works on, and asks later.
    pub background: Workflow,
}

#[derive(Serialize, JsonSchema)]
struct Side {
    side: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Reply {
    answer: String,
}

const RIGHT: InterruptContract<Side, Reply> =
    InterruptContract::new("right").description("What the right branch needs").schema_id("driven.right").version("1");

impl Flows {
    /// The workflows over this log.
    pub fn new(log: &Log) -> Result<Self, DefinitionError> {
        let child = child(log)?;
        Ok(Self {
            rich: rich(log, &child)?,
            asking: asking(log)?,
            crowd: crowd(log)?,
            background: background(log)?,
            child,
        })
    }
}

/// A node's function over the log.
macro_rules! over {
    ($log:expr, $node:path) => {{
        let log = Arc::new($log.clone());
        move |ctx: NodeContext| {
            let log = log.clone();
            async move { $node(ctx, &log).await }
        }
    }};
}

fn rich(log: &Log, child: &Workflow) -> Result<Workflow, DefinitionError> {
    let child = child.clone();
    Workflow::builder("rich")
        .node("plan", |_| async { Ok(NodeOutput::new().data("plan", "as always")) })
        .node("rounds", over!(log, rounds))
        .node("left", over!(log, left))
        .node("right", over!(log, right))
        .node("delegate", move |ctx| delegate(ctx, child.clone()))
        .node("archive", over!(log, archive))
        .edge("plan", "rounds")
        .edge("rounds", "left")
        .edge("rounds", "right")
        .edge("left", "delegate")
        .edge("right", "delegate")
        .edge("delegate", "archive")
        .build()
}

fn child(log: &Log) -> Result<Workflow, DefinitionError> {
    Workflow::builder("child")
        .node("prepare", over!(log, prepare))
        .node("approve", over!(log, approve))
        .edge("prepare", "approve")
        .edge_if("approve", "approve", "again")
        .otherwise("approve", END)
        .build()
}

fn asking(log: &Log) -> Result<Workflow, DefinitionError> {
    Workflow::builder("asking").node("ask", over!(log, ask)).build()
}

fn crowd(log: &Log) -> Result<Workflow, DefinitionError> {
    Workflow::builder("crowd").node("ask", over!(log, ask_all)).build()
}

fn background(log: &Log) -> Result<Workflow, DefinitionError> {
    let flow = Workflow::builder("background").node("take", over!(log, take)).node("bill", over!(log, bill));
    flow.edge("take", "bill").build()
}

async fn take(ctx: NodeContext, log: &Log) -> NodeResult {
    log.effect(&ctx, "take", "take").await?;
    ctx.message("We are on it.").await;
    ctx.complete_response("Thanks.").await?;
    log.effect(&ctx, "work", "work").await?;
    let answer = ctx.interrupt("stock", Text::new("Where is it?")).await?;
    log.effect(&ctx, "deliver", "deliver").await?;
    Ok(NodeOutput::new().data("stock", &answer))
}

async fn bill(ctx: NodeContext, log: &Log) -> NodeResult {
    ctx.complete_response("Thanks again.").await?;
    log.effect(&ctx, "bill", "bill").await?;
    Ok(NodeOutput::new())
}

async fn rounds(ctx: NodeContext, log: &Log) -> NodeResult {
    log.effect(&ctx, "charge", "charge").await?;
    let mut answers = Vec::new();
    for round in 1..=2 {
        answers.push(ctx.interrupt("round", Text::new("What is next?")).await?);
        log.effect(&ctx, "note", &format!("note-{round}")).await?;
    }
    Ok(NodeOutput::new().data("rounds", &answers))
}

async fn left(ctx: NodeContext, log: &Log) -> NodeResult {
    let answer = ctx.interrupt("left", Text::new("What does the left branch need?")).await?;
    log.effect(&ctx, "left", "left").await?;
    Ok(NodeOutput::new().data("left", &answer))
}

async fn right(ctx: NodeContext, log: &Log) -> NodeResult {
    let reply = ctx.interrupt("right", RIGHT.ask(Side { side: "right".into() })).await?;
    log.effect(&ctx, "right", "right").await?;
    Ok(NodeOutput::new().data("right", &reply.answer))
}

async fn delegate(ctx: NodeContext, child: Workflow) -> NodeResult {
    let output: Value = ctx.call("child", &child, json!({})).await?;
    Ok(NodeOutput::new().data("child", &output.get("answers")))
}

async fn archive(ctx: NodeContext, log: &Log) -> NodeResult {
    log.effect(&ctx, "archive", "archive").await?;
    Ok(NodeOutput::new())
}

async fn prepare(ctx: NodeContext, log: &Log) -> NodeResult {
    log.effect(&ctx, "prepare", "prepare").await?;
    Ok(NodeOutput::new())
}

async fn approve(ctx: NodeContext, log: &Log) -> NodeResult {
    let kept = ctx.node_state("answers", Vec::<String>::new());
    let mut answers = kept.get()?;
    answers.push(ctx.interrupt("approve", Text::new("Does it suit you?")).await?);
    log.effect(&ctx, "apply", &format!("apply-{}", answers.len())).await?;
    kept.set(&answers)?;
    let condition = if answers.len() < 2 { "again" } else { "done" };
    Ok(NodeOutput::new().data("answers", &answers).condition(condition))
}

async fn ask(ctx: NodeContext, log: &Log) -> NodeResult {
    let times: usize = ctx.input()?;
    let mut answers = Vec::new();
    for round in 0..times {
        answers.push(ctx.interrupt("ask", Text::new("Which one?")).await?);
        log.effect(&ctx, "act", &format!("act-{round}")).await?;
    }
    Ok(NodeOutput::new().data("answers", &answers))
}

async fn ask_all(ctx: NodeContext, log: &Log) -> NodeResult {
    let times: usize = ctx.input()?;
    let asks = (0..times).map(|_| ctx.interrupt("ask", Text::new("Which one?")));
    let answers = try_join_all(asks).await?;
    log.effect(&ctx, "act", "act").await?;
    Ok(NodeOutput::new().data("answers", &answers))
}
