//! A child is called with its input type.

use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow};

pub async fn node(ctx: NodeContext, child: Workflow<u32, bool>) -> NodeResult {
    ctx.call("child", &child, "seven").await?;
    Ok(NodeOutput::new())
}

fn main() {}
