//! Payloads about questions.

use kortyx_protocol::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// The payload of `interrupt.created`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InterruptCreated {
    /// The question.
    pub interrupt_id: String,
    /// The same: the id that its request has on the wire.
    pub request_id: String,
    /// What form of answer it wants: `choice`, `multi-choice`, `text`, `custom`.
    pub kind: &'static str,
    /// How a person gets at the answer: `freeform`, `static-options`, `dynamic-picker`, `contract`.
    pub interaction_mode: &'static str,
    /// The id of its schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_id: Option<String>,
    /// The version of its schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<String>,
    /// The contract that it is asked with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// How many options it comes with.
    pub option_count: usize,
    /// The node that asks.
    pub node_id: String,
    /// Its deadline.
    pub expires_at: Timestamp,
    /// What it asks. Captured output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Value>,
    /// Its options, each with id, label and description, never with its value. Captured output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Value>,
    /// The request of a contract. Captured output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
}

/// The payload of `interrupt.resolved`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InterruptResolved {
    /// The question.
    pub interrupt_id: String,
    /// When the answer was accepted, on the store's clock.
    pub resolved_at: Timestamp,
    /// `resumed` when the run goes on, here or elsewhere; `failed` when it cannot go on here.
    pub resume_outcome: &'static str,
    /// Whether the answer is in this event.
    pub response_captured: bool,
    /// How long the question was open, in milliseconds.
    pub wait_ms: u64,
    /// The answer. Captured input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    /// The code of what kept the run from going on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_error: Option<&'static str>,
}

/// The payload of `interrupt.expired`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InterruptExpired {
    /// The question.
    pub interrupt_id: String,
    /// Its deadline.
    pub expires_at: Timestamp,
    /// Its default counts as the answer.
    pub default_applied: bool,
    /// Nothing has closed it yet: somebody read it past its deadline.
    pub derived: bool,
}

/// The payload of `interrupt.cancelled`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InterruptCancelled {
    /// The question.
    pub interrupt_id: String,
    /// Why: `answer`, `run`, or `superseded` when its session was taken back.
    pub reason: &'static str,
}
