//! Where a person may cancel, the code must say what then.

use kortyx_contracts::{AskExt, Choice};
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};

pub async fn node(ctx: NodeContext) -> NodeResult {
    let answer: String = ctx.interrupt("ok", Choice::new("?").option("a", "A").optional_cancel()).await?;
    Ok(NodeOutput::new().data("answer", &answer))
}

fn main() {}
