//! A node may move between threads.

use std::rc::Rc;

use kortyx_contracts::Text;
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow};

async fn node(ctx: NodeContext) -> NodeResult {
    let shared = Rc::new(1);
    ctx.interrupt("q", Text::new("?")).await?;
    Ok(NodeOutput::new().data("shared", &*shared))
}

pub fn flow() {
    let _ = Workflow::builder("flow").node("node", node).build();
}

fn main() {}
