//! What a message is: a fresh turn, an answer, or an answer that is refused.

use std::sync::Arc;

use kortyx_protocol::{ChatMessage, Issue, ResumeHandle, ResumeMeta, SessionId, parse_resume_meta};
use kortyx_store::{InterruptRecord, InterruptStatus, Scope};

use crate::{Answer, OrchestratorError, RefusalReason, RefusedAnswer, agent::Inner, present, telemetry::Fact};

/// What a message is.
pub(super) enum Plan {
    /// It starts a run.
    Fresh,
    /// It answers this question.
    Answer(Box<InterruptRecord>, Answer),
    /// It answers this question, but not like this.
    Refused(Box<InterruptRecord>, OrchestratorError),
}

impl Inner {
    /// Reads a message. Changes nothing.
    pub(super) async fn plan(
        self: &Arc<Self>,
        message: &ChatMessage,
        session_id: Option<&SessionId>,
        scope: &Scope,
    ) -> Result<Plan, OrchestratorError> {
        let Some(meta) = parse_resume_meta(message) else { return Ok(Plan::Fresh) };
        let found = self.by_token(&meta.token).await?;
        // A question of another tenant is unknown; one of another session of the same tenant is a mismatch.
        let known = found.filter(|record| scope.contains_context(&record.context));
        let Some(record) = known else { return Ok(self.late(meta, None)) };
        let is_meant = meta.request_id == record.request_id && session_id.is_none_or(|id| *id == record.session_id);
        if !is_meant {
            return Ok(refused(record, &meta, RefusalReason::Mismatch));
        }
        if record.status == InterruptStatus::Expired {
            self.tell_overdue(&record);
            return Ok(self.late(meta, Some(&record)));
        }
        Ok(match present::question(&record)?.response_from_meta(&meta) {
            Ok(response) => {
                let handle = ResumeHandle {
                    token: meta.token,
                    request_id: record.request_id.clone(),
                    session_id: record.session_id.clone(),
                    run_id: record.run_id.clone(),
                };
                Plan::Answer(Box::new(record), Answer::with_handle(&handle, response))
            }
            Err(issues) => self.unfit(record, &meta, issues),
        })
    }

    fn late(&self, meta: ResumeMeta, known: Option<&InterruptRecord>) -> Plan {
        let about = || known.map(|record| self.telemetry.of_question(record));
        self.telemetry.record(|| Fact::AnswerLate { request_id: meta.request_id, about: about() });
        Plan::Fresh
    }

    /// An answer that does not fit its question is not the accepted one either.
    fn unfit(&self, record: InterruptRecord, meta: &ResumeMeta, issues: Vec<Issue>) -> Plan {
        let reason = match record.status {
            InterruptStatus::Answered => RefusalReason::AlreadyResolved,
            InterruptStatus::Cancelled => RefusalReason::Cancelled,
            InterruptStatus::Superseded => RefusalReason::Superseded,
            InterruptStatus::Pending | InterruptStatus::Expired => RefusalReason::Invalid(issues),
        };
        let request_id = || record.request_id.clone();
        let about = || Some(self.telemetry.of_question(&record));
        match &reason {
            RefusalReason::AlreadyResolved => {
                self.telemetry.record(|| Fact::AnswerConflicted { request_id: request_id(), about: about() });
            }
            RefusalReason::Invalid(issues) => {
                let issues = issues.len();
                self.telemetry.record(|| Fact::AnswerInvalid { request_id: request_id(), about: about(), issues });
            }
            _ => {}
        }
        refused(record, meta, reason)
    }
}

fn refused(record: InterruptRecord, meta: &ResumeMeta, reason: RefusalReason) -> Plan {
    let refused = RefusedAnswer { index: 0, request_id: meta.request_id.clone(), reason };
    Plan::Refused(Box::new(record), OrchestratorError::Refused(vec![refused]))
}
