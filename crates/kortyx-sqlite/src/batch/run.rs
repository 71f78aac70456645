//! Runs: created, leased, ended.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use bytes::Bytes;
use kortyx_protocol::{RunId, Timestamp};
use kortyx_store::{
    AnswerRecord, Claimed, Driver, InterruptStatus, Lease, NewResponse, NewRun, RunRecord, RunStatus, Scalar,
    StoreError, StoreErrorKind, WorkflowPin,
};

use super::{Batch, Write, write_sql};
use crate::client::values;

/// What of a run's row has to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    Nothing,
    Lease,
    Everything,
    New,
}

/// A run with what was loaded of it.
#[expect(clippy::struct_excessive_bools, reason = "flags of what is loaded and stored, each on its own")]
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) record: RunRecord,
    pub(crate) context: Arc<BTreeMap<String, Scalar>>,
    /// Answers up to this one are in the snapshot.
    pub(crate) absorbed: u64,
    /// Its pending questions, oldest first; complete where a transition asked for them.
    pub(crate) pending: Vec<i64>,
    /// Accepted answers; complete above what a transition said it has seen.
    pub(super) answers: BTreeMap<u64, AnswerRecord>,
    /// Of a whole run, the answers above this place are here.
    pub(super) answers_from: u64,
    /// Whether everything of the run is here that a transition may want.
    pub(super) is_whole: bool,
    pub(super) snapshot: Option<Bytes>,
    pub(super) entries: Vec<Bytes>,
    /// Whether pending questions, or entries, are stored; they are loaded where a transition asks for them.
    pub(super) has_pending: bool,
    pub(super) has_entries: bool,
    /// Whether its response is complete.
    pub(super) has_response: bool,
    pub(super) driver: Option<String>,
    pub(super) change: Change,
    pub(super) writes: Vec<Write>,
}

/// How a new run starts.
pub(crate) struct Seed<'a> {
    pub(crate) run: &'a NewRun,
    pub(crate) workflow: &'a WorkflowPin,
    pub(crate) status: RunStatus,
    pub(crate) snapshot: Option<&'a Bytes>,
    /// How many answers the snapshot holds.
    pub(crate) answers: u64,
}

impl Run {
    pub(super) fn stored(record: RunRecord, driver: Option<String>, absorbed: u64) -> Self {
        Self {
            context: Arc::new(record.context.clone()),
            record,
            absorbed,
            pending: Vec::new(),
            answers: BTreeMap::new(),
            answers_from: absorbed,
            is_whole: false,
            snapshot: None,
            entries: Vec::new(),
            has_pending: false,
            has_entries: false,
            has_response: false,
            driver,
            change: Change::Nothing,
            writes: Vec::new(),
        }
    }

    /// Whether somebody holds a live lease.
    pub(crate) fn is_driven(&self, now: Timestamp) -> bool {
        self.record.status == RunStatus::Running && self.record.lease_until.is_some_and(|until| until > now)
    }

    /// Whether an accepted answer waits for a driver.
    pub(crate) fn has_undelivered(&self) -> bool {
        self.record.answers > self.absorbed
    }

    /// The size of its payloads.
    pub(super) fn size(&self) -> usize {
        let snapshot = self.snapshot.as_ref().map_or(0, Bytes::len);
        let entries: usize = self.entries.iter().map(Bytes::len).sum();
        let answers: usize = self.answers.values().map(|answer| answer.answer.len()).sum();
        snapshot + entries + answers
    }

    /// Whether its payload was loaded, so that a driver can be given it.
    pub(crate) fn has_payload(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Answers above this place, in order.
    pub(crate) fn answers_above(&self, seen: u64) -> Vec<AnswerRecord> {
        self.answers.range(seen.saturating_add(1)..).map(|(_, answer)| answer.clone()).collect()
    }

    /// The run's row has to be written.
    pub(crate) fn changed(&mut self, now: Timestamp) {
        self.record.updated_at = now;
        self.change = self.change.max(Change::Everything);
    }

    /// Extends the lease.
    pub(crate) fn renew(&mut self, until: Timestamp) {
        self.record.lease_until = Some(until);
        self.change = self.change.max(Change::Lease);
    }

    /// Gives up the lease.
    pub(crate) fn leave(&mut self) {
        self.record.lease_until = None;
        self.driver = None;
    }

    pub(crate) fn bind(&mut self, workflow: &WorkflowPin) {
        if self.record.workflow != *workflow {
            self.record.workflow.clone_from(workflow);
        }
    }

    /// Replaces the snapshot; what was recorded since the last one, and the answers so far, are in it.
    pub(crate) fn save(&mut self, key: i64, snapshot: &Bytes) {
        self.absorbed = self.record.answers;
        self.snapshot = Some(snapshot.clone());
        self.writes.push(Write { sql: write_sql!("put_snapshot"), values: values![key, snapshot] });
        if std::mem::take(&mut self.has_entries) {
            self.writes.push(Write { sql: write_sql!("drop_entries"), values: values![key] });
        }
        self.entries.clear();
    }

    /// Appends a journal entry.
    pub(crate) fn add_entry(&mut self, key: i64, entry: &Bytes) {
        self.entries.push(entry.clone());
        self.has_entries = true;
        self.writes.push(Write { sql: write_sql!("add_entry"), values: values![key, entry] });
    }

    /// Appends chunks to what the run said.
    pub(crate) fn say(&mut self, key: i64, chunks: &[Bytes]) {
        let write = |chunk| Write { sql: write_sql!("add_chunk"), values: values![key, key, chunk] };
        self.writes.extend(chunks.iter().map(write));
    }
}

impl Batch {
    /// Refuses a response of a run that has completed one, and one whose checkpoint's id is taken.
    pub(crate) fn check_response(&self, key: i64, response: Option<&NewResponse>) -> Result<(), StoreError> {
        let Some(response) = response else { return Ok(()) };
        if self.run(key)?.has_response {
            return Err(self.invalid("the run's response is complete"));
        }
        self.check_checkpoint(response.checkpoint.as_ref().map(|checkpoint| &checkpoint.id))
    }

    /// Completes the response of a run, which goes on beside its session: the checkpoint has none of its questions.
    pub(crate) fn respond(&mut self, key: i64, response: Option<&NewResponse>) -> Result<(), StoreError> {
        let Some(response) = response else { return Ok(()) };
        let run = self.run_mut(key)?;
        run.has_response = true;
        run.writes.push(Write { sql: write_sql!("add_response"), values: values![key, &response.outcome] });
        self.append_turn(key, response.checkpoint.as_ref(), Vec::new())
    }

    /// Refuses a run whose id is taken, and one that follows a turn which was taken back.
    pub(crate) fn check_new_run(&self, new: &NewRun) -> Result<(), StoreError> {
        self.check_run_id(&new.run_id)?;
        match &new.follows {
            Some(turn) if self.abandoned_checkpoints.contains(turn.checkpoint_id.as_str()) => {
                Err(self.error(StoreErrorKind::Abandoned, "the turn that the run follows was taken back"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a run id that is taken.
    pub(crate) fn check_run_id(&self, run_id: &RunId) -> Result<(), StoreError> {
        if self.taken_runs.contains(run_id.as_str()) || self.run_keys.contains_key(run_id) {
            return Err(self.error(StoreErrorKind::AlreadyExists, format!("run {run_id} exists")));
        }
        Ok(())
    }

    /// Stores a new run, without a lease.
    pub(crate) fn add_run(&mut self, seed: &Seed<'_>) -> Result<i64, StoreError> {
        self.last.run += 1;
        let key = self.last.run;
        let mut record = RunRecord::new(seed.run.clone(), self.now);
        record.workflow.clone_from(seed.workflow);
        record.status = seed.status;
        record.answers = seed.answers;
        self.run_keys.insert(record.run_id.clone(), key);
        let mut run = Run::stored(record, None, seed.answers);
        run.change = Change::New;
        run.is_whole = true;
        if let Some(snapshot) = seed.snapshot {
            run.save(key, snapshot);
        }
        match self.runs.entry(key) {
            Entry::Vacant(place) => place.insert(run),
            Entry::Occupied(_) => return Err(self.corrupt("the key of a new run is in use")),
        };
        Ok(key)
    }

    /// Grants the lease to this driver.
    pub(crate) fn lease(&mut self, key: i64, driver: &Driver) -> Result<Lease, StoreError> {
        let now = self.now;
        let run = self.run_mut(key)?;
        let until = now.saturating_add(driver.ttl);
        if run.record.status == RunStatus::Parked {
            run.record.reason = None;
        }
        run.record.status = RunStatus::Running;
        run.record.fence += 1;
        run.record.lease_until = Some(until);
        run.driver = Some(driver.id.clone());
        run.changed(now);
        Ok(Lease { run_id: run.record.run_id.clone(), fence: run.record.fence, until })
    }

    /// Grants the lease and hands out what its driver needs. The payload must have been loaded.
    pub(crate) fn grant(&mut self, key: i64, driver: &Driver) -> Result<Claimed, StoreError> {
        let snapshot = self.run(key)?.snapshot.clone().ok_or_else(|| self.corrupt("a run has no snapshot"))?;
        let lease = self.lease(key, driver)?;
        let run = self.run(key)?;
        Ok(Claimed {
            lease,
            run: run.record.clone(),
            snapshot,
            entries: run.entries.clone(),
            answers: run.answers_above(run.absorbed),
        })
    }

    /// Makes a run that nobody drives one that should be driven.
    pub(crate) fn wake(&mut self, key: i64) -> Result<(), StoreError> {
        let now = self.now;
        let run = self.run_mut(key)?;
        if run.record.status == RunStatus::Parked {
            run.record.reason = None;
        }
        run.record.status = RunStatus::Running;
        run.changed(now);
        Ok(())
    }

    /// Ends a run: the lease is given up, pending questions are closed, snapshot and entries go.
    pub(crate) fn end(&mut self, key: i64, status: RunStatus, questions: InterruptStatus) -> Result<(), StoreError> {
        for question in self.run(key)?.pending.clone() {
            self.close(question, questions, None)?;
        }
        let now = self.now;
        let run = self.run_mut(key)?;
        run.record.status = status;
        run.leave();
        // What is stored goes by itself; what is not must not be.
        run.writes.retain(|write| ![write_sql!("put_snapshot"), write_sql!("add_entry")].contains(&write.sql));
        run.snapshot = None;
        run.entries.clear();
        run.changed(now);
        Ok(())
    }

    /// Ends a run that was asked to stop.
    pub(crate) fn end_cancelled(&mut self, key: i64, reason: Option<&str>) -> Result<(), StoreError> {
        if let Some(reason) = reason {
            self.run_mut(key)?.record.reason = Some(reason.to_owned());
        }
        self.end(key, RunStatus::Cancelled, InterruptStatus::Cancelled)
    }
}
