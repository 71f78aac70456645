//! Questions past their time.

use std::collections::HashSet;

use kortyx_store::{ExpireRequest, ExpiredBatch, InterruptStatus, RunStatus, StoreError};

use super::runs::End;
use crate::{question::GivenBy, slab::Slot, state::Transition};

impl Transition<'_> {
    pub(crate) fn expire_due(&mut self, request: &ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        let (mut batch, mut closed) = (ExpiredBatch::default(), Vec::new());
        // Runs in the order of their first question, and those to which a default was given.
        let (mut runs, mut seen, mut defaulted) = (Vec::new(), HashSet::new(), HashSet::new());
        while let Some(slot) = self.first_due() {
            if closed.len() >= request.limit as usize {
                batch.more = true;
                break;
            }
            let (run, by_default) = self.expire(slot)?;
            closed.push(slot);
            if seen.insert(run) {
                runs.push(run);
            }
            if by_default {
                defaulted.insert(run);
            }
        }
        let pins = self.known(&request.workflows);
        for run in runs {
            match self.after_expiry(run, defaulted.contains(&run))? {
                Next::Stays => {}
                Next::Ends => {
                    batch.ended.push(self.run_at(run)?.id.clone());
                    self.end(run, End::expired())?;
                }
                Next::Stops => drop(self.end(run, End::cancelled(None))?),
                Next::Attends => self.attend(run)?,
                Next::GoesOn if pins.contains(&self.run_at(run)?.pin) => {
                    batch.claimed.push(self.claim(run, &request.driver)?);
                }
                Next::GoesOn => self.leave(run)?,
            }
        }
        let mut context = None;
        for slot in closed {
            batch.interrupts.push(self.record_sharing(slot, &mut context)?);
        }
        Ok(batch)
    }

    fn first_due(&self) -> Option<Slot> {
        let (deadline, _, slot) = self.state.index.deadlines.first()?;
        (*deadline <= self.now).then_some(*slot)
    }

    /// Closes a question; its default, if it has one, becomes the run's next answer. Gives the run.
    fn expire(&mut self, slot: Slot) -> Result<(Slot, bool), StoreError> {
        let question = self.question_at(slot)?;
        let (run, default) = (question.run, question.default.as_deref().cloned());
        self.close(slot, InterruptStatus::Expired)?;
        let Some(default) = default else { return Ok((run, false)) };
        self.give(slot, default, GivenBy::Default)?;
        self.run_mut(run)?.inbox.push(slot);
        Ok((run, true))
    }

    /// How a run goes on after questions of it expired.
    fn after_expiry(&self, slot: Slot, has_default: bool) -> Result<Next, StoreError> {
        let run = self.run_at(slot)?;
        Ok(match run.status {
            RunStatus::Running if run.is_driven(self.now) && has_default => Next::Attends,
            RunStatus::Running if run.is_driven(self.now) => Next::Stays,
            _ if run.cancel_requested => Next::Stops,
            _ if run.open.is_empty() && run.inbox.is_empty() => Next::Ends,
            RunStatus::Parked => Next::Stays,
            _ if has_default => Next::GoesOn,
            _ => Next::Stays,
        })
    }
}

/// What becomes of a run whose questions expired.
enum Next {
    /// It stays as it is.
    Stays,
    /// Its driver has a default to use.
    Attends,
    /// It has a default to use, and no driver.
    GoesOn,
    /// Nothing is left to wait for.
    Ends,
    /// It was asked to stop, and its driver is gone.
    Stops,
}
