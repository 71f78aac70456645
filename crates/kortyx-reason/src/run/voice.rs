//! What a client hears of the model and its tools.

use std::sync::Arc;

use kortyx_protocol::{StreamChunk, TextDelta, TextMark};
use kortyx_runtime::{NodeContext, NodeError};
use serde_json::Value;

use crate::tool::ToolStatus;

/// Sends a pass's text while it comes.
pub(super) struct Voice<'a> {
    ctx: &'a NodeContext,
    mark: Option<TextMark>,
    speaking: bool,
}

impl<'a> Voice<'a> {
    /// A voice for one pass; a silent one where nothing is emitted.
    pub(super) fn new(ctx: &'a NodeContext, emit: bool, op: &Arc<str>, step: u32) -> Self {
        let mark = emit.then(|| TextMark {
            node: Some(ctx.node().into()),
            id: None,
            op_id: Some(op.clone()),
            segment_id: Some(step.to_string().into()),
        });
        Self { ctx, mark, speaking: false }
    }

    async fn send(&self, chunk: StreamChunk) {
        // A text is a chunk that nodes send.
        let _ = self.ctx.chunk(chunk).await;
    }
}

impl Voice<'_> {
    /// More text.
    pub(super) async fn text(&mut self, delta: &str) {
        let Some(mark) = self.mark.clone() else { return };
        if !self.speaking {
            self.speaking = true;
            self.send(StreamChunk::TextStart(mark.clone())).await;
        }
        self.send(StreamChunk::TextDelta(TextDelta::of(&mark, delta))).await;
    }

    /// The pass is over, well or not.
    pub(super) async fn end(&mut self) {
        let Some(mark) = self.mark.clone().filter(|_| self.speaking) else { return };
        self.speaking = false;
        self.send(StreamChunk::TextEnd(mark)).await;
    }
}

/// A call as a client hears of it.
pub(super) struct CallVoice<'a> {
    pub(super) ctx: &'a NodeContext,
    pub(super) op: &'a Arc<str>,
    pub(super) tool: &'a str,
    pub(super) call: &'a str,
}

impl CallVoice<'_> {
    /// The call begins, with this input.
    pub(super) async fn start(&self, input: Value) -> Result<(), NodeError> {
        let (node, op_id, tool, tool_call_id) = self.names();
        self.ctx.chunk(StreamChunk::ToolCallStart { node, op_id, tool, tool_call_id, input }).await
    }

    /// The call has ended; `output` is what may be shown of its result.
    pub(super) async fn end(&self, status: ToolStatus, output: Value) -> Result<(), NodeError> {
        let (node, op_id, tool, tool_call_id) = self.names();
        let message = match status {
            ToolStatus::Completed => {
                let structured_content = matches!(output, Value::Object(_) | Value::Array(_)).then(|| output.clone());
                let chunk = StreamChunk::ToolCallResult {
                    node,
                    op_id,
                    tool,
                    tool_call_id,
                    content: output,
                    structured_content,
                };
                return self.ctx.chunk(chunk).await;
            }
            ToolStatus::Failed => "the tool failed",
            ToolStatus::Invalid => "the call does not fit the tool",
            ToolStatus::Rejected => "a person rejected the call",
            ToolStatus::Refused => "the call was refused",
        };
        self.ctx.chunk(StreamChunk::ToolCallError { node, op_id, tool, tool_call_id, message: message.into() }).await
    }

    fn names(&self) -> (Arc<str>, Arc<str>, Arc<str>, Arc<str>) {
        (self.ctx.node().into(), self.op.clone(), self.tool.into(), self.call.into())
    }
}
