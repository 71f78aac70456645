//! What transitions decide over: the rows that they asked for, as they change, and what has to be written.
//!
//! All transitions of a commit share one [`Batch`]. Their rows are read together, or known from the last commits; they
//! decide one after another in memory (each sees what those before it did) and are written together. A transition checks
//! everything before its first change, so that one which fails leaves nothing behind.

mod checkpoint;
mod flush;
mod known;
mod load;
mod question;
mod run;

use std::collections::{BTreeMap, HashMap, HashSet};

use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{InterruptRecord, Lease, Signal, StoreError, StoreErrorKind};

pub(crate) use self::{
    checkpoint::Origin,
    flush::Texts,
    known::{Known, Leftover},
    load::Wants,
    question::{Closing, is_due},
    run::{Run, Seed},
};
use crate::{client::Value, row::Malformed};

/// A statement to run, and its values.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) sql: &'static str,
    pub(crate) values: Vec<Value>,
}

/// The text of a statement that writes.
macro_rules! write_sql {
    ($name:literal) => {
        include_str!(concat!("../queries/write/", $name, ".sql"))
    };
}
pub(crate) use write_sql;

/// A question, as it is and as it becomes.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) run: i64,
    pub(crate) record: InterruptRecord,
}

/// A session that gets checkpoints.
#[derive(Debug)]
struct Session {
    head: Option<Head>,
    checkpoints: u64,
    writes: Vec<Write>,
}

#[derive(Debug, Clone)]
struct Head {
    key: i64,
    id: CheckpointId,
    turn: u64,
}

/// The highest keys in use.
#[derive(Debug, Default)]
struct Last {
    run: i64,
    question: i64,
    session: i64,
    checkpoint: i64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Batch {
    /// The store's time for all of them.
    pub(crate) now: Timestamp,
    /// What the current transition is called in errors.
    pub(crate) operation: &'static str,
    /// Whether several transitions decide over it.
    pub(crate) is_shared: bool,
    /// Whether the current transition cannot decide here, but could alone.
    pub(crate) is_undecided: bool,
    /// The data version that its transaction began with.
    pub(crate) version: i64,
    /// What to tell once it is committed.
    pub(crate) signals: Vec<Signal>,
    runs: BTreeMap<i64, Run>,
    run_keys: HashMap<RunId, i64>,
    questions: HashMap<i64, Question>,
    question_keys: HashMap<RequestId, i64>,
    sessions: BTreeMap<i64, Session>,
    session_keys: HashMap<SessionId, i64>,
    /// Ids that are taken, of those that transitions bring.
    taken_runs: HashSet<String>,
    taken_requests: HashSet<String>,
    taken_checkpoints: HashSet<String>,
    /// Checkpoints that new runs follow and that were taken back.
    abandoned_checkpoints: HashSet<String>,
    /// Why runs and questions cannot be used, by their ids.
    malformed_runs: HashMap<String, Malformed>,
    malformed_questions: HashMap<String, Malformed>,
    last: Last,
    /// Whether the keys of runs and questions were read.
    has_keys: bool,
}

impl Batch {
    pub(crate) fn new(now: Timestamp, operation: &'static str) -> Self {
        Self {
            now,
            operation,
            is_shared: false,
            is_undecided: false,
            version: 0,
            signals: Vec::new(),
            runs: BTreeMap::new(),
            run_keys: HashMap::new(),
            questions: HashMap::new(),
            question_keys: HashMap::new(),
            sessions: BTreeMap::new(),
            session_keys: HashMap::new(),
            taken_runs: HashSet::new(),
            taken_requests: HashSet::new(),
            taken_checkpoints: HashSet::new(),
            abandoned_checkpoints: HashSet::new(),
            malformed_runs: HashMap::new(),
            malformed_questions: HashMap::new(),
            last: Last::default(),
            has_keys: false,
        }
    }

    pub(crate) fn error(&self, kind: StoreErrorKind, message: impl Into<String>) -> StoreError {
        StoreError::new(kind, self.operation, message)
    }

    /// The current transition needs rows that were not read, because of what others did before it: it is to decide again,
    /// alone. It must not have changed anything.
    pub(crate) fn undecided(&mut self) -> StoreError {
        self.is_undecided = true;
        self.error(StoreErrorKind::Unavailable, "the run was changed at the same moment")
    }

    pub(crate) fn invalid(&self, message: &'static str) -> StoreError {
        self.error(StoreErrorKind::InvalidRequest, message)
    }

    pub(crate) fn corrupt(&self, message: &'static str) -> StoreError {
        Malformed(message.to_owned()).told(self.operation)
    }

    /// The key of a run; an error when its rows do not read back.
    pub(crate) fn find_run(&self, run_id: &RunId) -> Result<Option<i64>, StoreError> {
        if let Some(malformed) = self.malformed_runs.get(run_id.as_str()) {
            return Err(malformed.told(self.operation));
        }
        Ok(self.run_keys.get(run_id).copied())
    }

    pub(crate) fn run(&self, key: i64) -> Result<&Run, StoreError> {
        self.runs.get(&key).ok_or_else(|| self.corrupt("a question's run is missing"))
    }

    pub(crate) fn run_mut(&mut self, key: i64) -> Result<&mut Run, StoreError> {
        let operation = self.operation;
        let missing = || Malformed("a question's run is missing".to_owned()).told(operation);
        self.runs.get_mut(&key).ok_or_else(missing)
    }

    /// A loaded run; an error when its rows do not read back.
    pub(crate) fn sound_run(&self, key: i64) -> Result<&Run, StoreError> {
        let run = self.run(key)?;
        self.find_run(&run.record.run_id)?;
        Ok(run)
    }

    /// The key of the run that this lease is for; refuses a lease that is not, or no longer, the run's.
    pub(crate) fn held(&self, lease: &Lease) -> Result<i64, StoreError> {
        let lost = |message| self.error(StoreErrorKind::LeaseLost, message);
        let key = self.find_run(&lease.run_id)?.ok_or_else(|| lost("no such run"))?;
        let run = &self.run(key)?.record;
        if run.status.is_terminal() {
            return Err(lost("the run has ended"));
        }
        if run.fence != lease.fence {
            return Err(lost("another lease was granted since"));
        }
        if run.lease_until.is_none() {
            return Err(lost("the lease was given up"));
        }
        Ok(key)
    }

    /// The key of a question; an error when its rows do not read back.
    pub(crate) fn find_question(&self, id: &RequestId) -> Result<Option<i64>, StoreError> {
        if let Some(malformed) = self.malformed_questions.get(id.as_str()) {
            return Err(malformed.told(self.operation));
        }
        let Some(key) = self.question_keys.get(id).copied() else { return Ok(None) };
        let run_id = &self.run(self.question(key)?.run)?.record.run_id;
        self.find_run(run_id).map(|_| Some(key))
    }

    pub(crate) fn question(&self, key: i64) -> Result<&Question, StoreError> {
        self.questions.get(&key).ok_or_else(|| self.corrupt("a question is missing"))
    }

    /// Keeps the reason why the rows of a run cannot be used.
    fn reject_run(&mut self, id: &str, malformed: Malformed) {
        self.malformed_runs.entry(id.to_owned()).or_insert(malformed);
    }

    /// Keeps the reason why the row of a question cannot be used.
    fn reject_question(&mut self, id: &str, malformed: Malformed) {
        self.malformed_questions.entry(id.to_owned()).or_insert(malformed);
    }
}
