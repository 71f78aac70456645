//! Small workflows.

use std::time::Duration;

use kortyx_contracts::{AskExt, Choice, Text};
use kortyx_orchestrator::AgentBuilder;
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use serde_json::Value;

pub(crate) fn register(agent: AgentBuilder) -> AgentBuilder {
    let workflows: [Workflow; 9] = [
        one("review", review),
        one("pair", pair),
        one("echo", echo),
        one("endless", endless),
        one("silent", silent),
        one("durable", durable),
        one("lenient", lenient),
        one("talk", talk),
        one("order", order),
    ];
    workflows.iter().fold(agent, AgentBuilder::workflow).default_workflow("review")
}

fn one<F>(id: &str, node: impl Fn(NodeContext) -> F + Send + Sync + 'static) -> Workflow
where
    F: Future<Output = NodeResult> + Send + 'static,
{
    Workflow::builder(id).node("node", node).build().unwrap()
}

/// Asks for a decision and says it.
async fn review(ctx: NodeContext) -> NodeResult {
    let question = Choice::new("Approve this draft?").option("approve", "Approve").option("revise", "Revise");
    let decision = ctx.interrupt("approval", question).await?;
    ctx.message(format!("You chose {decision}.")).await;
    Ok(NodeOutput::new().data("decision", &decision))
}

/// Answers at once, and asks the staff later.
async fn order(ctx: NodeContext) -> NodeResult {
    ctx.complete_response("Thanks.").await?;
    let shelf = ctx.interrupt("shelf", Text::new("Where is it?")).await?;
    Ok(NodeOutput::new().data("shelf", &shelf))
}

/// Asks two things at once.
async fn pair(ctx: NodeContext) -> NodeResult {
    let (a, b) = tokio::join!(ctx.interrupt("a", Text::new("A?")), ctx.interrupt("b", Text::new("B?")));
    Ok(NodeOutput::new().data("a", &a?).data("b", &b?))
}

/// Ends with its context.
async fn echo(ctx: NodeContext) -> NodeResult {
    let context: Value = ctx.context()?;
    Ok(NodeOutput::new().data("context", &context))
}

/// Says something large for ever.
async fn endless(ctx: NodeContext) -> NodeResult {
    loop {
        ctx.text("x".repeat(8 * 1024)).await;
    }
}

/// Says something and then nothing for ever.
async fn silent(ctx: NodeContext) -> NodeResult {
    ctx.text("Wait").await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    Ok(NodeOutput::new())
}

/// Does something durable, says so, and then nothing for ever.
async fn durable(ctx: NodeContext) -> NodeResult {
    let begun: u32 = ctx.step("begin", || async { Ok::<_, NodeError>(1) }).await?;
    ctx.text("Begun").await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    Ok(NodeOutput::new().data("begun", &begun))
}

/// Asks for a minute, and goes on without an answer.
async fn lenient(ctx: NodeContext) -> NodeResult {
    let ask = Text::new("Name?").default_on_expiry("nobody".to_owned()).expires_in(Duration::from_mins(1));
    let name = ctx.interrupt("name", ask.optional_cancel()).await?;
    Ok(NodeOutput::new().data("name", &name))
}

/// Says something, asks, says what was answered.
async fn talk(ctx: NodeContext) -> NodeResult {
    ctx.text("Hello.").await;
    let name = ctx.interrupt("name", Text::new("Name?")).await?;
    ctx.message(format!("Bye, {name}.")).await;
    Ok(NodeOutput::new().data("name", &name))
}
