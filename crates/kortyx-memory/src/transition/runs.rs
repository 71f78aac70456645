//! What every transition of a run is made of: create, change, grant, end, remove.

use std::sync::Arc;

use bytes::Bytes;
use kortyx_protocol::RunId;
use kortyx_store::{
    AnswerRecord, Claimed, Driver, InterruptStatus, Lease, NewRun, RunRecord, RunStatus, StoreError, StoreErrorKind,
    WorkflowPin,
};

use crate::{
    run::{Payload, Run},
    slab::Slot,
    state::{State, Transition, corrupt},
};

/// How a run ends.
pub(super) struct End {
    pub(super) status: RunStatus,
    pub(super) outcome: Option<Bytes>,
    /// Replaces the reason it has.
    pub(super) reason: Option<String>,
    /// What becomes of its pending questions.
    pub(super) questions: InterruptStatus,
}

impl End {
    /// Somebody ended it.
    pub(super) fn cancelled(reason: Option<String>) -> Self {
        Self { status: RunStatus::Cancelled, outcome: None, reason, questions: InterruptStatus::Cancelled }
    }

    /// Nothing is left to wait for.
    pub(super) fn expired() -> Self {
        Self { status: RunStatus::Expired, outcome: None, reason: None, questions: InterruptStatus::Expired }
    }
}

impl Transition<'_> {
    pub(super) fn find_run(&self, run_id: &RunId) -> Option<Slot> {
        self.state.run_slots.get(run_id).copied()
    }

    /// The run that the lease is good for.
    pub(super) fn leased(&self, lease: &Lease) -> Result<Slot, StoreError> {
        let Some(slot) = self.find_run(&lease.run_id) else {
            return Err(self.error(StoreErrorKind::LeaseLost, "the run is not stored"));
        };
        let run = self.run_at(slot)?;
        let message = match () {
            () if run.status.is_terminal() => "the run has ended",
            () if run.fence != lease.fence => "another lease was granted",
            () if run.status != RunStatus::Running || run.lease_until.is_none() => "the lease was given up",
            () => return Ok(slot),
        };
        Err(self.error(StoreErrorKind::LeaseLost, message))
    }

    pub(super) fn check_run_id(&self, run_id: &RunId) -> Result<(), StoreError> {
        match self.find_run(run_id) {
            Some(_) => Err(self.error(StoreErrorKind::AlreadyExists, format!("run {run_id} exists"))),
            None => Ok(()),
        }
    }

    /// Refuses a run whose id is taken, and one that follows a turn which was taken back.
    pub(super) fn check_new_run(&self, run: &NewRun) -> Result<(), StoreError> {
        self.check_run_id(&run.run_id)?;
        let Some(turn) = &run.follows else { return Ok(()) };
        let Some(session) = self.find_session(&run.session_id) else { return Ok(()) };
        let is_there = self.find_checkpoint(&turn.checkpoint_id).is_some_and(|(owner, _)| owner == session);
        let first = self.session_at(session)?.checkpoints.front();
        if !is_there && first.is_some_and(|first| first.record.turn_index <= turn.turn_index) {
            return Err(self.error(StoreErrorKind::Abandoned, "the turn that the run follows was taken back"));
        }
        Ok(())
    }

    /// Stores a run that passed [`check_new_run`](Self::check_new_run); it waits, and nobody drives it.
    pub(super) fn add_run(&mut self, new: NewRun, snapshot: Bytes) -> Result<Slot, StoreError> {
        let session = self.session_slot(&new.session_id);
        let pin = self.state.pins.acquire(new.workflow);
        let context = new.context.into_iter().map(|pair| self.state.pairs.acquire(pair)).collect();
        let run = Run {
            ord: self.next_ord(),
            id: new.run_id,
            session,
            pin,
            context,
            status: RunStatus::Suspended,
            cancel_requested: false,
            created_at: self.now,
            updated_at: self.now,
            fence: 0,
            lease_until: None,
            is_orphan: false,
            answers: 0,
            reason: None,
            payload: Payload::Snapshot(snapshot),
            response: None,
            entries: Vec::new(),
            chunks: Vec::new(),
            inbox: Vec::new(),
            open: Vec::new(),
            closed: None,
        };
        let (ord, place, run_id) = (run.ord, run.place(), run.id.clone());
        let slot = self.state.runs.insert(run);
        self.state.run_slots.insert(run_id, slot);
        self.state.index.put(place, ord, slot);
        self.state.index.active_by_session.insert((session, ord, slot));
        let owner = self.session_mut(session)?;
        owner.runs += 1;
        owner.active += 1;
        self.session_changed(session)?;
        Ok(slot)
    }

    /// Changes a run and keeps the indexes true.
    pub(super) fn change(&mut self, slot: Slot, change: impl FnOnce(&mut Run)) -> Result<(), StoreError> {
        let State { runs, index, .. } = &mut *self.state;
        let run = runs.get_mut(slot).ok_or_else(|| corrupt(self.operation))?;
        let (before, was_terminal) = (run.place(), run.status.is_terminal());
        change(run);
        let (after, ord, session) = (run.place(), run.ord, run.session);
        let ended = run.status.is_terminal() && !was_terminal;
        if before != after {
            index.take(before, ord, slot);
            index.put(after, ord, slot);
        }
        if ended {
            index.active_by_session.remove(&(session, ord, slot));
            self.session_mut(session)?.active -= 1;
        }
        self.session_changed(session)
    }

    /// Binds a run to a definition, which a handoff changes.
    pub(super) fn bind(&mut self, slot: Slot, workflow: WorkflowPin) -> Result<(), StoreError> {
        let before = self.run_at(slot)?.pin;
        if self.state.pins.get(before).is_some_and(|pin| **pin == workflow) {
            return Ok(());
        }
        let pin = self.state.pins.acquire(workflow);
        self.change(slot, |run| run.pin = pin)?;
        self.state.pins.release(before);
        Ok(())
    }

    /// Grants the run's next lease.
    pub(super) fn grant(&mut self, slot: Slot, driver: &Driver) -> Result<Lease, StoreError> {
        let (now, until) = (self.now, self.now.saturating_add(driver.ttl));
        self.change(slot, |run| {
            if run.status == RunStatus::Parked {
                run.reason = None;
            }
            run.fence += 1;
            run.status = RunStatus::Running;
            run.lease_until = Some(until);
            run.is_orphan = false;
            run.updated_at = now;
        })?;
        let run = self.run_at(slot)?;
        Ok(Lease { run_id: run.id.clone(), fence: run.fence, until })
    }

    /// Grants the run's next lease with all that its driver needs.
    pub(super) fn claim(&mut self, slot: Slot, driver: &Driver) -> Result<Claimed, StoreError> {
        let lease = self.grant(slot, driver)?;
        let run = self.run_at(slot)?;
        let snapshot = match &run.payload {
            Payload::Snapshot(snapshot) => snapshot.clone(),
            Payload::Outcome(_) => return Err(corrupt(self.operation)),
        };
        let entries = run.entries.clone();
        Ok(Claimed { lease, run: self.run_record(slot)?, snapshot, entries, answers: self.unseen(slot, 0)? })
    }

    /// Answers that the run's driver has not received, in order.
    pub(super) fn unseen(&self, slot: Slot, seen: u64) -> Result<Vec<AnswerRecord>, StoreError> {
        let run = self.run_at(slot)?;
        let mut answers = Vec::with_capacity(run.inbox.len());
        for question in &run.inbox {
            answers.extend(self.question_at(*question)?.delivery(seen));
        }
        Ok(answers)
    }

    /// Ends a run: its questions are closed, its state is dropped. Gives the questions that were open.
    pub(super) fn end(&mut self, slot: Slot, end: End) -> Result<Vec<Slot>, StoreError> {
        let now = self.now;
        let was_parked = self.run_at(slot)?.status == RunStatus::Parked;
        let questions = self.close_all(slot, end.questions)?;
        self.change(slot, |run| {
            run.status = end.status;
            run.updated_at = now;
            run.lease_until = None;
            run.payload = Payload::Outcome(end.outcome);
            run.entries = Vec::new();
            run.inbox = Vec::new();
            if end.reason.is_some() || was_parked {
                run.reason = end.reason.map(String::into_boxed_str);
            }
        })?;
        Ok(questions)
    }

    /// Removes a terminal run with its questions.
    pub(super) fn remove_run(&mut self, slot: Slot) -> Result<(), StoreError> {
        let run = self.state.runs.remove(slot).ok_or_else(|| corrupt(self.operation))?;
        self.state.index.take(run.place(), run.ord, slot);
        self.state.run_slots.remove(&run.id);
        let mut next = run.closed;
        while let Some(question) = next.and_then(|slot| self.state.questions.remove(slot)) {
            self.state.question_slots.remove(&question.request_id);
            next = question.next_closed;
        }
        self.state.pins.release(run.pin);
        for pair in run.context {
            self.state.pairs.release(pair);
        }
        self.session_mut(run.session)?.runs -= 1;
        self.forget_unused_session(run.session);
        Ok(())
    }

    /// A run without its payload.
    pub(super) fn run_record(&self, slot: Slot) -> Result<RunRecord, StoreError> {
        let run = self.run_at(slot)?;
        let pin = self.state.pins.get(run.pin).ok_or_else(|| corrupt(self.operation))?;
        let context = self.context(slot)?;
        let new = NewRun {
            run_id: run.id.clone(),
            session_id: self.session_at(run.session)?.id.clone(),
            workflow: WorkflowPin::clone(pin),
            context: Arc::unwrap_or_clone(context),
            follows: None,
        };
        let mut record = RunRecord::new(new, run.created_at);
        record.status = run.status;
        record.updated_at = run.updated_at;
        record.fence = run.fence;
        record.lease_until = run.lease_until;
        record.answers = run.answers;
        record.cancel_requested = run.cancel_requested;
        record.reason = run.reason.as_deref().map(str::to_owned);
        if let Payload::Outcome(outcome) = &run.payload {
            record.outcome.clone_from(outcome);
        }
        Ok(record)
    }
}
