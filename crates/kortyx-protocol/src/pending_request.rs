//! Open questions of a checkpoint.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    InterruptInput, InterruptKind, InterruptOption, RequestId, ResumeToken, RunId, SessionId, Timestamp, millis,
    present::present,
};

/// An open question of a checkpoint. It holds the question's secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PendingRequest {
    /// The secret that answers it.
    pub token: ResumeToken,
    /// Its public id.
    pub request_id: RequestId,
    /// The session of its run.
    pub session_id: SessionId,
    /// Its run.
    pub run_id: RunId,
    /// The workflow where it was asked (a child's own).
    pub workflow: String,
    /// The node where it was asked.
    pub node: String,
    /// What to show, but for the options.
    pub schema: PendingSchema,
    /// The options; empty for texts, contracts and dynamic pickers.
    pub options: Vec<InterruptOption>,
    /// When it was asked; travels as epoch milliseconds.
    #[serde(with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "i64"))]
    pub created_at: Timestamp,
    /// How long it can be answered from then on: its deadline is `created_at + ttl_ms`.
    pub ttl_ms: u64,
}

impl PendingRequest {
    /// When it can no longer be answered.
    pub fn expires_at(&self) -> Timestamp {
        self.created_at.saturating_add(Duration::from_millis(self.ttl_ms))
    }
}

/// The public part of a question, but for its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PendingSchema {
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

impl From<InterruptInput> for (PendingSchema, Vec<InterruptOption>) {
    fn from(input: InterruptInput) -> Self {
        let schema = PendingSchema {
            kind: input.kind,
            multiple: input.multiple,
            question: input.question,
            id: input.id,
            contract: input.contract,
            request: input.request,
            schema_id: input.schema_id,
            schema_version: input.schema_version,
            response_schema: input.response_schema,
            min: input.min,
            max: input.max,
            min_length: input.min_length,
            max_length: input.max_length,
            meta: input.meta,
        };
        (schema, input.options)
    }
}
