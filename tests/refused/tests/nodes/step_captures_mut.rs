//! A step cannot change what it captures: replay would not repeat the change.

use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult};

pub async fn node(ctx: NodeContext) -> NodeResult {
    let mut list = vec![1];
    ctx.step("push", || {
        list.push(2);
        async { Ok::<_, NodeError>(()) }
    })
    .await?;
    Ok(NodeOutput::new().data("list", &list))
}

fn main() {}
