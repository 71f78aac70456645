//! Executions: handles and answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{InterruptInput, RequestId, ResumeToken, RunId, SessionId, Timestamp};

/// Everything that is needed to answer one question.
///
/// It holds the question's secret: keep it where only those are who may answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
///
/// Two are the same answer when their [canonical JSON](crate::json::canonical) is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl ResumeResponse {
    /// A typed text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Selected options.
    pub fn select<I: Into<String>>(ids: impl IntoIterator<Item = I>) -> Self {
        Self::Select { ids: ids.into_iter().map(Into::into).collect() }
    }

    /// A structured value.
    pub fn value(value: impl Into<Value>) -> Self {
        Self::Value { value: value.into() }
    }

    /// Whether it is a cancellation.
    pub fn is_cancel(&self) -> bool {
        *self == Self::Cancel
    }
}

/// An open question of a suspended run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PendingQuestion {
    /// The workflow where it was asked (a child's own).
    pub workflow: String,
    /// The node where it was asked.
    pub node: String,
    /// The question.
    pub request_id: RequestId,
    /// Its absolute deadline.
    pub expires_at: Timestamp,
    /// What to show and what to answer.
    pub input: InterruptInput,
    /// What answers it.
    pub resume: ResumeHandle,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn an_answer_is_read_as_what_it_says() {
        for (text, answer) in [
            (r#"{"type":"text","text":""}"#, ResumeResponse::text("")),
            (r#"{"type":"select","ids":["a","b"]}"#, ResumeResponse::select(["a", "b"])),
            (r#"{"type":"value","value":null}"#, ResumeResponse::value(Value::Null)),
            (r#"{"type":"value","value":18446744073709551615}"#, ResumeResponse::value(u64::MAX)),
            (r#"{"type":"cancel"}"#, ResumeResponse::Cancel),
        ] {
            assert_eq!(json::from_str::<ResumeResponse>(text).unwrap(), answer);
            assert_eq!(json::to_string(&answer).unwrap(), text);
        }
        assert!(json::from_str::<ResumeResponse>(r#"{"type":"cancel","extra":1}"#).unwrap().is_cancel());
    }

    #[test]
    fn a_malformed_answer_is_refused() {
        for text in [
            "null",
            "{}",
            r#"{"type":"maybe"}"#,
            r#"{"type":"text"}"#,
            r#"{"type":"text","text":null}"#,
            r#"{"type":"select","ids":"a"}"#,
            r#"{"type":"select","ids":[1]}"#,
            r#"{"type":"value"}"#,
        ] {
            assert!(json::from_str::<ResumeResponse>(text).is_err(), "{text}");
        }
    }
}
