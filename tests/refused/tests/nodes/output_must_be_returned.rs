//! An output is returned, not dropped.

#![deny(unused_must_use)]

use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};

pub async fn node(_: NodeContext) -> NodeResult {
    let output = NodeOutput::new();
    NodeOutput::new().data("lost", &1);
    Ok(output)
}

fn main() {}
