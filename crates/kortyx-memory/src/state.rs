//! Everything that the store holds, and how a transition reaches it.

use std::{collections::BTreeMap, sync::Arc};

use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{Scalar, Signal, StoreError, StoreErrorKind, WorkflowPin};
use tokio::sync::broadcast;

use crate::{
    index::Index,
    intern::Interner,
    map::{Map, tidy},
    question::Question,
    run::Run,
    session::Session,
    slab::{Slab, Slot},
};

/// A run's context as records carry it.
pub(crate) type Context = Arc<BTreeMap<String, Scalar>>;

/// Runs, questions, sessions, and the ways to find them.
pub(crate) struct State {
    pub(crate) runs: Slab<Run>,
    pub(crate) run_slots: Map<RunId, Slot>,
    pub(crate) questions: Slab<Question>,
    pub(crate) question_slots: Map<RequestId, Slot>,
    pub(crate) sessions: Slab<Session>,
    pub(crate) session_slots: Map<SessionId, Slot>,
    /// Each checkpoint's session and turn.
    pub(crate) turns: Map<CheckpointId, (Slot, u64)>,
    pub(crate) pins: Interner<WorkflowPin>,
    /// Context pairs, each with how many pending questions its runs have.
    pub(crate) pairs: Interner<(String, Scalar), u32>,
    pub(crate) index: Index,
    pub(crate) no_context: Context,
    next_ord: u64,
    payload_limit: usize,
    signals: broadcast::Sender<Signal>,
}

impl State {
    pub(crate) fn new(payload_limit: usize, signals: broadcast::Sender<Signal>) -> Self {
        Self {
            runs: Slab::default(),
            run_slots: Map::default(),
            questions: Slab::default(),
            question_slots: Map::default(),
            sessions: Slab::default(),
            session_slots: Map::default(),
            turns: Map::default(),
            pins: Interner::default(),
            pairs: Interner::default(),
            index: Index::default(),
            no_context: Context::default(),
            next_ord: 0,
            payload_limit,
            signals,
        }
    }

    /// Gives back the room of what was removed.
    pub(crate) fn tidy(&mut self) {
        self.runs.tidy();
        self.questions.tidy();
        self.sessions.tidy();
        self.pins.tidy();
        self.pairs.tidy();
        tidy(&mut self.run_slots);
        tidy(&mut self.question_slots);
        tidy(&mut self.session_slots);
        tidy(&mut self.turns);
    }
}

/// One transition under way: it checks everything first, then changes the state.
pub(crate) struct Transition<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) now: Timestamp,
    pub(crate) operation: &'static str,
}

impl Transition<'_> {
    pub(crate) fn error(&self, kind: StoreErrorKind, message: impl Into<String>) -> StoreError {
        StoreError::new(kind, self.operation, message)
    }

    pub(crate) fn invalid(&self, message: impl Into<String>) -> StoreError {
        self.error(StoreErrorKind::InvalidRequest, message)
    }

    pub(crate) fn run_at(&self, slot: Slot) -> Result<&Run, StoreError> {
        self.state.runs.get(slot).ok_or_else(|| corrupt(self.operation))
    }

    pub(crate) fn run_mut(&mut self, slot: Slot) -> Result<&mut Run, StoreError> {
        self.state.runs.get_mut(slot).ok_or_else(|| corrupt(self.operation))
    }

    pub(crate) fn question_at(&self, slot: Slot) -> Result<&Question, StoreError> {
        self.state.questions.get(slot).ok_or_else(|| corrupt(self.operation))
    }

    pub(crate) fn question_mut(&mut self, slot: Slot) -> Result<&mut Question, StoreError> {
        self.state.questions.get_mut(slot).ok_or_else(|| corrupt(self.operation))
    }

    pub(crate) fn session_at(&self, slot: Slot) -> Result<&Session, StoreError> {
        self.state.sessions.get(slot).ok_or_else(|| corrupt(self.operation))
    }

    pub(crate) fn session_mut(&mut self, slot: Slot) -> Result<&mut Session, StoreError> {
        self.state.sessions.get_mut(slot).ok_or_else(|| corrupt(self.operation))
    }

    pub(crate) fn next_ord(&mut self) -> u64 {
        self.state.next_ord += 1;
        self.state.next_ord
    }

    /// Tells whoever listens; nobody may.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = self.state.signals.send(signal);
    }

    /// Refuses a payload over the limit.
    pub(crate) fn check_size(&self, what: &str, payload: &[u8]) -> Result<(), StoreError> {
        let limit = self.state.payload_limit;
        if payload.len() <= limit {
            return Ok(());
        }
        let message = format!("{what} has {} bytes, the limit is {limit}", payload.len());
        Err(self.error(StoreErrorKind::TooLarge, message))
    }
}

/// An index names something that is gone: a defect of this crate.
pub(crate) fn corrupt(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, operation, "an index names something that is not stored")
}
