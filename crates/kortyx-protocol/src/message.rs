//! Chat messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::ResumeMeta;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The workflow.
    Assistant,
    /// The application.
    System,
}

/// One message of a conversation. Any key beside these is an error.
///
/// ```
/// use kortyx_protocol::{ChatMessage, json};
///
/// let message: ChatMessage = json::from_str(r#"{"role":"user","content":"Hello"}"#)?;
/// assert_eq!(message, ChatMessage::user("Hello"));
/// assert!(json::from_str::<ChatMessage>(r#"{"role":"user","content":"Hello","name":"x"}"#).is_err());
/// # Ok::<(), kortyx_protocol::JsonError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
    /// The client's id of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The client's time of it; usually epoch milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Number>,
    /// What a program adds; holds the resume metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

impl ChatMessage {
    /// A message without id, time and metadata.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), id: None, timestamp: None, metadata: None }
    }

    /// A person's message.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(Role::User, content)
    }

    /// A workflow's message.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// An application's message.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(Role::System, content)
    }

    /// Makes it an answer; other metadata stays. The inverse of [`parse_resume_meta`](crate::parse_resume_meta).
    #[must_use]
    pub fn with_resume(mut self, meta: &ResumeMeta) -> Self {
        self.metadata.get_or_insert_default().insert("resume".to_owned(), meta.to_value());
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::{ChatMessage, json};

    #[test]
    fn a_message_travels_with_all_that_it_has() {
        let text = r#"{"role":"system","content":"","id":"m1","timestamp":1767226500000.5,"metadata":{"a":null}}"#;
        let message: ChatMessage = json::from_str(text).unwrap();
        assert_eq!(json::to_string(&message).unwrap(), text);
    }

    #[test]
    fn a_malformed_message_is_refused() {
        for text in [
            "[]",
            "{}",
            r#"{"role":"user"}"#,
            r#"{"role":"tool","content":"x"}"#,
            r#"{"role":"user","content":null}"#,
            r#"{"role":"user","content":"x","timestamp":"now"}"#,
            r#"{"role":"user","content":"x","metadata":[]}"#,
            r#"{"role":"user","content":"x","extra":1}"#,
            r#"{"role":"user","content":"x","metadata":{"resume":{"value":18446744073709551616}}}"#,
        ] {
            assert!(json::from_str::<ChatMessage>(text).is_err(), "{text}");
        }
    }
}
