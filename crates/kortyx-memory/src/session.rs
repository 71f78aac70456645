//! A session as it is kept: its checkpoints and what its runs come to.

use std::{collections::VecDeque, sync::Arc};

use kortyx_protocol::{SessionId, Timestamp};
use kortyx_store::{CheckpointRecord, WorkflowPin};

/// A session; it exists while it has checkpoints or runs.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// Its last change, while it is in the index of idle sessions.
    pub(crate) idle_since: Option<Timestamp>,
    /// How many runs it has, and how many of them are not terminal.
    pub(crate) runs: u32,
    pub(crate) active: u32,
    /// How many of its questions are pending.
    pub(crate) open: u32,
    /// Oldest first; abandoned ones are gone.
    pub(crate) checkpoints: VecDeque<Box<Checkpoint>>,
}

/// A checkpoint with what a record of it does not say.
pub(crate) struct Checkpoint {
    pub(crate) record: CheckpointRecord,
    /// Of one with a snapshot: what a run that starts from it needs to know.
    pub(crate) basis: Option<Basis>,
}

/// What goes with a snapshot.
#[derive(Clone)]
pub(crate) struct Basis {
    /// The definition that it is bound to.
    pub(crate) pin: Arc<WorkflowPin>,
    /// How many answers it holds: a driver takes answers up to this number for known, so a run that starts from it counts
    /// on from here.
    pub(crate) answers: u64,
}

impl Session {
    pub(crate) fn new(id: SessionId) -> Self {
        Self { id, idle_since: None, runs: 0, active: 0, open: 0, checkpoints: VecDeque::new() }
    }

    /// Whether nothing is left of it.
    pub(crate) fn is_unused(&self) -> bool {
        self.runs == 0 && self.checkpoints.is_empty() && self.idle_since.is_none()
    }

    pub(crate) fn head(&self) -> Option<&Checkpoint> {
        self.checkpoints.back().map(Box::as_ref)
    }

    /// The checkpoint of this turn.
    pub(crate) fn at(&self, turn: u64) -> Option<&Checkpoint> {
        self.checkpoints.get(self.position(turn)?).map(Box::as_ref)
    }

    pub(crate) fn position(&self, turn: u64) -> Option<usize> {
        self.checkpoints.binary_search_by_key(&turn, |checkpoint| checkpoint.record.turn_index).ok()
    }
}
