//! Two questions at once, answered in any order, by anybody.

use kortyx_contracts::{Choice, Text};
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow, workflow::DefinitionError};

use super::say;

pub(super) fn workflow() -> Result<Workflow, DefinitionError> {
    Workflow::builder("lunch").node("ask", ask).node("announce", announce).edge("ask", "announce").build()
}

async fn ask(ctx: NodeContext) -> NodeResult {
    ctx.message("Two things to settle. Answer them in any order; another tab may answer one of them.").await;
    let dish =
        Choice::new("What shall we eat?").option("soup", "Soup").option("curry", "Curry").option("pasta", "Pasta");
    let place = Text::new("Where do we meet?").min_length(2).max_length(60);
    let (dish, place) = tokio::join!(ctx.interrupt("dish", dish), ctx.interrupt("place", place));
    Ok(NodeOutput::new().data("dish", &dish?).data("place", &place?))
}

async fn announce(ctx: NodeContext) -> NodeResult {
    let (dish, place): (String, String) = (ctx.data("dish")?, ctx.data("place")?);
    let reply = format!("Settled: {dish}, and we meet here: {place}. Enjoy your meal!");
    say(&ctx, &reply).await;
    Ok(NodeOutput::new().data("reply", &reply))
}
