//! The conversation with a model, in a form of our own.

use kortyx_protocol::{ChatMessage, JsonError, Role, json};
use serde::{Deserialize, Serialize};

/// One message of a conversation.
///
/// This is what is stored: nothing of a provider is in it, and the ids of tool calls are ours. An adapter translates it for its
/// provider, the same way each time.
///
/// ```
/// use kortyx_reason::Message;
///
/// let message = Message::user("What is due today?");
/// assert_eq!(Message::canonical(&[message])?, r#"[{"content":"What is due today?","role":"user"}]"#);
/// # Ok::<(), kortyx_protocol::JsonError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Message {
    /// The application speaks: instructions, also in the middle of a conversation.
    System {
        /// What it says.
        content: String,
    },
    /// The person, or whoever asks for something.
    User {
        /// What is said.
        content: String,
    },
    /// The model.
    Assistant {
        /// What it said; may be empty when it calls tools.
        content: String,
        /// The calls it asked for, in its order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// What became of a call.
    Tool {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool: String,
        /// The result as text; JSON where the tool returned more than a text.
        content: String,
        /// The tool did not do what it was asked.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// A call of a tool that a model asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// Unique within its conversation, and ours: `call_` with the place of the model pass and the place in it.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments as JSON text, canonical where it is JSON, else as the model wrote it.
    pub arguments: String,
}

impl ToolCall {
    /// A call with this text for its arguments, which is made canonical where it is JSON.
    pub fn new(id: impl Into<String>, tool: impl Into<String>, arguments: &str) -> Self {
        let value = json::from_str::<serde_json::Value>(arguments).ok();
        let canonical = value.and_then(|value| json::canonical(&value).ok());
        Self { id: id.into(), tool: tool.into(), arguments: canonical.unwrap_or_else(|| arguments.to_owned()) }
    }
}

impl Message {
    /// Instructions of the application.
    pub fn system(content: impl Into<String>) -> Self {
        Self::System { content: content.into() }
    }

    /// What a person says.
    pub fn user(content: impl Into<String>) -> Self {
        Self::User { content: content.into() }
    }

    /// What a model said, without calls.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::Assistant { content: content.into(), tool_calls: Vec::new() }
    }

    /// A conversation as canonical JSON: equal conversations are equal bytes.
    pub fn canonical(conversation: &[Self]) -> Result<String, JsonError> {
        json::canonical(conversation)
    }

    pub(crate) fn is_user(&self) -> bool {
        matches!(self, Self::User { .. })
    }

    pub(crate) fn is_assistant(&self) -> bool {
        matches!(self, Self::Assistant { .. })
    }
}

impl From<ChatMessage> for Message {
    fn from(message: ChatMessage) -> Self {
        match message.role {
            Role::User => Self::user(message.content),
            Role::Assistant => Self::assistant(message.content),
            Role::System => Self::system(message.content),
        }
    }
}
