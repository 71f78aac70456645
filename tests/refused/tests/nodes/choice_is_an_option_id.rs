//! The answer of a choice is the id of an option, not a truth value.

use kortyx_contracts::Choice;
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};

pub async fn node(ctx: NodeContext) -> NodeResult {
    let answer: bool = ctx.interrupt("ok", Choice::new("?").option("yes", "Yes")).await?;
    Ok(NodeOutput::new().data("answer", &answer))
}

fn main() {}
