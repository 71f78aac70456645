//! Runs, their leases and what a driver receives when it is granted one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RunId, SessionId, Timestamp};

use crate::{AnswerRecord, Scalar};

/// The exact definition that a run is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkflowPin {
    /// The workflow's id.
    pub id: Arc<str>,
    /// The workflow's version, as its author declared it.
    pub version: Arc<str>,
    /// Lower-case hex of the definition's fingerprint (nodes, edges, conditions).
    pub fingerprint: Arc<str>,
}

/// Where a run stands. No terminal status ever changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunStatus {
    /// A driver holds the lease, or should: a running run without a live lease is an orphan.
    Running,
    /// It waits for people; no one drives it.
    Suspended,
    /// Terminal: it ended well.
    Completed,
    /// Terminal: it ended with a failure.
    Failed,
    /// Terminal: somebody ended it.
    Cancelled,
    /// Terminal: a question's time ran out and nothing else was open.
    Expired,
    /// It cannot go on with the code at hand; its answers are kept until matching code is deployed.
    Parked,
}

impl RunStatus {
    /// Whether the status can never change again.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Expired)
    }

    /// The stable lower-case name, as stored and as sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Parked => "parked",
        }
    }

    /// The status with this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Running, Self::Suspended, Self::Completed, Self::Failed, Self::Cancelled, Self::Expired, Self::Parked]
            .into_iter()
            .find(|status| status.as_str() == name)
    }
}

/// The terminal statuses that a driver may give a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TerminalStatus {
    /// It ended well.
    Completed,
    /// It ended with a failure.
    Failed,
    /// It was asked to stop and did.
    Cancelled,
}

impl From<TerminalStatus> for RunStatus {
    fn from(status: TerminalStatus) -> Self {
        match status {
            TerminalStatus::Completed => Self::Completed,
            TerminalStatus::Failed => Self::Failed,
            TerminalStatus::Cancelled => Self::Cancelled,
        }
    }
}

/// Who asks for a lease, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// Names the process and task, for operators; it grants no right.
    pub id: String,
    /// How long the lease lasts without [`Store::renew`](crate::Store::renew), on the store's clock.
    pub ttl: Duration,
}

/// The exclusive right to drive a run until a time, proved by its fence.
///
/// The fence grows with every grant; a write that carries an older one is refused with
/// [`StoreErrorKind::LeaseLost`](crate::StoreErrorKind::LeaseLost).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run it is for.
    pub run_id: RunId,
    /// The grant's number, from 1.
    pub fence: u64,
    /// When it runs out, on the store's clock.
    pub until: Timestamp,
}

/// A run that storage does not hold yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id, minted by the caller.
    pub run_id: RunId,
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// The definition that it is bound to.
    pub workflow: WorkflowPin,
    /// Values that listing can ask for by exact equality.
    pub context: BTreeMap<String, Scalar>,
    /// The turn whose state the run began with: the transition that creates the run is refused with
    /// [`Abandoned`](crate::StoreErrorKind::Abandoned) when a rollback took that turn back. It is not kept.
    pub follows: Option<TurnRef>,
}

/// A turn of a session, as its checkpoint tells.
///
/// A rollback took it back when its session has a checkpoint of this turn or an earlier one, and not this one. A turn that
/// retention removed is not taken back: the oldest go first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRef {
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// Its place in the session.
    pub turn_index: u64,
}

/// The run that a transition writes: a new one, or one whose lease the caller holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRef {
    /// Not stored yet: the transition creates it and, where the run goes on, grants the lease to this driver.
    New(NewRun, Driver),
    /// Held under this lease.
    Held(Lease),
}

/// A stored run without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunRecord {
    /// Its id.
    pub run_id: RunId,
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// The definition that it is bound to (after a handoff: the target's).
    pub workflow: WorkflowPin,
    /// Values that listing can ask for.
    pub context: BTreeMap<String, Scalar>,
    /// Where it stands.
    pub status: RunStatus,
    /// When it became durable.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The number of the last lease granted, 0 before the first.
    pub fence: u64,
    /// When the current lease runs out; `None` when nobody drives it.
    pub lease_until: Option<Timestamp>,
    /// How many answers it has been given (defaults of expired questions included). A run that a rollback or a fork
    /// made counts on from the answers that its snapshot holds.
    pub answers: u64,
    /// Somebody asked its driver to stop.
    pub cancel_requested: bool,
    /// The outcome of a terminal run, as [`Finish::outcome`](crate::Finish) gave it.
    pub outcome: Option<Bytes>,
    /// What its response ended with, as [`NewResponse::outcome`](crate::NewResponse) gave it. Only [`Store::run`](crate::Store::run)
    /// reads it: runs that transitions hand out are without it.
    pub response: Option<Bytes>,
    /// Why it was cancelled or parked.
    pub reason: Option<String>,
}

impl RunRecord {
    /// A record as a new run starts: running, unleased, without answers. For adapters.
    pub fn new(run: NewRun, now: Timestamp) -> Self {
        Self {
            run_id: run.run_id,
            session_id: run.session_id,
            workflow: run.workflow,
            context: run.context,
            status: RunStatus::Running,
            created_at: now,
            updated_at: now,
            fence: 0,
            lease_until: None,
            answers: 0,
            cancel_requested: false,
            outcome: None,
            response: None,
            reason: None,
        }
    }
}

/// A run handed to a driver: the lease, the last snapshot, what was recorded after it, and the answers to apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The right to drive it.
    pub lease: Lease,
    /// The run.
    pub run: RunRecord,
    /// The snapshot of the last suspension, or the one the run was opened with.
    pub snapshot: Bytes,
    /// Entries recorded since that snapshot, oldest first.
    pub entries: Vec<Bytes>,
    /// Answers that no snapshot holds yet, in the order of their acceptance ([`AnswerRecord::seq`]).
    pub answers: Vec<AnswerRecord>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_one_name_and_a_name_one_status() {
        for name in ["running", "suspended", "completed", "failed", "cancelled", "expired", "parked"] {
            assert_eq!(RunStatus::parse(name).map(RunStatus::as_str), Some(name));
        }
        for name in ["", "Running", "running ", "done"] {
            assert_eq!(RunStatus::parse(name), None);
        }
    }

    #[test]
    fn what_a_driver_may_end_a_run_with_is_terminal() {
        for status in [TerminalStatus::Completed, TerminalStatus::Failed, TerminalStatus::Cancelled] {
            assert!(RunStatus::from(status).is_terminal());
        }
        for status in [RunStatus::Running, RunStatus::Suspended, RunStatus::Parked] {
            assert!(!status.is_terminal());
        }
        assert!(RunStatus::Expired.is_terminal());
    }
}
