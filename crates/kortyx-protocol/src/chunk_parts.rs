//! What some chunks are made of.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RunId;

/// The beginning or the end of a streamed text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TextMark {
    /// The node that speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
    /// The author's id of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// The model operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_id: Option<Arc<str>>,
    /// The part of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_id: Option<Arc<str>>,
}

/// More of a streamed text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TextDelta {
    /// What to append.
    pub delta: String,
    /// The node that speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
    /// The author's id of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// The model operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_id: Option<Arc<str>>,
    /// The part of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_id: Option<Arc<str>>,
}

impl TextDelta {
    /// More of the text that this mark began.
    pub fn of(mark: &TextMark, delta: impl Into<String>) -> Self {
        let TextMark { node, id, op_id, segment_id } = mark.clone();
        Self { delta: delta.into(), node, id, op_id, segment_id }
    }
}

/// How a run stands at the end of a stream: the workflow's public data, never the journal, tokens or other internals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DoneData {
    /// The run.
    pub run_id: RunId,
    /// Its status, such as `completed` or `suspended`.
    pub status: String,
    /// The workflow that it is in now.
    pub current_workflow: String,
    /// Whether a question is open.
    pub awaiting_human_input: bool,
    /// The workflow's public data.
    pub data: Value,
}
