//! Questions as clients see them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{RequestId, ResumeToken, Timestamp, present::present};

/// What form of answer a question wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum InterruptKind {
    /// Exactly one id.
    Choice,
    /// Several distinct ids.
    MultiChoice,
    /// A text.
    Text,
    /// A value that fits a contract's response schema.
    Custom,
}

impl InterruptKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Choice => "choice",
            Self::MultiChoice => "multi-choice",
            Self::Text => "text",
            Self::Custom => "custom",
        }
    }
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptOption {
    /// What an answer names.
    pub id: String,
    /// What a person reads.
    pub label: String,
    /// More for a person to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl InterruptOption {
    /// An option without a description.
    pub fn new(id: impl Into<String>, label: impl Into<String>) -> Self {
        Self { id: id.into(), label: label.into(), description: None }
    }
}

/// The public part of a question. Option values stay on the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InterruptInput {
    /// What form of answer it wants.
    pub kind: InterruptKind,
    /// Whether several ids may be selected.
    pub multiple: bool,
    /// The question for a person to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The author's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The contract's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// The contract's request.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub request: Option<Value>,
    /// The options; empty for texts, contracts and dynamic pickers.
    #[serde(default)]
    pub options: Vec<InterruptOption>,
    /// The schema that a dynamic picker or a contract names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_id: Option<String>,
    /// That schema's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<String>,
    /// JSON Schema (2020-12) of a contract's answer, to build a form from.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub response_schema: Option<Value>,
    /// At least this many ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// At most this many ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// At least this many characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u32>,
    /// At most this many characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// What the author adds for clients.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub meta: Option<Value>,
}

impl InterruptInput {
    /// The input of a question of this kind, with nothing else set.
    pub fn new(kind: InterruptKind) -> Self {
        Self {
            kind,
            multiple: kind == InterruptKind::MultiChoice,
            question: None,
            id: None,
            contract: None,
            request: None,
            options: Vec::new(),
            schema_id: None,
            schema_version: None,
            response_schema: None,
            min: None,
            max: None,
            min_length: None,
            max_length: None,
            meta: None,
        }
    }
}

/// A question put to a person.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InterruptChunk {
    /// The question's public id; clients dedupe by it.
    pub request_id: RequestId,
    /// The secret that answers it.
    pub resume_token: ResumeToken,
    /// The workflow where it was asked (a child's own).
    pub workflow: String,
    /// The node where it was asked.
    pub node: String,
    /// The author's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The schema that a dynamic picker or a contract names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_id: Option<String>,
    /// That schema's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<String>,
    /// Its absolute deadline.
    pub expires_at: Timestamp,
    /// What to show and what to answer.
    pub input: InterruptInput,
}
