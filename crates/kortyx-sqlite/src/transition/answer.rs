//! Deciding over answers: all or none.

use std::collections::HashSet;

use kortyx_store::{
    AnswerOutcome, AnswerRequest, Drive, Driver, InterruptRecord, InterruptStatus, NewAnswer, Proof, Receipt, Refusal,
    RunStatus, Signal, StoreError, StoreErrorKind,
};

use super::Transition;
use crate::batch::{Batch, Closing, Wants, is_due};

/// What is to be done about one answer.
enum Verdict {
    /// The question with this key takes it.
    Accept(i64),
    /// It was accepted before.
    Repeat(Receipt),
    Refuse(Refusal),
}

impl Transition for AnswerRequest {
    const NAME: &'static str = "answer";
    type Outcome = AnswerOutcome;

    fn wants(&self, wants: &mut Wants) {
        for answer in &self.answers {
            wants.question(&answer.request_id);
            if answer.cancel {
                wants.siblings(&answer.request_id);
            }
        }
        if self.driver.is_some() {
            wants.payloads();
        }
    }

    fn apply(&self, batch: &mut Batch) -> Result<AnswerOutcome, StoreError> {
        if self.answers.iter().any(|answer| matches!(&answer.proof, Proof::Scope(scope) if scope.is_empty())) {
            return Err(batch.error(StoreErrorKind::ScopeRequired, "an answer by scope needs a session or a context"));
        }
        let mut known = Vec::with_capacity(self.answers.len());
        for answer in &self.answers {
            known.extend(find(batch, answer)?.map(|key| (answer, key)));
        }
        if known.len() == self.answers.len() {
            check(batch, &known)?;
        }
        let mut verdicts = Vec::with_capacity(self.answers.len());
        let mut refused = Vec::new();
        for answer in &self.answers {
            match judge(batch, answer)? {
                Verdict::Refuse(refusal) => refused.push((answer.request_id.clone(), refusal)),
                verdict => verdicts.push((answer, verdict)),
            }
        }
        match known.first() {
            Some((_, key)) if refused.is_empty() => {
                let run = batch.question(*key)?.run;
                accept(batch, run, verdicts, self.driver.as_ref())
            }
            _ => Ok(AnswerOutcome::Refused(refused)),
        }
    }
}

/// The question that an answer may be given to; `None` when there is none, or the caller must not know.
fn find(batch: &Batch, answer: &NewAnswer) -> Result<Option<i64>, StoreError> {
    let Some(key) = batch.find_question(&answer.request_id)? else { return Ok(None) };
    let record = &batch.question(key)?.record;
    let is_proven = match &answer.proof {
        Proof::Token(token) => record.token.matches(token),
        Proof::Scope(scope) => scope.contains(&record.session_id, &record.context),
    };
    let is_meant = answer.run_id.as_ref().is_none_or(|run_id| *run_id == record.run_id);
    Ok((is_proven && is_meant).then_some(key))
}

/// Refuses answers that contradict each other.
fn check(batch: &Batch, answers: &[(&NewAnswer, i64)]) -> Result<(), StoreError> {
    let Some((_, first)) = answers.first() else { return Err(batch.invalid("there is no answer")) };
    let run = batch.question(*first)?.run;
    let mut keys = HashSet::new();
    for (answer, key) in answers {
        let question = batch.question(*key)?;
        if !keys.insert(key) {
            return Err(batch.invalid("a question is answered twice"));
        }
        if question.run != run {
            return Err(batch.invalid("the questions belong to different runs"));
        }
        if answers.len() > 1 && ends_run(answer, &question.record) {
            return Err(batch.invalid("a cancellation that ends the run must be the only answer"));
        }
    }
    Ok(())
}

fn ends_run(answer: &NewAnswer, question: &InterruptRecord) -> bool {
    answer.cancel && !question.optional_cancel
}

fn judge(batch: &Batch, answer: &NewAnswer) -> Result<Verdict, StoreError> {
    let Some(key) = find(batch, answer)? else { return Ok(Verdict::Refuse(Refusal::Unknown)) };
    let question = batch.question(key)?;
    let record = &question.record;
    if answer.session_id.as_ref().is_some_and(|session_id| *session_id != record.session_id) {
        return Ok(Verdict::Refuse(Refusal::WrongSession));
    }
    let is_same = record.answer.as_ref() == Some(&answer.answer);
    Ok(match (record.status, &record.receipt) {
        (InterruptStatus::Pending, _) => {
            let run = &batch.run(question.run)?.record;
            if run.status.is_terminal() {
                Verdict::Refuse(Refusal::Superseded)
            } else if is_due(record, batch.now) {
                Verdict::Refuse(Refusal::Expired)
            } else if run.cancel_requested {
                Verdict::Refuse(Refusal::Cancelled)
            } else {
                Verdict::Accept(key)
            }
        }
        (InterruptStatus::Answered | InterruptStatus::Cancelled, Some(receipt)) if is_same => {
            Verdict::Repeat(receipt.clone())
        }
        (InterruptStatus::Answered, Some(receipt)) => Verdict::Refuse(Refusal::Conflict(receipt.clone())),
        (InterruptStatus::Answered, None) => return Err(batch.corrupt("an answered question has no receipt")),
        (InterruptStatus::Cancelled, _) => Verdict::Refuse(Refusal::Cancelled),
        (InterruptStatus::Expired, _) => Verdict::Refuse(Refusal::Expired),
        (InterruptStatus::Superseded, _) => Verdict::Refuse(Refusal::Superseded),
    })
}

/// Applies answers of which none is refused.
fn accept(
    batch: &mut Batch,
    run: i64,
    verdicts: Vec<(&NewAnswer, Verdict)>,
    driver: Option<&Driver>,
) -> Result<AnswerOutcome, StoreError> {
    let mut is_new = false;
    let mut ended = false;
    for (answer, verdict) in &verdicts {
        if let Verdict::Accept(key) = verdict {
            is_new = true;
            ended |= ends_run(answer, &batch.question(*key)?.record);
        }
    }
    let is_driven = is_driven(batch, run, is_new && !ended && driver.is_some())?;
    let mut receipts = Vec::with_capacity(verdicts.len());
    for (answer, verdict) in verdicts {
        let receipt = match verdict {
            Verdict::Accept(key) if ends_run(answer, &batch.question(key)?.record) => {
                cancel(batch, run, key, answer, is_driven)?
            }
            Verdict::Accept(key) => {
                batch.deliver(key, InterruptStatus::Answered, answer.answer.clone(), answer.actor.clone())?;
                batch.question(key)?.record.receipt.clone()
            }
            Verdict::Repeat(receipt) => Some(receipt),
            Verdict::Refuse(_) => None,
        };
        receipts.extend(receipt);
    }
    if !is_new {
        return Ok(AnswerOutcome::Duplicate(receipts, Box::new(batch.run(run)?.record.clone())));
    }
    let drive = match driver {
        _ if is_driven => {
            let run_id = batch.run(run)?.record.run_id.clone();
            batch.signals.push(Signal::Attention(run_id));
            Drive::Driven
        }
        _ if ended => Drive::Ended(RunStatus::Cancelled),
        Some(driver) => Drive::Granted(Box::new(batch.grant(run, driver)?)),
        None => {
            batch.wake(run)?;
            batch.signals.push(Signal::Work);
            Drive::Left
        }
    };
    Ok(AnswerOutcome::Accepted(receipts, drive))
}

/// Whether somebody drives the run; where not, its payload must be at hand when the caller `needs` it.
fn is_driven(batch: &mut Batch, run: i64, needs: bool) -> Result<bool, StoreError> {
    let owner = batch.run(run)?;
    if owner.is_driven(batch.now) {
        return Ok(true);
    }
    if !needs || owner.has_payload() {
        return Ok(false);
    }
    if batch.is_shared {
        // Another transition of this commit gave up the lease.
        return Err(batch.undecided());
    }
    // The lease was live when the rows were read: it counts, and the run is an orphan now.
    let was_driven = owner.record.status == RunStatus::Running && owner.record.lease_until.is_some();
    if was_driven { Ok(true) } else { Err(batch.corrupt("a run has no snapshot")) }
}

/// Ends a run by the cancellation of its question, or asks its driver to. The cancellation is no answer that a driver
/// gets, so it has a receipt and is not counted.
fn cancel(
    batch: &mut Batch,
    run: i64,
    question: i64,
    answer: &NewAnswer,
    is_driven: bool,
) -> Result<Option<Receipt>, StoreError> {
    let seq = batch.run(run)?.record.answers + 1;
    let closing = Closing { answer: answer.answer.clone(), seq, actor: answer.actor.clone() };
    batch.close(question, InterruptStatus::Cancelled, Some(closing))?;
    if is_driven {
        let now = batch.now;
        let owner = batch.run_mut(run)?;
        owner.record.cancel_requested = true;
        owner.changed(now);
    } else {
        batch.end_cancelled(run, None)?;
    }
    Ok(batch.question(question)?.record.receipt.clone())
}
