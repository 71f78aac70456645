//! State keeps the type of its default.

use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};

pub async fn node(ctx: NodeContext) -> NodeResult {
    ctx.workflow_state("count", 0u32).set(&"one")?;
    Ok(NodeOutput::new())
}

fn main() {}
