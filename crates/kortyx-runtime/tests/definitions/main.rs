//! Definitions from outside: building, routing, fingerprints, versions, loading.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a world that cannot be built fails the test"
)]

mod build;
mod fingerprint;
#[cfg(feature = "yaml")]
mod load;
mod random;
mod registry;
mod route;

use kortyx_runtime::{
    NodeContext, NodeOutput, NodeResult, Workflow,
    workflow::{Definition, WorkflowBuilder},
};

/// A node that is never run.
async fn idle(_: NodeContext) -> NodeResult {
    Ok(NodeOutput::new())
}

/// A workflow named `w` with these nodes.
fn workflow(nodes: &[&str]) -> WorkflowBuilder {
    nodes.iter().fold(Workflow::builder("w"), |builder, node| builder.node(*node, idle))
}

/// Where an output leads: the selected edges' targets.
fn targets(definition: &Definition, node: &str, condition: Option<&str>) -> Vec<String> {
    let edges = definition.route(node, condition).expect("a route");
    edges.into_iter().map(|ix| definition.edge(ix).to.as_str().to_owned()).collect()
}
