//! Chat messages and the resume metadata they carry.

use serde_json::Value;

use crate::{RequestId, ResumeToken};

/// A message's resume metadata: which question it answers, and what it says.
#[derive(Debug, Clone)]
pub struct ResumeMeta {
    /// The question's secret.
    pub token: ResumeToken,
    /// The question.
    pub request_id: RequestId,
    /// Ids of selected options, in the order of selection.
    pub selected: Vec<String>,
    /// A typed text.
    pub text: Option<String>,
    /// A structured answer; `Some(Value::Null)` is one.
    pub value: Option<Value>,
    /// The person cancelled.
    pub cancel: bool,
}
