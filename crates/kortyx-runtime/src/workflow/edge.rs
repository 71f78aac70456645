//! Edges: from which node, to where, and when.

use std::{fmt, sync::Arc};

use super::name::shown;

/// The target of an edge that ends its path through the workflow.
pub const END: &str = "__end__";

/// The place of an edge in its [`Definition`](super::Definition).
///
/// Definitions with the same fingerprint number their edges alike, in whatever order the edges were declared, so the
/// number may be kept in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeIx(pub(super) u32);

impl EdgeIx {
    /// The number as a snapshot keeps it. [`Definition::edge_at`](super::Definition::edge_at) is the way back.
    pub fn get(self) -> u32 {
        self.0
    }
}

/// A connection between two nodes, or from a node to the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Edge {
    /// The node that the edge leaves.
    pub from: Arc<str>,
    /// Where it leads.
    pub to: Target,
    /// Which outputs of the node select it.
    pub when: When,
}

/// Where an edge leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// To the node of this name.
    Node(Arc<str>),
    /// Nowhere: the path ends.
    End,
}

impl Target {
    pub(super) fn named(name: Arc<str>) -> Self {
        if &*name == END { Self::End } else { Self::Node(name) }
    }

    /// The node's name, unless this is the end.
    pub fn node(&self) -> Option<&Arc<str>> {
        match self {
            Self::Node(name) => Some(name),
            Self::End => None,
        }
    }

    /// The node's name or [`END`].
    pub fn as_str(&self) -> &str {
        self.node().map_or(END, |name| name)
    }
}

/// Which outputs of a node select an edge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// Every output.
    Always,
    /// Outputs with exactly this condition.
    Condition(Arc<str>),
    /// Outputs that no conditional edge of the node matches.
    Otherwise,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", shown(&self.from), shown(self.to.as_str()))?;
        match &self.when {
            When::Always => Ok(()),
            When::Condition(condition) => write!(f, " when {}", shown(condition)),
            When::Otherwise => f.write_str(" otherwise"),
        }
    }
}
