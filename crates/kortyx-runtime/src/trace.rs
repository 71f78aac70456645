//! What a turn of a tracked run did, for the checkpoint that a session keeps of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kortyx_protocol::RawJson;
use serde::{Deserialize, Serialize};

use crate::state::{Closed, Frame, ROOT, RunState};

/// How many visits of a turn are kept: a loop has no other bound.
const MAX_NODES: usize = 1_000;

/// What a session keeps of a turn. Only [tracked](crate::Start::tracked) runs tell it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnState {
    /// The run's data so far. In a graph with fan-out: what the nodes that have ended wrote, of two the one that began later.
    pub data: BTreeMap<String, RawJson>,
    /// The workflow state.
    pub workflow_state: BTreeMap<String, RawJson>,
    /// The nodes that the turn entered, in order, at most 1,000: those of the run's workflow and of its handoffs, not those of
    /// child workflows. The first of a turn that goes on after an answer is the one that had asked.
    pub nodes: Vec<String>,
    /// Structured streams that the turn wrote to.
    pub structured_stream_ids: Vec<String>,
}

/// What a turn did so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Trace {
    /// Activations of the root frame, each with its node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<(u32, Arc<str>)>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    streams: BTreeSet<Arc<str>>,
}

impl Trace {
    pub(crate) fn enter(&mut self, activation: u32, node: &Arc<str>) {
        if self.nodes.len() < MAX_NODES && !self.nodes.iter().any(|(known, _)| *known == activation) {
            self.nodes.push((activation, node.clone()));
        }
    }

    pub(crate) fn write_to(&mut self, stream: Arc<str>) {
        self.streams.insert(stream);
    }
}

impl RunState {
    /// Whether the turn of a tracked run has not written to a structured stream yet.
    pub(crate) fn is_untraced(&self, stream: &str) -> bool {
        self.trace.as_ref().is_some_and(|trace| !trace.streams.contains(stream))
    }

    /// What a session keeps of the turn under way. A turn ends with its response: what the run does after it is its own.
    pub(crate) fn turn(&self) -> Option<TurnState> {
        if self.response_completed {
            return None;
        }
        let (trace, root) = (self.trace.as_ref()?, self.frame(ROOT)?);
        Some(TurnState {
            data: data_so_far(root),
            workflow_state: root.workflow_state.clone(),
            nodes: trace.nodes.iter().map(|(_, node)| node.to_string()).collect(),
            structured_stream_ids: trace.streams.iter().map(ToString::to_string).collect(),
        })
    }
}

/// The data of a frame that may not have ended.
fn data_so_far(frame: &Frame) -> BTreeMap<String, RawJson> {
    let mut data = frame.data.clone();
    let mut writers: BTreeMap<&str, u32> = BTreeMap::new();
    for closed in frame.closed.values() {
        let Closed::Done { view, .. } = closed else { continue };
        for (field, (value, writer)) in view {
            // Activations are numbered as they begin, so one that had seen what another wrote has the higher number.
            if writers.get(field.as_str()).is_none_or(|known| known < writer) {
                writers.insert(field, *writer);
                data.insert(field.clone(), value.clone());
            }
        }
    }
    data
}
