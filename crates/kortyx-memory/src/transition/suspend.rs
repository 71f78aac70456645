//! The end of a driver's turn: suspend, finish.

use bytes::Bytes;
use kortyx_store::{
    Finish, Finished, InterruptStatus, NewCheckpoint, NewRun, RunRef, RunStatus, StoreError, Suspend, Suspended,
    TerminalStatus,
};

use super::runs::End;
use crate::{run::Payload, slab::Slot, state::Transition};

impl Transition<'_> {
    pub(crate) fn suspend(&mut self, request: Suspend) -> Result<Suspended, StoreError> {
        let Suspend { run, workflow, snapshot, publish, withdraw, chunks, answers_seen, checkpoint } = request;
        self.check_size("a snapshot", &snapshot)?;
        self.check_checkpoint(checkpoint.as_ref())?;
        self.check_chunks(&chunks)?;
        let slot = match run {
            RunRef::New(new, _) => {
                self.check_new_run(&new)?;
                self.check_publish(None, &publish, &[])?;
                if publish.is_empty() {
                    return Err(self.invalid("a new run that asks nothing cannot wait"));
                }
                self.add_run(NewRun { workflow, ..new }, Bytes::new())?
            }
            RunRef::Held(lease) => {
                let slot = self.leased(&lease)?;
                self.check_publish(Some(slot), &publish, &withdraw)?;
                if self.run_at(slot)?.cancel_requested {
                    self.say(slot, chunks)?;
                    self.end(slot, End::cancelled(None))?;
                    return Ok(Suspended::Cancelled);
                }
                let answers = self.unseen(slot, answers_seen)?;
                if !answers.is_empty() {
                    return Ok(Suspended::Answered(answers));
                }
                self.bind(slot, workflow)?;
                self.withdraw(slot, &withdraw)?;
                slot
            }
        };
        self.say(slot, chunks)?;
        for new in publish {
            self.publish(slot, new)?;
        }
        self.save(slot, snapshot, checkpoint)
    }

    /// Stores the suspension of a run that has no answer which its snapshot lacks.
    fn save(
        &mut self,
        slot: Slot,
        snapshot: Bytes,
        checkpoint: Option<NewCheckpoint>,
    ) -> Result<Suspended, StoreError> {
        if !self.is_waiting(slot)? {
            self.end(slot, End::expired())?;
            return Ok(Suspended::Expired);
        }
        let now = self.now;
        self.change(slot, |run| {
            run.status = RunStatus::Suspended;
            run.updated_at = now;
            run.lease_until = None;
            run.payload = Payload::Snapshot(snapshot);
            run.entries = Vec::new();
            run.inbox = Vec::new();
        })?;
        let open = self.open_questions(slot)?;
        if let Some(checkpoint) = checkpoint {
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
        let Finish { run, workflow, status, outcome, reason, chunks, answers_seen, checkpoint } = request;
        self.check_size("an outcome", &outcome)?;
        self.check_checkpoint(checkpoint.as_ref())?;
        self.check_chunks(&chunks)?;
        let slot = match run {
            RunRef::New(new, _) => {
                self.check_new_run(&new)?;
                self.add_run(NewRun { workflow, ..new }, Bytes::new())?
            }
            RunRef::Held(lease) => {
                let slot = self.leased(&lease)?;
                let answers = self.unseen(slot, answers_seen)?;
                if !answers.is_empty() {
                    return Ok(Finished::Answered(answers));
                }
                self.bind(slot, workflow)?;
                slot
            }
        };
        self.say(slot, chunks)?;
        let questions = match status {
            TerminalStatus::Cancelled => InterruptStatus::Cancelled,
            TerminalStatus::Completed | TerminalStatus::Failed => InterruptStatus::Superseded,
        };
        self.end(slot, End { status: status.into(), outcome: Some(outcome), reason, questions })?;
        if let Some(checkpoint) = checkpoint {
            self.append_turn(slot, checkpoint, Vec::new())?;
        }
        Ok(Finished::Done)
    }
}
