//! A checked workflow: immutable, shared by all its runs.

use std::{collections::BTreeMap, fmt, sync::Arc};

use kortyx_protocol::{Issue, RawJson};
use serde_json::Value;

use super::{Edge, EdgeIx, NodeDefinition, schema::Schema};
use crate::Allowances;

/// What a workflow is made of. It has passed every check and never changes.
pub struct Definition {
    pub(super) id: Arc<str>,
    pub(super) version: Arc<str>,
    pub(super) description: Option<Arc<str>>,
    pub(super) fingerprint: Arc<str>,
    pub(super) start: Arc<str>,
    pub(super) nodes: Vec<Node>,
    pub(super) index: BTreeMap<Arc<str>, usize>,
    pub(super) edges: Vec<Edge>,
    pub(super) parallel: bool,
    pub(super) max_node_executions: Option<u32>,
    pub(super) limits: Allowances,
    pub(super) input: Option<Schema>,
    pub(super) output: Option<Schema>,
}

/// A node with the numbers of its edges, in ascending order.
pub(super) struct Node {
    pub(super) definition: NodeDefinition,
    pub(super) incoming: Vec<EdgeIx>,
    pub(super) outgoing: Vec<EdgeIx>,
}

impl Definition {
    /// The id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The version, free text.
    pub fn version(&self) -> &Arc<str> {
        &self.version
    }

    /// What the workflow is for.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// A hash of id, version, start, node names and edges with their conditions: 64 lower-case hex digits.
    ///
    /// A paused run goes on only with the fingerprint it began with. Neither the order of declarations nor node functions,
    /// options, limits and schemas change it.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The name of the first node of a run.
    pub fn start(&self) -> &Arc<str> {
        &self.start
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&NodeDefinition> {
        self.entry(name).map(|node| &node.definition)
    }

    /// The nodes, in the order of their declaration.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &NodeDefinition> {
        self.nodes.iter().map(|node| &node.definition)
    }

    /// The edges, in the order of their numbers.
    pub fn edges(&self) -> impl ExactSizeIterator<Item = &Edge> {
        self.edges.iter()
    }

    /// The edge of this number. Numbers are only good for the definition that gave them, or one of equal fingerprint.
    #[expect(clippy::indexing_slicing, reason = "an `EdgeIx` is only made by the definition that it indexes")]
    pub fn edge(&self, ix: EdgeIx) -> &Edge {
        &self.edges[ix.0 as usize]
    }

    /// The edge with a number that was kept, if there is one.
    pub fn edge_at(&self, number: u32) -> Option<EdgeIx> {
        self.edges.get(usize::try_from(number).ok()?).map(|_| EdgeIx(number))
    }

    /// The edges that lead to a node, in the order of their numbers. Empty for a name that is not a node's.
    pub fn incoming(&self, node: &str) -> &[EdgeIx] {
        self.entry(node).map_or(&[], |node| &node.incoming)
    }

    /// The edges that leave a node, in the order of their numbers. Empty for a name that is not a node's.
    pub fn outgoing(&self, node: &str) -> &[EdgeIx] {
        self.entry(node).map_or(&[], |node| &node.outgoing)
    }

    /// Whether some node can select two edges at once. Then the graph is acyclic; otherwise it may loop.
    pub fn is_parallel(&self) -> bool {
        self.parallel
    }

    /// How many activations a run may have before it asks whether to go on. `None` sets no limit.
    pub fn max_node_executions(&self) -> Option<u32> {
        self.max_node_executions
    }

    /// How much a run may use before it asks whether to go on, where the workflow says so.
    pub fn limits(&self) -> &Allowances {
        &self.limits
    }

    /// The JSON Schema of the input.
    pub fn input_schema(&self) -> Option<&Value> {
        self.input.as_ref().map(Schema::value)
    }

    /// The JSON Schema of the output.
    pub fn output_schema(&self) -> Option<&Value> {
        self.output.as_ref().map(Schema::value)
    }

    /// Says what is wrong with an input. Without a schema everything is right.
    pub fn validate_input(&self, input: &RawJson) -> Result<(), Vec<Issue>> {
        self.input.as_ref().map_or(Ok(()), |schema| schema.validate(input))
    }

    /// Says what is wrong with an output. Without a schema everything is right.
    pub fn validate_output(&self, output: &RawJson) -> Result<(), Vec<Issue>> {
        self.output.as_ref().map_or(Ok(()), |schema| schema.validate(output))
    }

    fn entry(&self, name: &str) -> Option<&Node> {
        self.nodes.get(*self.index.get(name)?)
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition")
            .field("id", &self.id)
            .field("version", &self.version)
            .field("fingerprint", &self.fingerprint)
            .field("nodes", &self.nodes.len())
            .field("edges", &self.edges.len())
            .finish_non_exhaustive()
    }
}
