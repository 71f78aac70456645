//! One workflow for each kind of question and output.

use kortyx::{
    AgentBuilder, Choice, FinalResponse, InterruptContract, MultiChoice, NodeContext, NodeError, NodeOutput,
    NodeResult, Picker, Text, Workflow, prelude::AskExt as _,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::one_node;

pub(super) fn register(agent: AgentBuilder) -> AgentBuilder {
    let workflows: [Workflow; 11] = [
        one_node("choice", choice),
        one_node("multi", multi),
        one_node("text", text),
        one_node("picker", picker),
        one_node("contract", contract),
        one_node("pair", pair),
        one_node("optional", optional),
        one_node("writer", writer),
        one_node("domain", domain),
        one_node("broken", broken),
        one_node("order", order),
    ];
    workflows.iter().fold(agent, AgentBuilder::workflow).default_workflow("choice")
}

async fn choice(ctx: NodeContext) -> NodeResult {
    let ask = Choice::new("Approve this draft?")
        .option("approve", "Approve")
        .option("revise", "Revise")
        .option("7", "Seven")
        .option("true", "Yes");
    let picked = ctx.interrupt("approval", ask).await?;
    ctx.message(format!("You chose {picked}.")).await;
    Ok(NodeOutput::new().data("picked", &picked))
}

async fn multi(ctx: NodeContext) -> NodeResult {
    let ask = MultiChoice::new("Which?").option("red", "Red").option("7", "Seven").option("true", "Yes").max(3);
    let picked = ctx.interrupt("colours", ask).await?;
    Ok(NodeOutput::new().data("picked", &picked))
}

async fn text(ctx: NodeContext) -> NodeResult {
    let name = ctx.interrupt("name", Text::new("Your name?")).await?;
    Ok(NodeOutput::new().data("name", &name))
}

async fn picker(ctx: NodeContext) -> NodeResult {
    let job = ctx.interrupt("job", Picker::new("jobs").version("2").with_question("Which job?")).await?;
    Ok(NodeOutput::new().data("job", &job))
}

#[derive(Serialize, JsonSchema)]
struct Offer {
    price: u32,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Reply {
    accepted: bool,
}

async fn contract(ctx: NodeContext) -> NodeResult {
    let offer = InterruptContract::<Offer, Reply>::new("offer")
        .description("A price, to accept or not")
        .schema_id("acme.offer")
        .version("1");
    let reply = ctx.interrupt("offer", offer.ask(Offer { price: 7 })).await?;
    Ok(NodeOutput::new().data("reply", &reply))
}

async fn pair(ctx: NodeContext) -> NodeResult {
    let (a, b) = tokio::join!(ctx.interrupt("a", Text::new("A?")), ctx.interrupt("b", Text::new("B?")));
    Ok(NodeOutput::new().data("a", &a?).data("b", &b?))
}

async fn optional(ctx: NodeContext) -> NodeResult {
    let name = ctx.interrupt("name", Text::new("Your name, perhaps?").optional_cancel()).await?;
    Ok(NodeOutput::new().data("name", &name))
}

async fn writer(ctx: NodeContext) -> NodeResult {
    ctx.status("Writing").await;
    ctx.text("Once upon").await;
    ctx.text(" a time").await;
    let draft = ctx.structured("draft", "article");
    draft.set("title", "A tale").await?;
    draft.append("tags", &["old"]).await?;
    draft.text_delta("body", "Once").await;
    Ok(NodeOutput::new().data("pages", &1))
}

async fn domain(_ctx: NodeContext) -> NodeResult {
    Err(NodeError::public("OUT_OF_PAPER", "there is no paper left"))
}

async fn broken(_ctx: NodeContext) -> NodeResult {
    Err(NodeError::message("the password is hunter2"))
}

async fn order(ctx: NodeContext) -> NodeResult {
    ctx.message("One moment.").await;
    ctx.complete_response(FinalResponse::new().message("You will hear from us.").data("order", &7)).await?;
    let stock = ctx.interrupt("stock", Text::new("How many are left?")).await?;
    ctx.message("This is told to nobody.").await;
    Ok(NodeOutput::new().data("stock", &stock))
}
