//! What is told of models and tools: their spans, as the OpenTelemetry conventions for generative models name them, and moments.

use kortyx_protocol::{FailureCode, RawJson, Usage};
use kortyx_runtime::{Content, End, ModelName, NodeContext, Work};
use serde_json::{Value, json};
use tracing::{Span, field, info_span};

use crate::{
    FinishReason, Message, Model, ModelSettings, ReasonError, Tool, ToolError,
    model::{Collected, RequestedCall},
    tool::{Performance, ToolStatus, redacted},
};

/// A pass of a model that runs now. Dropping it ends it as dropped.
pub(super) struct PassTold<'a> {
    ctx: &'a NodeContext,
    pub(super) span: Span,
    step: &'a str,
    /// Only where somebody observes the run.
    name: Option<ModelName>,
    hidden: Hidden<'a>,
    is_open: bool,
}

/// What may not be seen of a tool's arguments and results, by its name.
pub(super) type Hidden<'a> = &'a (dyn Fn(&str) -> Vec<String> + Sync);

impl<'a> PassTold<'a> {
    /// A model is asked.
    pub(super) fn begin(
        ctx: &'a NodeContext,
        step: &'a str,
        model: &dyn Model,
        (messages, settings): (&[Message], &ModelSettings),
        hidden: Hidden<'a>,
    ) -> Self {
        let span = info_span!(
            "kortyx.model",
            otel.name = %format_args!("chat {}", model.name()),
            otel.kind = "client",
            otel.status_code = field::Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = model.provider(),
            gen_ai.request.model = model.name(),
            gen_ai.request.temperature = settings.temperature,
            gen_ai.request.max_tokens = settings.max_output_tokens,
            gen_ai.conversation.id = ctx.session_id().as_str(),
            gen_ai.usage.input_tokens = field::Empty,
            gen_ai.usage.output_tokens = field::Empty,
            gen_ai.response.finish_reasons = field::Empty,
            kortyx.outcome = field::Empty,
            error.type = field::Empty,
        );
        let name = ctx.is_observed().then(|| named(model));
        let told = Self { ctx, span, step, name, hidden, is_open: true };
        let captured = if ctx.captures().input { heard(messages, hidden) } else { None };
        let input = captured.as_ref();
        told.tell(|model| Work::ModelStarted { step, model, input });
        told
    }

    /// The model has answered, or has not.
    pub(super) fn end(&mut self, answer: &Result<Collected, ReasonError>) {
        match answer {
            Ok(collected) => self.close(End::Completed, Some(collected)),
            Err(error) => self.close(End::Failed(error.code()), None),
        }
    }

    fn close(&mut self, end: End, answer: Option<&Collected>) {
        if !std::mem::replace(&mut self.is_open, false) {
            return;
        }
        let usage = answer.map(|answer| answer.usage).filter(|usage| *usage != Usage::default());
        let finish = answer.and_then(|answer| answer.finish).map(finish_reason);
        if let Some(usage) = usage {
            self.span.record("gen_ai.usage.input_tokens", usage.input);
            self.span.record("gen_ai.usage.output_tokens", usage.output);
        }
        if let Some(finish) = finish {
            self.span.record("gen_ai.response.finish_reasons", finish);
        }
        close(&self.span, end);
        let tool_calls = answer.map_or(0, |answer| answer.calls.len());
        let captured = answer.filter(|_| self.ctx.captures().output).and_then(|answer| said(answer, self.hidden));
        let (step, output) = (self.step, captured.as_ref());
        self.tell(|model| Work::ModelEnded { step, model, end, usage, finish, tool_calls, output });
    }

    fn tell<'t>(&'t self, work: impl FnOnce(&'t ModelName) -> Work<'t>) {
        if let Some(name) = &self.name {
            self.span.in_scope(|| self.ctx.tell(|| work(name)));
        }
    }
}

impl Drop for PassTold<'_> {
    fn drop(&mut self) {
        self.close(End::Dropped, None);
    }
}

/// A call of a tool as it is told.
#[derive(Clone, Copy)]
pub(super) struct Called<'a> {
    pub(super) ctx: &'a NodeContext,
    pub(super) step: &'a str,
    pub(super) tool: &'a dyn Tool,
    pub(super) call_id: &'a str,
    pub(super) approved: bool,
}

/// A tool that runs now. Dropping it ends it as dropped.
pub(super) struct ToolTold<'a> {
    called: Called<'a>,
    pub(super) span: Span,
    is_open: bool,
}

impl<'a> ToolTold<'a> {
    /// A tool is run.
    pub(super) fn begin(called: Called<'a>, arguments: &Value) -> Self {
        let Called { ctx, step, tool, call_id, approved } = called;
        let span = info_span!(
            "kortyx.tool",
            otel.name = %format_args!("execute_tool {}", tool.name()),
            otel.status_code = field::Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = tool.name(),
            gen_ai.tool.call.id = call_id,
            gen_ai.tool.type = "function",
            gen_ai.conversation.id = ctx.session_id().as_str(),
            kortyx.approved = approved,
            kortyx.outcome = field::Empty,
            error.type = field::Empty,
        );
        let told = Self { called, span, is_open: true };
        let captured = ctx.captures().input.then(|| told.shown(arguments)).flatten();
        let (tool, input) = (tool.name(), captured.as_ref());
        told.tell(|| Work::ToolStarted { step, tool, call_id, approved, input });
        told
    }

    /// The tool has ended.
    pub(super) fn end(&mut self, result: &Result<Performance, ToolError>) {
        let failed = End::Failed(FailureCode::ExecutionFailed);
        match result {
            Ok(Performance::Ended(performed)) if performed.status == ToolStatus::Completed => {
                self.close(End::Completed, Some(&performed.output));
            }
            Ok(Performance::Asks(_)) => self.close(End::Paused, None),
            Ok(Performance::Ended(_)) | Err(_) => self.close(failed, None),
        }
    }

    fn close(&mut self, end: End, output: Option<&Value>) {
        if !std::mem::replace(&mut self.is_open, false) {
            return;
        }
        close(&self.span, end);
        let Called { ctx, step, tool, call_id, .. } = self.called;
        let captured = output.filter(|_| ctx.captures().output).and_then(|output| self.shown(output));
        let (tool, output) = (tool.name(), captured.as_ref());
        self.tell(|| Work::ToolEnded { step, tool, call_id, end, output });
    }

    /// What may be seen of arguments or a result.
    fn shown(&self, value: &Value) -> Option<Content> {
        RawJson::of(&redacted(value, &self.called.tool.policy().redact)).ok().map(Content::new)
    }

    fn tell<'t>(&'t self, work: impl FnOnce() -> Work<'t>) {
        self.span.in_scope(|| self.called.ctx.tell(work));
    }
}

impl Drop for ToolTold<'_> {
    fn drop(&mut self) {
        self.close(End::Dropped, None);
    }
}

/// Notes on a span how what it stands for ended. A pause is no error.
fn close(span: &Span, end: End) {
    if span.is_disabled() {
        return;
    }
    span.record("kortyx.outcome", end.as_str());
    if end == End::Paused {
        tracing::info!(parent: span, "paused");
    }
    if let Some(code) = end.code() {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", code.as_str());
    }
}

fn named(model: &dyn Model) -> ModelName {
    let name = ModelName::new(model.name());
    match model.provider() {
        Some(provider) => name.of(provider),
        None => name,
    }
}

fn finish_reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::Refusal => "content_filter",
        FinishReason::Other => "other",
    }
}

/// What a model is given, as content.
fn heard(messages: &[Message], hidden: Hidden<'_>) -> Option<Content> {
    let shown: Vec<Message> = messages.iter().map(|message| shown(message, hidden)).collect();
    RawJson::parse(Message::canonical(&shown).ok()?).ok().map(Content::new)
}

fn shown(message: &Message, hidden: Hidden<'_>) -> Message {
    let mut message = message.clone();
    match &mut message {
        Message::Assistant { tool_calls, .. } => {
            for call in tool_calls {
                call.arguments = without(&call.arguments, &hidden(&call.tool));
            }
        }
        Message::Tool { tool, content, .. } => *content = without(content, &hidden(tool)),
        _ => {}
    }
    message
}

/// What a model said, as content.
fn said(answer: &Collected, hidden: Hidden<'_>) -> Option<Content> {
    let call =
        |call: &RequestedCall| json!({ "tool": call.tool, "arguments": without(&call.arguments, &hidden(&call.tool)) });
    let calls: Vec<Value> = answer.calls.iter().map(call).collect();
    RawJson::of(&json!({ "text": answer.text, "toolCalls": calls })).ok().map(Content::new)
}

/// A text without what may not be seen of it. One that is no JSON cannot be looked into, so nothing of it is shown.
fn without(text: &str, pointers: &[String]) -> String {
    if pointers.is_empty() {
        return text.to_owned();
    }
    let value = kortyx_protocol::json::from_str::<Value>(text);
    value.map(|value| redacted(&value, pointers).to_string()).unwrap_or_default()
}
