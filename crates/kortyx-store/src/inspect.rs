//! What an operator's inspector reads: runs and sessions, whoever they belong to, how many there are, and all that is kept of a run.

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, SessionId, Timestamp};

use crate::{InterruptRecord, RunRecord, RunStatus};

/// A page of runs to read, whoever they belong to: for operators, never for those who chat.
///
/// ```
/// use kortyx_store::{RunQuery, RunStatus};
///
/// let parked = RunQuery { statuses: vec![RunStatus::Parked], limit: 50, ..RunQuery::default() };
/// assert!(parked.session_id.is_none() && parked.workflow.is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunQuery {
    /// Only runs with one of these statuses; all when empty.
    pub statuses: Vec<RunStatus>,
    /// Only runs of this session.
    pub session_id: Option<SessionId>,
    /// Only runs that are bound to a workflow with this id, whatever its version.
    pub workflow: Option<String>,
    /// At most this many; stores clamp it to 1..=200.
    pub limit: u32,
    /// Where the page starts, from [`RunPage::next`].
    pub cursor: Option<String>,
}

impl RunQuery {
    /// Whether it asks for this run. For adapters.
    pub fn matches(&self, run: &RunRecord) -> bool {
        (self.statuses.is_empty() || self.statuses.contains(&run.status))
            && self.session_id.as_ref().is_none_or(|session_id| *session_id == run.session_id)
            && self.workflow.as_ref().is_none_or(|workflow| **workflow == *run.workflow.id)
    }
}

/// A page of runs.
#[derive(Debug, Clone, Default)]
pub struct RunPage {
    /// Runs, without their [`outcome`](RunRecord::outcome) and [`response`](RunRecord::response), whether they have them or not.
    pub runs: Vec<RunRecord>,
    /// The cursor of the next page, when there may be one. A page may be short, or empty, and the listing go on.
    pub next: Option<String>,
}

/// All that is kept of a run but what it said, as it was at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunHistory {
    /// The run, with its outcome and with what its response ended with.
    pub run: RunRecord,
    /// Its last snapshot; `None` when it is terminal.
    pub snapshot: Option<Bytes>,
    /// Entries recorded since that snapshot, oldest first; none when it is terminal.
    pub entries: Vec<Bytes>,
    /// Its questions, in the order in which they were published, each as [`Store::interrupt`](crate::Store::interrupt) reads it.
    pub questions: Vec<InterruptRecord>,
}

impl RunHistory {
    /// A history of a run without a snapshot, entries and questions. For adapters.
    pub fn new(run: RunRecord) -> Self {
        Self { run, snapshot: None, entries: Vec::new(), questions: Vec::new() }
    }
}

/// A page of sessions to read, whoever they belong to: for operators.
#[derive(Debug, Clone, Default)]
pub struct SessionQuery {
    /// At most this many; stores clamp it to 1..=200.
    pub limit: u32,
    /// Where the page starts, from [`SessionPage::next`].
    pub cursor: Option<String>,
}

/// A page of sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionPage {
    /// Sessions.
    pub sessions: Vec<SessionRecord>,
    /// The cursor of the next page, when there may be one.
    pub next: Option<String>,
}

/// A session with checkpoints, at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id.
    pub session_id: SessionId,
    /// Its newest checkpoint that is not abandoned.
    pub head: CheckpointId,
    /// That checkpoint's place in the session, from 0.
    pub turn_index: u64,
    /// When that checkpoint was appended.
    pub head_at: Timestamp,
    /// How many of its runs are not terminal.
    pub active_runs: u64,
}

/// How much a store holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// Runs.
    pub runs: RunCounts,
    /// Questions that are pending and in time.
    pub open_questions: u64,
    /// Sessions with checkpoints.
    pub sessions: u64,
    /// Checkpoints that are not abandoned.
    pub checkpoints: u64,
}

/// How many runs there are of each status.
///
/// ```
/// use kortyx_store::{RunCounts, RunStatus};
///
/// let mut counts = RunCounts::default();
/// counts.add(RunStatus::Parked, 2);
/// assert_eq!((counts.of(RunStatus::Parked), counts.of(RunStatus::Running), counts.total()), (2, 0, 2));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunCounts {
    /// Driven, or to be.
    pub running: u64,
    /// Waiting for people.
    pub suspended: u64,
    /// Ended well.
    pub completed: u64,
    /// Ended with a failure.
    pub failed: u64,
    /// Ended by somebody.
    pub cancelled: u64,
    /// Ended by time.
    pub expired: u64,
    /// Set aside.
    pub parked: u64,
}

impl RunCounts {
    /// How many runs have this status.
    pub fn of(mut self, status: RunStatus) -> u64 {
        *self.place(status)
    }

    /// How many runs there are.
    pub fn total(self) -> u64 {
        let Self { running, suspended, completed, failed, cancelled, expired, parked } = self;
        running + suspended + completed + failed + cancelled + expired + parked
    }

    /// Counts so many more. For adapters.
    pub fn add(&mut self, status: RunStatus, number: u64) {
        *self.place(status) += number;
    }

    fn place(&mut self, status: RunStatus) -> &mut u64 {
        match status {
            RunStatus::Running => &mut self.running,
            RunStatus::Suspended => &mut self.suspended,
            RunStatus::Completed => &mut self.completed,
            RunStatus::Failed => &mut self.failed,
            RunStatus::Cancelled => &mut self.cancelled,
            RunStatus::Expired => &mut self.expired,
            RunStatus::Parked => &mut self.parked,
        }
    }
}
