//! Questions.

use kortyx_orchestrator::{AskedFacts, Correlation, Fact, QuestionContent, ResumeOutcome};
use kortyx_protocol::{RawJson, RequestId};
use serde_json::Value;

use super::{
    Mapper, Told,
    span::{Key, Placed, millis},
};
use crate::{
    event::{InterruptCancelled, InterruptCreated, InterruptExpired, InterruptResolved, Payload},
    studio::{counts::Counts, queue::Noted},
};

impl Mapper {
    pub(super) fn of_question(&mut self, noted: &Noted, counts: &Counts) -> Option<Told> {
        let id = |request_id: &RequestId| request_id.as_str().to_owned();
        let payload = match &noted.fact {
            Fact::InterruptCreated { request_id, about, asked, content } => {
                let created = self.created(id(request_id), about, asked, content.as_deref(), counts);
                Payload::InterruptCreated(Box::new(created))
            }
            Fact::InterruptResolved { request_id, outcome, resolved_at, wait, answer, .. } => {
                let response = self.content.input(answer.as_ref(), counts);
                let failed = if let ResumeOutcome::Failed(code) = outcome { Some(code.as_str()) } else { None };
                Payload::InterruptResolved(InterruptResolved {
                    interrupt_id: id(request_id),
                    resolved_at: *resolved_at,
                    resume_outcome: if failed.is_some() { "failed" } else { "resumed" },
                    response_captured: response.is_some(),
                    wait_ms: millis(*wait),
                    response,
                    resume_error: failed,
                })
            }
            Fact::InterruptExpired { request_id, by_default, expires_at, is_derived, .. } => {
                Payload::InterruptExpired(InterruptExpired {
                    interrupt_id: id(request_id),
                    expires_at: *expires_at,
                    default_applied: *by_default && !*is_derived,
                    derived: *is_derived,
                })
            }
            Fact::InterruptCancelled { request_id, reason, .. } => cancelled(id(request_id), reason.as_str()),
            Fact::InterruptSuperseded { request_id, .. } => cancelled(id(request_id), "superseded"),
            _ => return None,
        };
        let placed = noted.fact.about().map_or_else(Placed::nowhere, |about| self.spans.within(&Key::run(about)));
        Some(Told { payload, placed })
    }

    fn created(
        &self,
        id: String,
        about: &Correlation,
        asked: &AskedFacts,
        content: Option<&QuestionContent>,
        counts: &Counts,
    ) -> InterruptCreated {
        let content = content.filter(|_| self.content.is_output_on());
        let shown = |json: Option<RawJson>| json.and_then(|json| self.content.shown(&json, counts));
        let options = content.filter(|content| !content.options.is_empty());
        InterruptCreated {
            request_id: id.clone(),
            interrupt_id: id,
            kind: asked.kind.as_str(),
            interaction_mode: asked.mode.as_str(),
            schema_id: asked.schema_id.clone(),
            schema_version: asked.schema_version.clone(),
            contract: asked.contract.clone(),
            option_count: asked.option_count,
            node_id: about.node().unwrap_or_default().to_owned(),
            expires_at: asked.expires_at,
            question: shown(content.and_then(|content| RawJson::of(content.question.as_ref()?).ok()))
                .filter(Value::is_string),
            options: shown(options.and_then(|content| RawJson::of(&content.options).ok())),
            request: shown(content.and_then(|content| content.request.clone())),
        }
    }
}

fn cancelled(interrupt_id: String, reason: &'static str) -> Payload {
    Payload::InterruptCancelled(InterruptCancelled { interrupt_id, reason })
}
