//! The end of a driver's turn: the run waits, or has ended.

use kortyx_store::{
    AnswerRecord, Finish, Finished, InterruptStatus, RunRef, RunStatus, StoreError, Suspend, Suspended, TerminalStatus,
};

use super::Transition;
use crate::batch::{Batch, Seed, Wants};

impl Transition for Suspend {
    const NAME: &'static str = "suspend";
    type Outcome = Suspended;

    fn wants(&self, wants: &mut Wants) {
        want_run(wants, &self.run, self.answers_seen);
        wants.new_questions(self.publish.iter().map(|new| &new.request_id));
        wants.turn(&self.run, self.checkpoint.as_ref());
    }

    fn apply(&self, batch: &mut Batch) -> Result<Suspended, StoreError> {
        batch.check_checkpoint(self.checkpoint.as_ref().map(|checkpoint| &checkpoint.id))?;
        let lease = match &self.run {
            RunRef::New(new, _) => {
                batch.check_new_run(new)?;
                batch.check_publish(None, &self.publish, &[])?;
                if self.publish.is_empty() {
                    return Err(batch.invalid("a new run that asks nothing cannot wait"));
                }
                let (workflow, snapshot) = (&self.workflow, Some(&self.snapshot));
                let key =
                    batch.add_run(&Seed { run: new, workflow, status: RunStatus::Suspended, snapshot, answers: 0 })?;
                batch.run_mut(key)?.say(key, &self.chunks);
                return wait(self, batch, key);
            }
            RunRef::Held(lease) => lease,
        };
        let key = batch.held(lease)?;
        batch.check_publish(Some(key), &self.publish, &self.withdraw)?;
        if batch.run(key)?.record.cancel_requested {
            batch.run_mut(key)?.say(key, &self.chunks);
            batch.end_cancelled(key, None)?;
            return Ok(Suspended::Cancelled);
        }
        let answers = unseen(batch, key, self.answers_seen)?;
        if !answers.is_empty() {
            return Ok(Suspended::Answered(answers));
        }
        let now = batch.now;
        let run = batch.run_mut(key)?;
        run.record.status = RunStatus::Suspended;
        run.bind(&self.workflow);
        run.leave();
        run.save(key, &self.snapshot);
        run.say(key, &self.chunks);
        run.changed(now);
        batch.withdraw(key, &self.withdraw)?;
        wait(self, batch, key)
    }
}

/// Publishes the questions of a suspended run; ends it when none is open.
fn wait(request: &Suspend, batch: &mut Batch, key: i64) -> Result<Suspended, StoreError> {
    batch.publish(key, &request.publish)?;
    let open = batch.open_questions(key)?;
    if open.is_empty() {
        batch.end(key, RunStatus::Expired, InterruptStatus::Expired)?;
        return Ok(Suspended::Expired);
    }
    batch.append_turn(key, request.checkpoint.as_ref(), open.clone())?;
    Ok(Suspended::Saved(open))
}

impl Transition for Finish {
    const NAME: &'static str = "finish";
    type Outcome = Finished;

    fn wants(&self, wants: &mut Wants) {
        want_run(wants, &self.run, self.answers_seen);
        wants.turn(&self.run, self.checkpoint.as_ref());
    }

    fn apply(&self, batch: &mut Batch) -> Result<Finished, StoreError> {
        batch.check_checkpoint(self.checkpoint.as_ref().map(|checkpoint| &checkpoint.id))?;
        let key = match &self.run {
            RunRef::New(new, _) => {
                batch.check_new_run(new)?;
                let (workflow, status) = (&self.workflow, self.status.into());
                batch.add_run(&Seed { run: new, workflow, status, snapshot: None, answers: 0 })?
            }
            RunRef::Held(lease) => {
                let key = batch.held(lease)?;
                let answers = unseen(batch, key, self.answers_seen)?;
                if !answers.is_empty() {
                    return Ok(Finished::Answered(answers));
                }
                key
            }
        };
        let run = batch.run_mut(key)?;
        run.bind(&self.workflow);
        run.say(key, &self.chunks);
        run.record.outcome = Some(self.outcome.clone());
        if self.reason.is_some() {
            run.record.reason.clone_from(&self.reason);
        }
        let questions = match self.status {
            TerminalStatus::Cancelled => InterruptStatus::Cancelled,
            TerminalStatus::Completed | TerminalStatus::Failed => InterruptStatus::Superseded,
        };
        batch.end(key, self.status.into(), questions)?;
        batch.append_turn(key, self.checkpoint.as_ref(), Vec::new())?;
        Ok(Finished::Done)
    }
}

fn want_run(wants: &mut Wants, run: &RunRef, answers_seen: u64) {
    match run {
        RunRef::New(new, _) => wants.begun(new),
        RunRef::Held(lease) => {
            wants.run(&lease.run_id);
            wants.answers(&lease.run_id, answers_seen);
            wants.pending(&lease.run_id);
        }
    }
}

/// Answers that the driver has not received.
fn unseen(batch: &Batch, key: i64, answers_seen: u64) -> Result<Vec<AnswerRecord>, StoreError> {
    let run = batch.run(key)?;
    let answers = run.answers_above(answers_seen);
    if answers.is_empty() && run.record.answers > answers_seen {
        return Err(batch.corrupt("an accepted answer is missing"));
    }
    Ok(answers)
}
