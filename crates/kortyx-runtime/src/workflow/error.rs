//! What can be wrong with a definition, and where in it.

use std::sync::Arc;

use kortyx_contracts::SchemaError;
use kortyx_protocol::JsonError;

use super::{Edge, name::shown};

/// Why a workflow cannot be built or registered.
///
/// [`code`](Self::code) is stable, the message says what to change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// An id, a name, a version or a condition breaks a rule.
    #[error("{what} {} is not accepted: {reason}", shown(name))]
    InvalidName {
        /// What the name belongs to, such as `node name`.
        what: &'static str,
        /// The name.
        name: Arc<str>,
        /// The broken rule and what to do.
        reason: &'static str,
    },
    /// The workflow has no node.
    #[error("workflow {} has no nodes: add at least one", shown(workflow))]
    NoNodes {
        /// The workflow's id.
        workflow: Arc<str>,
    },
    /// Two nodes have the same name.
    #[error("workflow {} has two nodes named {}: rename one of them", shown(workflow), shown(node))]
    DuplicateNode {
        /// The workflow's id.
        workflow: Arc<str>,
        /// The name.
        node: Arc<str>,
    },
    /// The start is not a node.
    #[error("workflow {} starts at {}, which is not one of its nodes; {hint}", shown(workflow), shown(start))]
    UnknownStart {
        /// The workflow's id.
        workflow: Arc<str>,
        /// The name given as start.
        start: Arc<str>,
        /// A name that was probably meant, or the names that exist.
        hint: String,
    },
    /// An edge leaves or reaches something that is not a node.
    #[error("edge {edge} of workflow {} names {}, which is not a node; {hint}", shown(workflow), shown(name))]
    UnknownNode {
        /// The workflow's id.
        workflow: Arc<str>,
        /// The edge.
        edge: Box<Edge>,
        /// The name that is not a node's.
        name: Arc<str>,
        /// A name that was probably meant, or the names that exist.
        hint: String,
    },
    /// An edge says what another edge between the same nodes already says.
    #[error("edge {edge} of workflow {} repeats {earlier}: remove one of them", shown(workflow))]
    DuplicateEdge {
        /// The workflow's id.
        workflow: Arc<str>,
        /// The edge.
        edge: Box<Edge>,
        /// The edge before it.
        earlier: Box<Edge>,
    },
    /// A node has an `otherwise` edge but no edge with a condition.
    #[error(
        "edge {edge} of workflow {} has no conditional edge beside it: add one with a condition, or make this one \
         unconditional",
        shown(workflow)
    )]
    OtherwiseAlone {
        /// The workflow's id.
        workflow: Arc<str>,
        /// The edge.
        edge: Box<Edge>,
    },
    /// No path from the start leads to a node.
    #[error(
        "node {} of workflow {} cannot be reached from the start {}: add an edge to it or remove it",
        shown(node),
        shown(workflow),
        shown(start)
    )]
    UnreachableNode {
        /// The workflow's id.
        workflow: Arc<str>,
        /// The node.
        node: Arc<str>,
        /// The start.
        start: Arc<str>,
    },
    /// A graph with fan-out has a cycle.
    #[error(
        "workflow {} has the cycle {} and a fan-out at {}: a graph with fan-out must be acyclic; break the cycle, or \
         give the edges of {} conditions that exclude each other",
        shown(workflow),
        path.iter().map(|node| shown(node)).collect::<Vec<_>>().join(" → "),
        shown(fork),
        shown(fork)
    )]
    GraphCycle {
        /// The workflow's id.
        workflow: Arc<str>,
        /// The nodes of the cycle; the last is the first again.
        path: Vec<Arc<str>>,
        /// A node that can select two edges at once.
        fork: Arc<str>,
    },
    /// There are too many nodes or edges.
    #[error(
        "workflow {} has {count} {what}, {limit} at most are accepted: split it into child workflows",
        shown(workflow)
    )]
    TooLarge {
        /// The workflow's id.
        workflow: Arc<str>,
        /// `nodes` or `edges`.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many are accepted.
        limit: usize,
    },
    /// The retry of a node has a value out of range.
    #[error("the retry of node {} of workflow {} is not accepted: {reason}", shown(node), shown(workflow))]
    InvalidRetry {
        /// The workflow's id.
        workflow: Arc<str>,
        /// The node.
        node: Arc<str>,
        /// Which value, and what to do.
        reason: &'static str,
    },
    /// The limit of node executions is 0.
    #[error("workflow {} allows 0 node executions, so it could never start: allow at least 1", shown(workflow))]
    InvalidLimit {
        /// The workflow's id.
        workflow: Arc<str>,
    },
    /// The input or output schema cannot be used.
    #[error("the {side} schema of workflow {} is not accepted: {reason}", shown(workflow))]
    InvalidSchema {
        /// The workflow's id.
        workflow: Arc<str>,
        /// `input` or `output`.
        side: &'static str,
        /// What is wrong with it.
        reason: SchemaError,
    },
    /// Another definition is registered under the same id and version.
    #[error(
        "workflow {} version {} is registered already with other nodes or edges (fingerprint {registered}, now \
         {fingerprint}): give the changed one a new version",
        shown(workflow),
        shown(version)
    )]
    VersionConflict {
        /// The workflow's id.
        workflow: Arc<str>,
        /// The version.
        version: Arc<str>,
        /// The fingerprint of the registered definition.
        registered: Arc<str>,
        /// The fingerprint of the refused one.
        fingerprint: Arc<str>,
    },
    /// The definition cannot be written as JSON to compute its fingerprint.
    #[error("the fingerprint of workflow {} cannot be computed", shown(workflow))]
    Fingerprint {
        /// The workflow's id.
        workflow: Arc<str>,
        /// What could not be written.
        source: JsonError,
    },
}

impl DefinitionError {
    /// The stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidName { .. } => "INVALID_NAME",
            Self::NoNodes { .. } => "NO_NODES",
            Self::DuplicateNode { .. } => "DUPLICATE_NODE",
            Self::UnknownStart { .. } => "UNKNOWN_START",
            Self::UnknownNode { .. } => "UNKNOWN_NODE",
            Self::DuplicateEdge { .. } => "DUPLICATE_EDGE",
            Self::OtherwiseAlone { .. } => "OTHERWISE_WITHOUT_CONDITION",
            Self::UnreachableNode { .. } => "UNREACHABLE_NODE",
            Self::GraphCycle { .. } => "GRAPH_CYCLE",
            Self::TooLarge { .. } => "GRAPH_TOO_LARGE",
            Self::InvalidRetry { .. } => "INVALID_RETRY",
            Self::InvalidLimit { .. } => "INVALID_LIMIT",
            Self::InvalidSchema { .. } => "INVALID_SCHEMA",
            Self::VersionConflict { .. } => "VERSION_CONFLICT",
            Self::Fingerprint { .. } => "FINGERPRINT_FAILED",
        }
    }
}

/// The part of a definition that an error is about, so that a loader can point at it. Numbers count declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    Id,
    Version,
    Start,
    Nodes,
    Node(usize),
    Retry(usize),
    Edges,
    Edge(usize),
    EdgeFrom(usize),
    EdgeTo(usize),
    EdgeWhen(usize),
    Limit,
    Input,
    Output,
}

/// A definition error and the part it is about.
#[derive(Debug)]
pub(super) struct Misbuilt {
    pub(super) error: DefinitionError,
    #[cfg_attr(not(feature = "yaml"), expect(dead_code, reason = "only a loader points at places"))]
    pub(super) site: Site,
}

impl DefinitionError {
    pub(super) fn at(self, site: Site) -> Misbuilt {
        Misbuilt { error: self, site }
    }
}
