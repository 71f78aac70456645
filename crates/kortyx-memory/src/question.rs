//! A question as it is kept.

use bytes::Bytes;
use kortyx_protocol::{RequestId, ResumeToken, RunId, Timestamp};
use kortyx_store::{AnswerRecord, AskKey, InterruptStatus, NewInterrupt, Receipt};

use crate::slab::Slot;

/// A question; what it shares with its run is kept there.
pub(crate) struct Question {
    /// Grows with every run and question; younger is greater.
    pub(crate) ord: u64,
    pub(crate) run: Slot,
    /// Of a closed question: the one of its run that was closed before it.
    pub(crate) next_closed: Option<Slot>,
    pub(crate) request_id: RequestId,
    pub(crate) token: ResumeToken,
    pub(crate) ask: Box<str>,
    pub(crate) workflow: Box<str>,
    pub(crate) node: Box<str>,
    pub(crate) body: Bytes,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) status: InterruptStatus,
    pub(crate) optional_cancel: bool,
    pub(crate) after_response_completed: bool,
    pub(crate) default: Option<Box<Bytes>>,
    pub(crate) given: Option<Box<Given>>,
}

/// The answer that closed a question.
pub(crate) struct Given {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) answer: Bytes,
    /// Who answered; nobody did when it is the default.
    pub(crate) by: GivenBy,
}

/// Where an answer came from.
pub(crate) enum GivenBy {
    Actor(Option<String>),
    Default,
}

impl Question {
    pub(crate) fn new(new: NewInterrupt, ord: u64, run: Slot, created_at: Timestamp, expires_at: Timestamp) -> Self {
        Self {
            ord,
            run,
            next_closed: None,
            request_id: new.request_id,
            token: new.token,
            ask: new.ask.0.into(),
            workflow: new.workflow.into(),
            node: new.node.into(),
            body: new.question,
            created_at,
            expires_at,
            status: InterruptStatus::Pending,
            optional_cancel: new.optional_cancel,
            after_response_completed: new.after_response_completed,
            default: new.default.map(Box::new),
            given: None,
        }
    }

    /// Whether its time is past; a question is open until its deadline, not at it.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }

    /// What was published, for a record or to be published again.
    pub(crate) fn published(&self) -> NewInterrupt {
        NewInterrupt {
            request_id: self.request_id.clone(),
            token: self.token.clone(),
            ask: AskKey(String::from(&*self.ask)),
            workflow: String::from(&*self.workflow),
            node: String::from(&*self.node),
            question: self.body.clone(),
            expires_in: self.expires_at.since(self.created_at),
            default: self.default.as_deref().cloned(),
            optional_cancel: self.optional_cancel,
            after_response_completed: self.after_response_completed,
        }
    }

    /// The receipt of the answer that somebody gave.
    pub(crate) fn receipt(&self, run_id: &RunId) -> Option<Receipt> {
        let given = self.given.as_deref()?;
        let GivenBy::Actor(actor) = &given.by else { return None };
        Some(Receipt {
            request_id: self.request_id.clone(),
            run_id: run_id.clone(),
            seq: given.seq,
            at: given.at,
            actor: actor.clone(),
        })
    }

    /// The answer as a driver receives it that has seen this many.
    pub(crate) fn delivery(&self, seen: u64) -> Option<AnswerRecord> {
        let given = self.given.as_deref().filter(|given| given.seq > seen)?;
        let (actor, by_default) = match &given.by {
            GivenBy::Actor(actor) => (actor.clone(), false),
            GivenBy::Default => (None, true),
        };
        Some(AnswerRecord {
            seq: given.seq,
            request_id: self.request_id.clone(),
            ask: AskKey(String::from(&*self.ask)),
            answer: given.answer.clone(),
            at: given.at,
            actor,
            by_default,
        })
    }
}
