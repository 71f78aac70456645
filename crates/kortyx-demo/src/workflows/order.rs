//! An answer after which the client has its response, while the work goes on and asks again later.

use std::time::Duration;

use kortyx_contracts::Choice;
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow, workflow::DefinitionError};

/// How long packing takes.
const PACKING: Duration = Duration::from_secs(2);

pub(super) fn workflow() -> Result<Workflow, DefinitionError> {
    Workflow::builder("order").node("order", order).node("pack", pack).edge("order", "pack").build()
}

/// Takes the order. With it the response is complete.
async fn order(ctx: NodeContext) -> NodeResult {
    let colour = Choice::new("Which colour shall your lamp have?").option("blue", "Blue").option("green", "Green");
    let colour = ctx.interrupt("colour", colour).await?;
    ctx.complete_response(format!(
        "Thank you! A {colour} lamp is ordered. If something comes up, we ask in your inbox."
    ))
    .await?;
    Ok(NodeOutput::new().data("colour", &colour))
}

/// Works on, and finds that it has to ask.
async fn pack(ctx: NodeContext) -> NodeResult {
    let colour: String = ctx.data("colour")?;
    let packing = async || {
        tokio::time::sleep(PACKING).await;
        Ok::<_, NodeError>(())
    };
    ctx.step("pack", packing).await?;
    let instead = Choice::new(format!("The {colour} lamp has run out. What shall we send?"))
        .option("white", "The same lamp in white")
        .option("wait", "The lamp as ordered, in three weeks");
    let reply = match &*ctx.interrupt("instead", instead).await? {
        "white" => "The white lamp is on its way.".to_owned(),
        _ => format!("The {colour} lamp comes in three weeks."),
    };
    Ok(NodeOutput::new().data("reply", &reply))
}
