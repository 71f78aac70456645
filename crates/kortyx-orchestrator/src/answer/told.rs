//! What is told of answers.

use bytes::Bytes;
use kortyx_protocol::{FailureCode, RawJson, RequestId};
use kortyx_runtime::Content;
use kortyx_store::{Drive, InterruptQuery, InterruptRecord, NewAnswer, Receipt};

use crate::{
    OrchestratorError, RefusalReason, RefusedAnswer,
    agent::Inner,
    telemetry::{CancelReason, Correlation, Fact, ResumeOutcome},
};

/// Answers that were accepted, each with its question and its receipt.
pub(super) struct Answered<'a> {
    pub(super) records: &'a [InterruptRecord],
    /// The answers as canonical JSON, where they are told.
    pub(super) said: &'a [Bytes],
    pub(super) receipts: &'a [Receipt],
    /// Other questions of the run that were open before.
    pub(super) also: &'a [InterruptRecord],
}

impl Inner {
    /// Tells what accepted answers have come to.
    pub(super) async fn tell_answered(
        &self,
        answered: &Answered<'_>,
        drive: &Drive,
        unknown: Option<&InterruptRecord>,
        ends: bool,
    ) {
        let outcome = match drive {
            Drive::Left if unknown.is_some() && self.settings.drives => {
                ResumeOutcome::Failed(FailureCode::WorkflowChanged)
            }
            Drive::Left => ResumeOutcome::Kept,
            Drive::Granted(_) | Drive::Driven | Drive::Ended(_) => ResumeOutcome::Resumed,
        };
        for (place, (record, receipt)) in answered.records.iter().zip(answered.receipts).enumerate() {
            self.telemetry.record(|| {
                let about = self.about(record, drive);
                let request_id = record.request_id.clone();
                if ends {
                    return Fact::InterruptCancelled { request_id, about, reason: CancelReason::Answer };
                }
                let captures = self.telemetry.captures();
                let answer = answered.said.get(place).and_then(content);
                let actor = receipt.actor.clone().filter(|_| captures.actor);
                let (resolved_at, wait) = (receipt.at, receipt.at.since(record.created_at));
                Fact::InterruptResolved { request_id, about, outcome, resolved_at, wait, actor, answer }
            });
        }
        if let (Drive::Ended(status), Some(record)) = (drive, answered.records.first()) {
            for other in answered.also {
                let (request_id, reason) = (other.request_id.clone(), CancelReason::Answer);
                let about = || self.about(other, drive);
                self.telemetry.record(|| Fact::InterruptCancelled { request_id, about: about(), reason });
            }
            self.tell_ended(&record.run_id, *status, Some(self.telemetry.of_question(record))).await;
        }
    }

    /// The answers, where they are told.
    pub(super) fn said(&self, answers: &[NewAnswer]) -> Vec<Bytes> {
        let is_told = self.telemetry.captures().input;
        if is_told { answers.iter().map(|answer| answer.answer.clone()).collect() } else { Vec::new() }
    }

    /// The open questions of a run beside these, where somebody is told what becomes of them.
    pub(super) async fn open_beside(&self, of: &InterruptRecord, asked: &[RequestId]) -> Vec<InterruptRecord> {
        if !self.telemetry.is_on() {
            return Vec::new();
        }
        let query = InterruptQuery { run_id: Some(of.run_id.clone()), ..InterruptQuery::default() };
        let mut open = self.all_interrupts(query).await.unwrap_or_default();
        open.retain(|record| !asked.contains(&record.request_id));
        open
    }

    fn about(&self, record: &InterruptRecord, drive: &Drive) -> Correlation {
        let about = self.telemetry.of_question(record);
        match drive {
            Drive::Granted(claimed) => about.bound_to(claimed.run.workflow.clone()),
            Drive::Driven | Drive::Left | Drive::Ended(_) => about,
        }
    }

    /// Tells of refused answers and makes the error. Of an answer that does not fit was told where that came out.
    pub(super) fn refused(&self, refused: Vec<RefusedAnswer>, records: &[InterruptRecord]) -> OrchestratorError {
        for RefusedAnswer { request_id, reason, .. } in &refused {
            let record = records.iter().find(|record| record.request_id == *request_id);
            let about = || record.map(|record| self.telemetry.of_question(record));
            let request_id = request_id.clone();
            match reason {
                RefusalReason::AlreadyResolved => {
                    self.telemetry.record(|| Fact::AnswerConflicted { request_id, about: about() });
                }
                RefusalReason::Expired | RefusalReason::Unknown => {
                    if let Some(record) = record.filter(|_| *reason == RefusalReason::Expired) {
                        self.tell_expired(record, true);
                    }
                    self.telemetry.record(|| Fact::AnswerLate { request_id, about: about() });
                }
                _ => {}
            }
        }
        OrchestratorError::Refused(refused)
    }

    /// Tells of an answer that does not fit its question.
    pub(super) fn tell_unfit(&self, record: &InterruptRecord, issues: usize) {
        self.telemetry.record(|| Fact::AnswerInvalid {
            request_id: record.request_id.clone(),
            about: Some(self.telemetry.of_question(record)),
            issues,
        });
    }
}

fn content(json: &Bytes) -> Option<Content> {
    let text = str::from_utf8(json).ok()?;
    RawJson::parse(text).ok().map(Content::new)
}
