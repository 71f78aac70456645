//! The shape of workflows as it is reported: nodes, edges, and a hash of both.

use std::{fmt::Write as _, sync::Arc};

use kortyx_protocol::{JsonError, json};
use kortyx_runtime::workflow::{Definition, END, Edge, When};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::event::{SCHEMA_VERSION, Service};

/// The version of the hashed form. Another one makes every workflow a new revision to the receiver.
const FORMAT: u32 = 1;

/// What is hashed: no ids, versions and descriptions, so that workflows of one shape have one hash.
#[derive(Serialize)]
struct Hashed<'a> {
    format: u32,
    start: &'a str,
    nodes: Vec<&'a str>,
    /// From, to, and `["always"]`, `["condition", "<condition>"]` or `["otherwise"]`.
    edges: Vec<(&'a str, &'a str, Vec<&'a str>)>,
}

/// The body of `workflow-revisions:ensure`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ensure<'a> {
    schema_version: u32,
    environment: &'a str,
    service: &'a Service,
    workflow: Shape<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shape<'a> {
    id: &'a str,
    declared_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    topology_hash: &'a str,
    nodes: Vec<ShapeNode<'a>>,
    edges: Vec<ShapeEdge<'a>>,
}

#[derive(Serialize)]
struct ShapeNode<'a> {
    id: &'a str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShapeEdge<'a> {
    source_node_id: &'a str,
    target_node_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<&'a str>,
}

impl<'a> ShapeEdge<'a> {
    fn of(edge: &'a Edge) -> Self {
        let condition = match &edge.when {
            When::Always => None,
            When::Condition(condition) => Some(&**condition),
            When::Otherwise => Some("otherwise"),
        };
        Self { source_node_id: &edge.from, target_node_id: edge.to.as_str(), condition }
    }
}

/// What the receiver answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ensured {
    pub(super) workflow_revision_id: Arc<str>,
}

/// 64 lower-case hex digits: the SHA-256 of the canonical JSON of sorted nodes and edges.
pub(super) fn hash(definition: &Definition) -> Result<String, JsonError> {
    let mut nodes: Vec<&str> = definition.nodes().map(|node| &*node.name).collect();
    nodes.sort_unstable();
    let mut edges: Vec<_> = definition.edges().map(|edge| (&*edge.from, edge.to.as_str(), when(edge))).collect();
    edges.sort_unstable();
    let text = json::canonical(&Hashed { format: FORMAT, start: definition.start(), nodes, edges })?;
    Ok(Sha256::digest(text).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

fn when(edge: &Edge) -> Vec<&str> {
    match &edge.when {
        When::Always => vec!["always"],
        When::Condition(condition) => vec!["condition", condition],
        When::Otherwise => vec!["otherwise"],
    }
}

/// The body that reports a workflow. Its end is a node where an edge leads there.
pub(super) fn ensure(
    definition: &Definition,
    hash: &str,
    environment: &str,
    service: &Service,
) -> Result<Vec<u8>, JsonError> {
    let start = &**definition.start();
    let node = |id| ShapeNode { id, kind: (id == start).then_some("start") };
    let mut nodes: Vec<ShapeNode<'_>> = definition.nodes().map(|each| node(&*each.name)).collect();
    if definition.edges().any(|edge| edge.to.node().is_none()) {
        nodes.push(ShapeNode { id: END, kind: Some("end") });
    }
    let workflow = Shape {
        id: definition.id(),
        declared_version: definition.version(),
        description: definition.description(),
        topology_hash: hash,
        nodes,
        edges: definition.edges().map(ShapeEdge::of).collect(),
    };
    json::to_vec(&Ensure { schema_version: SCHEMA_VERSION, environment, service, workflow })
}

#[cfg(test)]
mod tests {
    use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow, workflow::WorkflowBuilder};

    use super::*;

    async fn nothing(_: NodeContext) -> NodeResult {
        Ok(NodeOutput::new())
    }

    fn hashed(build: impl FnOnce(WorkflowBuilder) -> WorkflowBuilder) -> String {
        hash(build(Workflow::builder("w")).build().unwrap().definition()).unwrap()
    }

    #[test]
    fn the_hash_is_the_same_in_every_process_and_every_build() {
        let hash = hashed(|workflow| {
            let nodes = workflow.node("review", nothing).node("publish", nothing).start("review");
            nodes.edge_if("review", "publish", "approve").otherwise("review", END).edge("publish", END)
        });
        assert_eq!(hash, "0bfe69a54c723f13a70163f1cac88ee23acb11a2708178e948d051399156e9df");
    }

    #[test]
    fn the_order_of_declarations_the_version_and_the_description_do_not_count() {
        let one = hashed(|workflow| {
            let nodes = workflow.node("a", nothing).node("b", nothing).start("a");
            nodes.edge_if("a", "b", "x").otherwise("a", END)
        });
        let other = hashed(|workflow| {
            let nodes = workflow.version("2").description("d").node("b", nothing).node("a", nothing).start("a");
            nodes.otherwise("a", END).edge_if("a", "b", "x")
        });
        let changed = hashed(|workflow| {
            let nodes = workflow.node("a", nothing).node("b", nothing).start("a");
            nodes.edge_if("a", "b", "y").otherwise("a", END)
        });
        assert_eq!(one, other);
        assert_ne!(one, changed);
    }
}
