//! Executions: handles and answers, requests and results.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{RequestId, ResumeToken, RunId, SessionId};

/// Everything that is needed to answer one question.
///
/// It holds the question's secret: keep it where only those are who may answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResumeHandle {
    /// The question's secret.
    pub token: ResumeToken,
    /// The question.
    pub request_id: RequestId,
    /// The session of its run.
    pub session_id: SessionId,
    /// Its run.
    pub run_id: RunId,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ResumeResponse {
    /// A typed text.
    Text {
        /// The text, verbatim.
        text: String,
    },
    /// Selected options.
    Select {
        /// Their ids, in the order of selection.
        ids: Vec<String>,
    },
    /// A structured value, for contracts.
    Value {
        /// The value, verbatim; `null` is one.
        value: Value,
    },
    /// No answer: the run ends, or the node sees that the question was cancelled.
    Cancel,
}
