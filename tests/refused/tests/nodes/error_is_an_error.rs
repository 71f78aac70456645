//! An error of a node is an error, not a text.

use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};

pub async fn node(_: NodeContext) -> NodeResult {
    Err("something went wrong")?;
    Ok(NodeOutput::new())
}

fn main() {}
