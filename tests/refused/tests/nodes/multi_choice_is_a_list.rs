//! The answer of a multi-choice is a list.

use kortyx_contracts::MultiChoice;
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};

pub async fn node(ctx: NodeContext) -> NodeResult {
    let answer: String = ctx.interrupt("all", MultiChoice::new("?").option("a", "A")).await?;
    Ok(NodeOutput::new().data("answer", &answer))
}

fn main() {}
