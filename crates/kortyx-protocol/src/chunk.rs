//! The chunks of a stream.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    CheckpointId, DoneData, Failure, InterruptChunk, RunId, SessionId, StructuredChunk, TextDelta, TextMark,
    present::present,
};

/// One piece of a response.
///
/// A stream is `session` first, then the turn's chunks, then an `interrupt` for every question open at the end, then
/// `checkpoint`, then `done`. A failure is `error` then `done`, without a checkpoint. Nothing follows `done`.
///
/// Names that repeat from chunk to chunk are `Arc<str>`, and what is large and rare is boxed, so chunks are cheap to build and
/// to clone.
///
/// ```
/// use kortyx_protocol::{StreamChunk, json};
///
/// let chunk = StreamChunk::text_delta("Hel");
/// assert_eq!(json::to_string(&chunk)?, r#"{"type":"text-delta","delta":"Hel"}"#);
/// # Ok::<(), kortyx_protocol::JsonError>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum StreamChunk {
    /// The conversation that the stream belongs to; always first.
    Session {
        /// The conversation.
        session_id: SessionId,
    },
    /// Where the turn is found in tracing; only with tracing.
    Trace {
        /// The trace.
        trace_id: Arc<str>,
        /// Its root span.
        span_id: Arc<str>,
        /// The run.
        run_id: RunId,
        /// The root span's name.
        root_span_name: Arc<str>,
    },
    /// What goes on, for people.
    Status {
        /// What goes on.
        message: String,
        /// The node that says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<Arc<str>>,
    },
    /// A streamed text begins.
    TextStart(TextMark),
    /// More of a streamed text.
    TextDelta(TextDelta),
    /// A streamed text ends.
    TextEnd(TextMark),
    /// A whole text.
    Message {
        /// The text.
        content: String,
        /// The node that says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<Arc<str>>,
    },
    /// A model calls a tool.
    ToolCallStart {
        /// The node that runs the model.
        node: Arc<str>,
        /// The model operation.
        op_id: Arc<str>,
        /// The tool's name.
        tool: Arc<str>,
        /// The call.
        tool_call_id: Arc<str>,
        /// The tool's input.
        input: Value,
    },
    /// A tool returned.
    ToolCallResult {
        /// The node that runs the model.
        node: Arc<str>,
        /// The model operation.
        op_id: Arc<str>,
        /// The tool's name.
        tool: Arc<str>,
        /// The call.
        tool_call_id: Arc<str>,
        /// What it returned, for the model.
        content: Value,
        /// What it returned, for programs.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        structured_content: Option<Value>,
    },
    /// A tool failed.
    ToolCallError {
        /// The node that runs the model.
        node: Arc<str>,
        /// The model operation.
        op_id: Arc<str>,
        /// The tool's name.
        tool: Arc<str>,
        /// The call.
        tool_call_id: Arc<str>,
        /// What went wrong.
        message: String,
    },
    /// A change of a structured stream.
    StructuredData(Box<StructuredChunk>),
    /// A structured stream no longer counts.
    StructuredDataInvalidated {
        /// The stream.
        stream_id: Arc<str>,
        /// The checkpoint that was rolled back to, when that is why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint_id: Option<CheckpointId>,
    },
    /// A question put to a person.
    Interrupt(Box<InterruptChunk>),
    /// The run goes on in another workflow.
    Transition {
        /// The workflow.
        transition_to: Arc<str>,
        /// What it is given.
        payload: Value,
    },
    /// The run used up one of its limits.
    LimitReached {
        /// The run.
        run_id: RunId,
        /// Which limit.
        limit: Arc<str>,
        /// How much it allows.
        maximum: u64,
        /// How much was used.
        consumed: u64,
    },
    /// The turn is kept; the session can come back to it.
    Checkpoint {
        /// The checkpoint.
        id: CheckpointId,
        /// Its session.
        session_id: SessionId,
        /// Its place in the session, from 0.
        turn_index: u64,
        /// What it is called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// The run was cancelled.
    Cancelled {
        /// Why, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The turn failed.
    Error {
        /// What happened and what to do, for people; the failure's message.
        message: String,
        /// What went wrong.
        failure: Box<Failure>,
    },
    /// The end.
    Done {
        /// How the run stands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Box<DoneData>>,
    },
}

impl StreamChunk {
    /// The conversation that the stream belongs to.
    pub fn session(session_id: SessionId) -> Self {
        Self::Session { session_id }
    }

    /// What goes on, said by no node.
    pub fn status(message: impl Into<String>) -> Self {
        Self::Status { message: message.into(), node: None }
    }

    /// A whole text, said by no node.
    pub fn message(content: impl Into<String>) -> Self {
        Self::Message { content: content.into(), node: None }
    }

    /// More of a streamed text, said by no node.
    pub fn text_delta(delta: impl Into<String>) -> Self {
        Self::TextDelta(TextDelta { delta: delta.into(), ..TextDelta::default() })
    }

    /// A failed turn, with the failure's message.
    pub fn error(failure: Failure) -> Self {
        Self::Error { message: failure.message.clone(), failure: Box::new(failure) }
    }

    /// The end, with or without how the run stands.
    pub fn done(data: Option<DoneData>) -> Self {
        Self::Done { data: data.map(Box::new) }
    }

    /// Its `type` on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Session { .. } => "session",
            Self::Trace { .. } => "trace",
            Self::Status { .. } => "status",
            Self::TextStart(_) => "text-start",
            Self::TextDelta(_) => "text-delta",
            Self::TextEnd(_) => "text-end",
            Self::Message { .. } => "message",
            Self::ToolCallStart { .. } => "tool-call-start",
            Self::ToolCallResult { .. } => "tool-call-result",
            Self::ToolCallError { .. } => "tool-call-error",
            Self::StructuredData(_) => "structured-data",
            Self::StructuredDataInvalidated { .. } => "structured-data-invalidated",
            Self::Interrupt(_) => "interrupt",
            Self::Transition { .. } => "transition",
            Self::LimitReached { .. } => "limit-reached",
            Self::Checkpoint { .. } => "checkpoint",
            Self::Cancelled { .. } => "cancelled",
            Self::Error { .. } => "error",
            Self::Done { .. } => "done",
        }
    }
}

impl From<InterruptChunk> for StreamChunk {
    fn from(chunk: InterruptChunk) -> Self {
        Self::Interrupt(Box::new(chunk))
    }
}

impl From<StructuredChunk> for StreamChunk {
    fn from(chunk: StructuredChunk) -> Self {
        Self::StructuredData(Box::new(chunk))
    }
}
