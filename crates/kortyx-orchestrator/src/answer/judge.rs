//! Whether an answer may be given: the question exists, the caller may answer it, the answer fits.

use kortyx_protocol::{RequestId, ResumeHandle, ResumeResponse, ResumeToken};
use kortyx_store::{InterruptRecord, InterruptStatus, NewAnswer, Proof, Scope};

use super::{Answer, Right, canonical::canonical};
use crate::{OrchestratorError, RefusalReason, agent::Inner, present};

/// The question, or why the answer is refused.
pub(crate) type Judged = Result<InterruptRecord, RefusalReason>;

impl Inner {
    /// Judges one answer against its stored question. Changes nothing.
    pub(super) async fn judge(&self, answer: &Answer) -> Result<Judged, OrchestratorError> {
        let judged = match &answer.right {
            Right::Token(token) => self.proved_by_token(token, &answer.request_id, answer).await?,
            Right::Scope(scope) => self.proved_by_scope(scope, answer).await?,
            Right::Run(handle) => self.proved_by_run(handle, answer).await?,
        };
        match judged {
            // Of a question that is closed the store tells how.
            Ok(record) if record.status == InterruptStatus::Pending => {
                Ok(match present::question(&record)?.validate(&answer.response) {
                    Ok(()) => Ok(record),
                    Err(issues) => {
                        self.tell_unfit(&record, issues.len());
                        Err(RefusalReason::Invalid(issues))
                    }
                })
            }
            judged => Ok(judged),
        }
    }

    /// The question that a token was minted for, if all that the caller claims about it is true.
    async fn proved_by_token(
        &self,
        token: &ResumeToken,
        request_id: &RequestId,
        answer: &Answer,
    ) -> Result<Judged, OrchestratorError> {
        let found = self.by_token(token).await?;
        let Some(record) = found.filter(|record| is_inside(record, &answer.within)) else {
            return Ok(Err(RefusalReason::Unknown));
        };
        let is_claimed = record.request_id == *request_id
            && answer.session_id.as_ref().is_none_or(|claimed| *claimed == record.session_id)
            && answer.run_id.as_ref().is_none_or(|claimed| *claimed == record.run_id);
        Ok(if is_claimed { Ok(record) } else { Err(RefusalReason::Mismatch) })
    }

    async fn proved_by_scope(&self, scope: &Scope, answer: &Answer) -> Result<Judged, OrchestratorError> {
        if scope.is_empty() {
            return Err(OrchestratorError::ScopeRequired);
        }
        let record = self.store.interrupt(&answer.request_id).await?;
        let inside = record.filter(|record| is_inside(record, scope) && is_inside(record, &answer.within));
        Ok(inside.ok_or(RefusalReason::Unknown))
    }

    /// A question of the run that the handle's question belongs to.
    async fn proved_by_run(&self, handle: &ResumeHandle, answer: &Answer) -> Result<Judged, OrchestratorError> {
        let proof = match self.proved_by_token(&handle.token, &handle.request_id, answer).await? {
            Ok(proof) => proof,
            refused => return Ok(refused),
        };
        let record = self.store.interrupt(&answer.request_id).await?;
        let of_run = record.filter(|record| record.run_id == proof.run_id && record.session_id == proof.session_id);
        Ok(of_run.ok_or(RefusalReason::Unknown))
    }

    /// The question whose token this is.
    pub(crate) async fn by_token(&self, token: &ResumeToken) -> Result<Option<InterruptRecord>, OrchestratorError> {
        let Some(request_id) = token.request_id() else { return Ok(None) };
        let record = self.store.interrupt(&request_id).await?;
        Ok(record.filter(|record| record.token.matches(token)))
    }

    /// An answer as the store takes it.
    pub(super) fn stored(&self, answer: Answer) -> Result<NewAnswer, OrchestratorError> {
        let Answer { request_id, right, within: _, session_id, run_id, response, actor } = answer;
        let proof = match right {
            Right::Token(token) => Proof::Token(token),
            Right::Scope(scope) => Proof::Scope(scope),
            Right::Run(handle) => Proof::Scope(Scope::session(handle.session_id)),
        };
        let cancel = matches!(response, ResumeResponse::Cancel);
        let answer = canonical(&response).map_err(|error| {
            OrchestratorError::InvalidRequest(format!("the answer to {request_id} is not JSON: {error}"))
        })?;
        let (size, limit) = (answer.len(), self.settings.limits.answer_bytes);
        if size > limit {
            return Err(OrchestratorError::TooLarge { part: "answer", size, limit });
        }
        Ok(NewAnswer { request_id, proof, session_id, run_id, answer: answer.into(), cancel, actor })
    }
}

fn is_inside(record: &InterruptRecord, scope: &Scope) -> bool {
    scope.contains(&record.session_id, &record.context)
}
