//! Session checkpoints: the states of a conversation after each turn.

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};

use crate::{InterruptRecord, Reissue, TurnRef};

/// A checkpoint to append. The store gives it its turn index and its parent, the session's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCheckpoint {
    /// Its id, minted by the caller.
    pub id: CheckpointId,
    /// A name for people, such as `session start`.
    pub label: Option<String>,
    /// The nodes that the turn visited, in order.
    pub nodes: Vec<String>,
    /// The workflow in force after the turn.
    pub workflow: String,
    /// That workflow's version.
    pub workflow_version: Option<String>,
    /// The session's state after the turn, opaque.
    pub state: Bytes,
    /// Structured streams that the turn opened; a rollback before it invalidates them.
    pub structured_stream_ids: Vec<String>,
}

/// A stored checkpoint.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CheckpointRecord {
    /// What was appended.
    pub checkpoint: NewCheckpoint,
    /// Its session.
    pub session_id: SessionId,
    /// Its place in the session, from 0, unique among checkpoints that are not abandoned.
    pub turn_index: u64,
    /// When it was appended.
    pub created_at: Timestamp,
    /// The checkpoint before it.
    pub parent: Option<CheckpointId>,
    /// Of a fork: the session it was forked from.
    pub parent_session: Option<SessionId>,
    /// Of a fork: the checkpoint it was forked from.
    pub forked_from: Option<CheckpointId>,
    /// The run whose turn it closes.
    pub run_id: Option<RunId>,
    /// That run's snapshot, when the turn ended with open questions, else `None`.
    pub snapshot: Option<Bytes>,
    /// Questions open at its end, as they were then (status `Pending`), oldest first.
    pub interrupts: Vec<InterruptRecord>,
    /// A rollback went behind it: it is neither listed nor reachable.
    pub abandoned: bool,
}

impl CheckpointRecord {
    /// A record with everything but its content at its default. For adapters.
    pub fn new(checkpoint: NewCheckpoint, session_id: SessionId, turn_index: u64, created_at: Timestamp) -> Self {
        Self {
            checkpoint,
            session_id,
            turn_index,
            created_at,
            parent: None,
            parent_session: None,
            forked_from: None,
            run_id: None,
            snapshot: None,
            interrupts: Vec::new(),
            abandoned: false,
        }
    }

    /// The turn that it closes, for the run of the next one.
    pub fn turn(&self) -> TurnRef {
        TurnRef { checkpoint_id: self.checkpoint.id.clone(), turn_index: self.turn_index }
    }
}

/// Takes a session back to a checkpoint.
#[derive(Debug, Clone)]
pub struct Rollback {
    /// The checkpoint that becomes the head.
    pub checkpoint_id: CheckpointId,
    /// The run that takes over the checkpoint's open questions; used only when it has some.
    pub new_run_id: RunId,
    /// New ids for exactly the questions open at the checkpoint ([`CheckpointRecord::interrupts`]).
    pub reissue: Vec<Reissue>,
}

/// What a rollback did.
#[derive(Debug, Clone)]
pub enum RollbackOutcome {
    /// The checkpoint is the head.
    Done {
        /// The head.
        head: Box<CheckpointRecord>,
        /// Checkpoints that are abandoned now, newest first.
        abandoned: Vec<CheckpointRecord>,
        /// Questions that were pending and are superseded now.
        superseded: Vec<InterruptRecord>,
        /// Questions open now.
        interrupts: Vec<InterruptRecord>,
    },
    /// No such checkpoint, or it is abandoned.
    Unknown,
    /// A run of the session is being driven; nothing changed.
    Driven(RunId),
    /// This question's deadline is past; nothing changed.
    Expired(RequestId),
    /// `reissue` does not name exactly the checkpoint's open questions; nothing changed.
    Mismatched,
}

/// Makes a new session from a checkpoint of another.
#[derive(Debug, Clone)]
pub struct Fork {
    /// The checkpoint to start from.
    pub checkpoint_id: CheckpointId,
    /// The new session; it must not exist.
    pub new_session_id: SessionId,
    /// The id of the new session's first checkpoint.
    pub new_checkpoint_id: CheckpointId,
    /// The run that gets a copy of the checkpoint's snapshot; used only when it has open questions.
    pub new_run_id: RunId,
    /// New ids for exactly the questions open at the checkpoint.
    pub reissue: Vec<Reissue>,
}

/// What a fork did.
#[derive(Debug, Clone)]
pub enum ForkOutcome {
    /// The new session exists.
    Done {
        /// Its only checkpoint.
        checkpoint: Box<CheckpointRecord>,
        /// Its open questions, with deadlines as in the original.
        interrupts: Vec<InterruptRecord>,
    },
    /// No such checkpoint, or it is abandoned.
    Unknown,
    /// The new session exists already; nothing changed.
    SessionExists,
    /// This question's deadline is past; nothing changed.
    Expired(RequestId),
    /// `reissue` does not name exactly the checkpoint's open questions; nothing changed.
    Mismatched,
}
