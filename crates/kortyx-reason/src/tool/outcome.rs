//! What becomes of a call.

use kortyx_protocol::{RawJson, json};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a tool returns.
///
/// Anything that serializes converts into it with [`ToolOutput::of`]; the functions given to [`tool`](super::tool) return such values.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput(pub(super) Value);

impl ToolOutput {
    /// This value.
    ///
    /// # Errors
    /// It does not serialize, or holds a number that JSON cannot.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, kortyx_protocol::JsonError> {
        Ok(Self(RawJson::of(value)?.to_value()?))
    }
}

/// How a call ended. Each is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ToolStatus {
    /// The tool ran and returned.
    Completed,
    /// The tool ran and failed, took too long or returned too much.
    Failed,
    /// The arguments do not fit, or there is no such tool. The tool did not run.
    Invalid,
    /// A person rejected it. The tool did not run.
    Rejected,
    /// It repeats a call that a person rejected, or comes after the last question that was allowed. The tool did not run.
    Refused,
}

/// What became of a call that the model asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// How it ended.
    pub status: ToolStatus,
    /// The arguments that it ran with, or would have: those of the person who edited them, if one did.
    pub arguments: Value,
    /// What the tool returned; `null` when it did not.
    pub output: Value,
    /// What the model was told.
    pub content: String,
}

/// The text that stands for a value in a conversation.
pub(crate) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => json::canonical(other).unwrap_or_default(),
    }
}
