//! Answers: who may give them, what becomes of them, and who drives then.

use std::collections::HashSet;

use kortyx_store::{
    AnswerOutcome, AnswerRequest, Drive, Driver, InterruptStatus, NewAnswer, Proof, Receipt, Refusal, RunStatus, Scope,
    Signal, StoreError, StoreErrorKind,
};

use super::runs::End;
use crate::{
    question::{Given, GivenBy},
    slab::Slot,
    state::{Transition, corrupt},
};

/// What one answer would come to.
enum Verdict {
    /// The question is open.
    Fresh(Slot),
    /// It was accepted before.
    Repeated(Receipt),
    Refused(Refusal),
}

impl Transition<'_> {
    pub(crate) fn answer(&mut self, request: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        self.check_answers(&request.answers)?;
        let (run, verdicts) = self.verdicts(&request.answers)?;
        let refusals = refusals(&request.answers, &verdicts);
        match run {
            Some(run) if refusals.is_empty() => self.accept(run, request, verdicts),
            _ => Ok(AnswerOutcome::Refused(refusals)),
        }
    }

    /// Refuses a request that no state could satisfy.
    fn check_answers(&self, answers: &[NewAnswer]) -> Result<(), StoreError> {
        if answers.is_empty() {
            return Err(self.invalid("no answer"));
        }
        let mut named = HashSet::new();
        for answer in answers {
            self.check_size("an answer", &answer.answer)?;
            if matches!(&answer.proof, Proof::Scope(scope) if scope.is_empty()) {
                return Err(self.error(StoreErrorKind::ScopeRequired, "the proof's scope restricts nothing"));
            }
            if answers.len() > 1 && !named.insert(&answer.request_id) {
                return Err(self.invalid(format!("question {} is answered twice", answer.request_id)));
            }
        }
        Ok(())
    }

    /// The question, if it is the one that the caller means and may answer.
    fn proved(&self, answer: &NewAnswer) -> Result<Option<Slot>, StoreError> {
        let Some(slot) = self.find_question(&answer.request_id) else { return Ok(None) };
        let question = self.question_at(slot)?;
        let run = self.run_at(question.run)?;
        let is_meant = answer.run_id.as_ref().is_none_or(|wanted| *wanted == run.id);
        let is_proved = match &answer.proof {
            Proof::Token(token) => question.token.matches(token),
            Proof::Scope(scope) => self.is_inside(question.run, scope)?,
        };
        Ok((is_meant && is_proved).then_some(slot))
    }

    pub(super) fn is_inside(&self, run: Slot, scope: &Scope) -> Result<bool, StoreError> {
        let run = self.run_at(run)?;
        if let Some(wanted) = &scope.session_id
            && *wanted != self.session_at(run.session)?.id
        {
            return Ok(false);
        }
        let holds = |slot: &Slot, wanted: (&String, &kortyx_store::Scalar)| {
            self.state.pairs.get(*slot).is_some_and(|pair| (&pair.0, &pair.1) == wanted)
        };
        Ok(scope.context.iter().all(|wanted| run.context.iter().any(|slot| holds(slot, wanted))))
    }

    /// What each answer would come to, and the run of their questions.
    fn verdicts(&self, answers: &[NewAnswer]) -> Result<(Option<Slot>, Vec<Verdict>), StoreError> {
        let mut verdicts = Vec::with_capacity(answers.len());
        let (mut run, mut is_mixed, mut all_known, mut has_end) = (None, false, true, false);
        for answer in answers {
            let Some(slot) = self.proved(answer)? else {
                all_known = false;
                verdicts.push(Verdict::Refused(Refusal::Unknown));
                continue;
            };
            let question = self.question_at(slot)?;
            is_mixed |= *run.get_or_insert(question.run) != question.run;
            has_end |= answer.cancel && !question.optional_cancel;
            verdicts.push(self.verdict(answer, slot)?);
        }
        // Only who may answer all of them learns how they go together.
        if all_known && is_mixed {
            return Err(self.invalid("the questions belong to different runs"));
        }
        if all_known && has_end && answers.len() > 1 {
            return Err(self.invalid("a cancellation that ends the run cannot be given together with answers"));
        }
        Ok((run, verdicts))
    }

    fn verdict(&self, answer: &NewAnswer, slot: Slot) -> Result<Verdict, StoreError> {
        let question = self.question_at(slot)?;
        let run = self.run_at(question.run)?;
        if let Some(session_id) = &answer.session_id
            && *session_id != self.session_at(run.session)?.id
        {
            return Ok(Verdict::Refused(Refusal::WrongSession));
        }
        let repeated = || {
            let is_same = question.given.as_deref().is_some_and(|Given { answer: given, .. }| *given == answer.answer);
            question.receipt(&run.id).map(|receipt| (receipt, is_same))
        };
        Ok(match question.status {
            InterruptStatus::Pending if question.is_due(self.now) => Verdict::Refused(Refusal::Expired),
            InterruptStatus::Pending if run.cancel_requested => Verdict::Refused(Refusal::Cancelled),
            InterruptStatus::Pending => Verdict::Fresh(slot),
            InterruptStatus::Answered => match repeated() {
                Some((receipt, true)) => Verdict::Repeated(receipt),
                Some((receipt, false)) => Verdict::Refused(Refusal::Conflict(receipt)),
                None => return Err(corrupt(self.operation)),
            },
            InterruptStatus::Cancelled => match repeated() {
                Some((receipt, true)) => Verdict::Repeated(receipt),
                _ => Verdict::Refused(Refusal::Cancelled),
            },
            InterruptStatus::Expired => Verdict::Refused(Refusal::Expired),
            InterruptStatus::Superseded => Verdict::Refused(Refusal::Superseded),
        })
    }

    /// Applies answers of which none is refused.
    fn accept(
        &mut self,
        run: Slot,
        request: AnswerRequest,
        verdicts: Vec<Verdict>,
    ) -> Result<AnswerOutcome, StoreError> {
        let (mut receipts, mut fresh, mut ends) = (Vec::with_capacity(verdicts.len()), 0, false);
        for (answer, verdict) in request.answers.into_iter().zip(verdicts) {
            receipts.push(match verdict {
                Verdict::Repeated(receipt) => receipt,
                Verdict::Refused(_) => return Err(corrupt(self.operation)),
                Verdict::Fresh(slot) => {
                    fresh += 1;
                    ends |= answer.cancel && !self.question_at(slot)?.optional_cancel;
                    self.take(run, slot, answer, ends)?
                }
            });
        }
        if fresh == 0 {
            return Ok(AnswerOutcome::Duplicate(receipts, Box::new(self.run_record(run)?)));
        }
        let drive = if ends { self.stop(run)? } else { self.drive(run, request.driver.as_ref())? };
        Ok(AnswerOutcome::Accepted(receipts, drive))
    }

    /// Closes an open question with its answer; one that ends the run is not delivered to it.
    fn take(&mut self, run: Slot, slot: Slot, answer: NewAnswer, ends: bool) -> Result<Receipt, StoreError> {
        self.give(slot, answer.answer, GivenBy::Actor(answer.actor))?;
        if ends {
            self.close(slot, InterruptStatus::Cancelled)?;
        } else {
            self.close(slot, InterruptStatus::Answered)?;
            self.run_mut(run)?.inbox.push(slot);
        }
        let run_id = &self.run_at(run)?.id;
        self.question_at(slot)?.receipt(run_id).ok_or_else(|| corrupt(self.operation))
    }

    /// Ends a run by a cancellation that was given as an answer, or asks its driver to.
    fn stop(&mut self, slot: Slot) -> Result<Drive, StoreError> {
        if !self.run_at(slot)?.is_driven(self.now) {
            self.end(slot, End::cancelled(None))?;
            return Ok(Drive::Ended(RunStatus::Cancelled));
        }
        self.run_mut(slot)?.cancel_requested = true;
        self.attend(slot)?;
        Ok(Drive::Driven)
    }

    /// Settles who drives a run that has new answers.
    fn drive(&mut self, slot: Slot, driver: Option<&Driver>) -> Result<Drive, StoreError> {
        if self.run_at(slot)?.is_driven(self.now) {
            self.attend(slot)?;
            return Ok(Drive::Driven);
        }
        if let Some(driver) = driver {
            return Ok(Drive::Granted(Box::new(self.claim(slot, driver)?)));
        }
        self.leave(slot)?;
        Ok(Drive::Left)
    }

    /// Leaves a run that should go on to whoever claims it.
    pub(super) fn leave(&mut self, slot: Slot) -> Result<(), StoreError> {
        let now = self.now;
        self.change(slot, |run| {
            if run.status == RunStatus::Parked {
                run.reason = None;
            }
            run.status = RunStatus::Running;
            run.updated_at = now;
        })?;
        self.signal(Signal::Work);
        Ok(())
    }

    /// Notes the change of a driven run and tells its driver.
    pub(super) fn attend(&mut self, slot: Slot) -> Result<(), StoreError> {
        let now = self.now;
        self.change(slot, |run| run.updated_at = now)?;
        self.signal(Signal::Attention(self.run_at(slot)?.id.clone()));
        Ok(())
    }
}

fn refusals(answers: &[NewAnswer], verdicts: &[Verdict]) -> Vec<(kortyx_protocol::RequestId, Refusal)> {
    let refused = answers.iter().zip(verdicts).filter_map(|(answer, verdict)| match verdict {
        Verdict::Refused(refusal) => Some((answer.request_id.clone(), refusal.clone())),
        Verdict::Fresh(_) | Verdict::Repeated(_) => None,
    });
    refused.collect()
}
