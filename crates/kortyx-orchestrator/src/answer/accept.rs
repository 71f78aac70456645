//! Acceptance: the one transition that decides over answers, and what it leads to.

use kortyx_protocol::{Failure, RequestId, RunId, SessionId};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, Claimed, Drive, InterruptRecord, NewAnswer, Receipt, Refusal, RunRecord, RunStatus,
};

use super::{Answer, told::Answered};
use crate::{
    OrchestratorError, RefusalReason, RefusedAnswer,
    agent::Inner,
    driver::{foreign_workflow, transition},
    telemetry::Fact,
};

/// Answers that are durable, and what is next for their run.
pub(crate) struct Accepted {
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) run_id: RunId,
    pub(crate) session_id: SessionId,
    /// The workflow where the first question was asked.
    pub(crate) workflow: String,
    /// The questions were asked after the response was completed.
    pub(crate) is_after_response: bool,
    pub(crate) next: Next,
}

/// What is next for a run that was answered.
pub(crate) enum Next {
    /// This process drives it.
    Drive(Box<Claimed>),
    /// Somebody drives it, or will.
    Wait,
    /// Its workflow is not registered here; a worker that has it goes on.
    Foreign(Failure),
    /// A cancellation ended it.
    Ended(RunStatus),
    /// Nothing new: every answer had been accepted before.
    Repeated(Box<RunRecord>),
}

impl Inner {
    /// Accepts answers to one run's questions, all or none.
    pub(crate) async fn accept(&self, answers: Vec<Answer>) -> Result<Accepted, OrchestratorError> {
        self.check_running()?;
        let (count, limit) = (answers.len(), self.settings.limits.batch);
        if count == 0 || count > limit {
            let message = format!("a batch holds 1 to {limit} answers, not {count}");
            return Err(OrchestratorError::InvalidRequest(message));
        }
        let records = self.judge_all(&answers).await?;
        let answers = answers.into_iter().map(|answer| self.stored(answer)).collect::<Result<Vec<_>, _>>()?;
        self.decide(answers, &records).await
    }

    async fn judge_all(&self, answers: &[Answer]) -> Result<Vec<InterruptRecord>, OrchestratorError> {
        let (mut records, mut refused) = (Vec::with_capacity(answers.len()), Vec::new());
        for (index, answer) in answers.iter().enumerate() {
            match self.judge(answer).await? {
                Ok(record) => records.push(record),
                Err(reason) => refused.push(RefusedAnswer { index, request_id: answer.request_id.clone(), reason }),
            }
        }
        if refused.is_empty() { Ok(records) } else { Err(self.refused(refused, &records)) }
    }

    async fn decide(
        &self,
        answers: Vec<NewAnswer>,
        records: &[InterruptRecord],
    ) -> Result<Accepted, OrchestratorError> {
        let Some(first) = records.first() else { return Err(OrchestratorError::NotFound) };
        // Only code that knows where a question was asked can go on after it.
        let unknown = records.iter().find(|record| self.engine.registry().latest(&record.workflow).is_none());
        let drives = self.settings.drives && unknown.is_none();
        let said = self.said(&answers);
        let request = AnswerRequest { answers, driver: drives.then(|| self.driver()) };
        let asked: Vec<RequestId> = request.answers.iter().map(|answer| answer.request_id.clone()).collect();
        let ends = request.answers.iter().zip(records).any(|(answer, record)| answer.cancel && !record.optional_cancel);
        let also = if ends { self.open_beside(first, &asked).await } else { Vec::new() };
        let (receipts, next) = match transition("answer", self.store.answer(request)).await? {
            AnswerOutcome::Accepted(receipts, drive) => {
                let run = Answered { records, said: &said, receipts: &receipts, also: &also };
                self.tell_answered(&run, &drive, unknown, ends).await;
                (receipts, self.next(drive, &first.run_id, unknown))
            }
            AnswerOutcome::Duplicate(receipts, run) => {
                for request_id in asked {
                    self.telemetry
                        .record(|| Fact::AnswerRepeated { request_id, about: Some(self.telemetry.of_run(&run)) });
                }
                (receipts, Next::Repeated(run))
            }
            AnswerOutcome::Refused(refusals) => return Err(self.refused(named(&asked, refusals), records)),
        };
        let (run_id, session_id) = (first.run_id.clone(), first.session_id.clone());
        let is_after_response = records.iter().all(|record| record.after_response_completed);
        let workflow = first.workflow.clone();
        Ok(Accepted { receipts, run_id, session_id, workflow, is_after_response, next })
    }

    fn next(&self, drive: Drive, run_id: &RunId, unknown: Option<&InterruptRecord>) -> Next {
        match (drive, unknown) {
            (Drive::Granted(claimed), _) => Next::Drive(claimed),
            (Drive::Ended(status), _) => Next::Ended(status),
            (Drive::Driven, _) => {
                self.attend(run_id);
                Next::Wait
            }
            (Drive::Left, Some(record)) if self.settings.drives => Next::Foreign(foreign_workflow(&record.workflow)),
            (Drive::Left, _) => Next::Wait,
        }
    }
}

fn named(asked: &[RequestId], refusals: Vec<(RequestId, Refusal)>) -> Vec<RefusedAnswer> {
    let name = |(request_id, refusal): (RequestId, Refusal)| RefusedAnswer {
        index: asked.iter().position(|asked| *asked == request_id).unwrap_or_default(),
        request_id,
        reason: reason(&refusal),
    };
    refusals.into_iter().map(name).collect()
}

fn reason(refusal: &Refusal) -> RefusalReason {
    match refusal {
        Refusal::Conflict(_) => RefusalReason::AlreadyResolved,
        Refusal::Expired => RefusalReason::Expired,
        Refusal::Cancelled => RefusalReason::Cancelled,
        Refusal::Superseded => RefusalReason::Superseded,
        Refusal::Unknown => RefusalReason::Unknown,
        Refusal::WrongSession => RefusalReason::Mismatch,
    }
}
