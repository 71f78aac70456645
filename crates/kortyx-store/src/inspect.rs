//! What an operator's inspector reads: runs, whoever they belong to, and all that is kept of one.

use bytes::Bytes;
use kortyx_protocol::SessionId;

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
