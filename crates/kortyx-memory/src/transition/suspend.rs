//! The end of a driver's turn: suspend, finish.

use bytes::Bytes;
use kortyx_store::{
    Finish, Finished, InterruptStatus, NewRun, RunRef, RunStatus, StoreError, Suspend, Suspended, TerminalStatus,
    WorkflowPin,
};

use super::runs::End;
use crate::{run::Payload, slab::Slot, state::Transition};

impl Transition<'_> {
    pub(crate) fn suspend(&mut self, request: Suspend) -> Result<Suspended, StoreError> {
        self.check_size("a snapshot", &request.snapshot)?;
        self.check_checkpoint(request.checkpoint.as_ref())?;
        let lease = match &request.run {
            RunRef::New(new, _) => {
                self.check_new_run(&new.run_id)?;
                self.check_publish(None, &request.publish, &[])?;
                if request.publish.is_empty() {
                    return Err(self.invalid("a new run that asks nothing cannot wait"));
                }
                let slot = self.add_bound_run(new.clone(), request.workflow.clone())?;
                return self.save(slot, request);
            }
            RunRef::Held(lease) => lease,
        };
        let slot = self.leased(lease)?;
        self.check_publish(Some(slot), &request.publish, &request.withdraw)?;
        if self.run_at(slot)?.cancel_requested {
            self.end(slot, End::cancelled(None))?;
            return Ok(Suspended::Cancelled);
        }
        let answers = self.unseen(slot, request.answers_seen)?;
        if !answers.is_empty() {
            return Ok(Suspended::Answered(answers));
        }
        self.save(slot, request)
    }

    /// Stores the suspension of a run without answers that its snapshot lacks.
    fn save(&mut self, slot: Slot, request: Suspend) -> Result<Suspended, StoreError> {
        self.bind(slot, request.workflow)?;
        self.withdraw(slot, &request.withdraw)?;
        for new in request.publish {
            self.publish(slot, new)?;
        }
        if !self.is_waiting(slot)? {
            self.end(slot, End::expired())?;
            return Ok(Suspended::Expired);
        }
        let now = self.now;
        self.change(slot, |run| {
            run.status = RunStatus::Suspended;
            run.updated_at = now;
            run.lease_until = None;
            run.payload = Payload::Snapshot(request.snapshot);
            run.entries = Vec::new();
            run.inbox = Vec::new();
        })?;
        let open = self.open_questions(slot)?;
        if let Some(checkpoint) = request.checkpoint {
            self.append_turn(slot, checkpoint, open.clone())?;
        }
        Ok(Suspended::Saved(open))
    }

    /// Whether a question of the run may still bring an answer: in time, or by its default.
    fn is_waiting(&self, slot: Slot) -> Result<bool, StoreError> {
        for question in &self.run_at(slot)?.open {
            let question = self.question_at(*question)?;
            if question.default.is_some() || !question.is_due(self.now) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) fn finish(&mut self, request: Finish) -> Result<Finished, StoreError> {
        self.check_size("an outcome", &request.outcome)?;
        self.check_checkpoint(request.checkpoint.as_ref())?;
        let slot = match request.run {
            RunRef::New(new, _) => {
                self.check_new_run(&new.run_id)?;
                self.add_bound_run(new, request.workflow.clone())?
            }
            RunRef::Held(lease) => {
                let slot = self.leased(&lease)?;
                let answers = self.unseen(slot, request.answers_seen)?;
                if !answers.is_empty() {
                    return Ok(Finished::Answered(answers));
                }
                slot
            }
        };
        self.bind(slot, request.workflow)?;
        let questions = match request.status {
            TerminalStatus::Cancelled => InterruptStatus::Cancelled,
            TerminalStatus::Completed | TerminalStatus::Failed => InterruptStatus::Superseded,
        };
        let (status, outcome) = (request.status.into(), Some(request.outcome));
        self.end(slot, End { status, outcome, reason: request.reason, questions })?;
        if let Some(checkpoint) = request.checkpoint {
            self.append_turn(slot, checkpoint, Vec::new())?;
        }
        Ok(Finished::Done)
    }

    /// Stores a new run that its turn ends with; the turn's snapshot or outcome follows.
    fn add_bound_run(&mut self, mut new: NewRun, workflow: WorkflowPin) -> Result<Slot, StoreError> {
        new.workflow = workflow;
        self.add_run(new, Bytes::new())
    }
}
