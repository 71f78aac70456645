//! The result of a step is data: it is stored.

use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult};

pub struct Connection;

pub async fn node(ctx: NodeContext) -> NodeResult {
    ctx.step("connect", || async { Ok::<_, NodeError>(Connection) }).await?;
    Ok(NodeOutput::new())
}

fn main() {}
