//! Which edges an output selects.

use std::{fmt, sync::Arc};

use super::{
    Definition, EdgeIx, When,
    name::{listed, shown},
};

/// No edge of the node fits its output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct NoRoute {
    /// The workflow's id.
    pub workflow: Arc<str>,
    /// The node that ended.
    pub node: Arc<str>,
    /// The condition of its output.
    pub condition: Option<String>,
    /// The conditions of its edges, sorted. Empty only when the workflow has no such node.
    pub known: Vec<Arc<str>>,
}

impl fmt::Display for NoRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (workflow, node) = (shown(&self.workflow), shown(&self.node));
        let known = listed(self.known.iter().map(|condition| &**condition));
        match &self.condition {
            _ if self.known.is_empty() => write!(f, "workflow {workflow} has no node {node}"),
            Some(condition) => write!(
                f,
                "node {node} of workflow {workflow} ended with the condition {condition}, its edges handle {known}: \
                 add an edge for {condition} or an `otherwise` edge",
                condition = shown(condition),
            ),
            None => write!(
                f,
                "node {node} of workflow {workflow} ended without a condition, its edges handle {known}: return one \
                 of these or add an `otherwise` edge"
            ),
        }
    }
}

impl Definition {
    /// The edges that an output of `node` with this condition selects, in the order of their numbers.
    ///
    /// Unconditional edges are always selected, conditional ones when their condition is the output's. If the node has
    /// conditional edges and none matches, its `otherwise` edges are selected. A node without outgoing edges ends its
    /// path: the result is empty.
    pub fn route(&self, node: &str, condition: Option<&str>) -> Result<Vec<EdgeIx>, NoRoute> {
        let outgoing = self.outgoing(node);
        if outgoing.is_empty() && self.node(node).is_some() {
            return Ok(Vec::new());
        }
        let is_match = |when: &When| matches!(when, When::Condition(wanted) if Some(&**wanted) == condition);
        let matched = outgoing.iter().any(|ix| is_match(&self.edge(*ix).when));
        let selected: Vec<EdgeIx> = outgoing
            .iter()
            .copied()
            .filter(|ix| match &self.edge(*ix).when {
                When::Always => true,
                // A definition has `otherwise` edges only beside conditional ones.
                When::Otherwise => !matched,
                conditional @ When::Condition(_) => is_match(conditional),
            })
            .collect();
        if selected.is_empty() { Err(self.no_route(node, condition)) } else { Ok(selected) }
    }

    fn no_route(&self, node: &str, condition: Option<&str>) -> NoRoute {
        let mut known: Vec<Arc<str>> = Vec::new();
        for ix in self.outgoing(node) {
            if let When::Condition(condition) = &self.edge(*ix).when
                && !known.contains(condition)
            {
                known.push(Arc::clone(condition));
            }
        }
        known.sort_unstable();
        NoRoute { workflow: Arc::clone(self.id()), node: node.into(), condition: condition.map(str::to_owned), known }
    }
}
