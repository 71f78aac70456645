//! Facts as events.

mod call;
mod content;
mod question;
mod run;
mod span;

use std::{collections::BTreeMap, sync::Arc};

use kortyx_orchestrator::{Correlation, Fact, ParentCall, Visit};
use kortyx_protocol::Timestamp;
use kortyx_store::Scalar;
use serde_json::Value;

use self::{
    content::Content,
    span::{Key, Placed, Spans},
};
use super::{StudioConfig, config::Described, counts::Counts, queue::Noted, revision::Revisions};
use crate::event::{Event, EventContext, EventCorrelation, Payload, Service, SessionForked, SessionRolledBack};

/// What a fact is as an event.
pub(in crate::studio) enum Mapped {
    Event(Box<Event>),
    /// It is no event.
    Nothing,
    /// It would be one, but for this.
    Unbuildable(&'static str),
}

/// Makes events of facts. Remembers what is open, for how long it took.
pub(in crate::studio) struct Mapper {
    environment: Arc<str>,
    service: Service,
    described: Described,
    content: Content,
    spans: Spans,
}

/// What a fact becomes: what happened, and its span.
struct Told {
    payload: Payload,
    placed: Placed,
}

/// Whether a fact is an event. What only numbers and logs can say is none: answers that were refused or repeated, and what is told again
/// by the next fact.
pub(in crate::studio) fn is_event(fact: &Fact) -> bool {
    !matches!(
        fact,
        Fact::RunResponded { .. }
            | Fact::RunRecovered { .. }
            | Fact::RunDiverged { .. }
            | Fact::AnswerLate { .. }
            | Fact::AnswerInvalid { .. }
            | Fact::AnswerRepeated { .. }
            | Fact::AnswerConflicted { .. }
    )
}

impl Mapper {
    pub(in crate::studio) fn new(config: &StudioConfig) -> Self {
        Self {
            environment: config.environment.clone(),
            service: config.service.clone(),
            described: config.described.clone(),
            content: Content::new(config),
            spans: Spans::new(),
        }
    }

    pub(in crate::studio) fn event(&mut self, noted: &Noted, revisions: &Revisions, counts: &Counts) -> Mapped {
        let Some(about) = noted.fact.about() else { return Mapped::Nothing };
        let Some(Told { payload, placed }) = self.told(noted, revisions, counts) else { return Mapped::Nothing };
        let Some(correlation) = correlation(about, placed, revisions) else {
            return Mapped::Unbuildable("the workflow of a run is not known to this process");
        };
        let Ok(event_id) = event_id() else { return Mapped::Unbuildable("the system gives no random numbers") };
        Mapped::Event(Box::new(Event {
            event_id,
            occurred_at: at(noted),
            environment: self.environment.clone(),
            service: self.service.clone(),
            correlation,
            context: self.context(about),
            payload,
        }))
    }

    fn told(&mut self, noted: &Noted, revisions: &Revisions, counts: &Counts) -> Option<Told> {
        self.of_run(noted, counts)
            .or_else(|| session(&noted.fact))
            .or_else(|| self.of_question(noted, counts))
            .or_else(|| self.of_node(noted, revisions, counts))
            .or_else(|| self.of_call(noted, counts))
    }

    fn context(&self, about: &Correlation) -> EventContext {
        let value = |key: &str| about.context().get(key);
        let text = |key: &Option<String>| key.as_deref().and_then(value).map(shown);
        let metadata: BTreeMap<String, Value> = self
            .described
            .metadata
            .iter()
            .filter_map(|key| value(key).map(|value| (key.clone(), json(value))))
            .collect();
        EventContext {
            user_id: text(&self.described.user),
            tenant_id: text(&self.described.tenant),
            tags: self.described.tags.clone(),
            metadata,
        }
    }
}

fn session(fact: &Fact) -> Option<Told> {
    let payload = match fact {
        Fact::SessionForked { parent_session_id, checkpoint_id, .. } => Payload::SessionForked(SessionForked {
            checkpoint_id: checkpoint_id.as_str().to_owned(),
            parent_session_id: parent_session_id.as_str().to_owned(),
        }),
        Fact::SessionRolledBack { checkpoint_id, .. } => {
            Payload::SessionRolledBack(SessionRolledBack { checkpoint_id: checkpoint_id.as_str().to_owned() })
        }
        _ => return None,
    };
    Some(Told { payload, placed: Placed::nowhere() })
}

fn correlation(about: &Correlation, placed: Placed, revisions: &Revisions) -> Option<EventCorrelation> {
    let mut correlation = EventCorrelation::of(about.run_id().as_str(), about.workflow_id()?);
    correlation.session_id = Some(about.session_id().as_str().to_owned());
    correlation.node_id = about.node().map(str::to_owned);
    if let Some(revision) = about.workflow().and_then(|pin| revisions.of(pin)) {
        correlation.topology_hash = Some(revision.hash.clone());
        correlation.workflow_revision_id.clone_from(&revision.name);
    }
    if let Some(ids) = about.trace() {
        correlation.trace_id = Some(ids.trace_id());
        correlation.span_id = Some(ids.span_id());
        correlation.parent_span_id = ids.parent_span_id();
    } else {
        correlation.trace_id = Some(span::trace_of(about.run_id()));
        (correlation.span_id, correlation.parent_span_id) = (placed.span, placed.parent);
    }
    Some(correlation)
}

fn at(noted: &Noted) -> Timestamp {
    let since = noted.at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::MIN.saturating_add(since)
}

/// A random UUID.
fn event_id() -> Result<String, getrandom::Error> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)?;
    let number = u128::from_be_bytes(random) & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{number:032x}");
    let part = |range| hex.get(range).unwrap_or_default();
    Ok([part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-"))
}

fn shown(value: &Scalar) -> String {
    match value {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Text(value) => value.to_string(),
    }
}

fn json(value: &Scalar) -> Value {
    match value {
        Scalar::Bool(value) => Value::from(*value),
        Scalar::Int(value) => Value::from(*value),
        Scalar::Text(value) => Value::from(&**value),
    }
}

/// The span that a visit belongs to: the call of its child workflow, else its run.
fn above(about: &Correlation, visit: &Visit) -> Key {
    match &visit.parent {
        Some(ParentCall { activation, call, .. }) => {
            Key::call(about, *activation, span::Sort::Child, &call.id, call.occurrence)
        }
        None => Key::run(about),
    }
}

#[cfg(test)]
mod tests;
