//! Payloads about what takes time.

use kortyx_protocol::Usage;
use serde::Serialize;
use serde_json::Value;

/// What takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SpanKind {
    /// A run, from where it starts or goes on to where it pauses or ends.
    Run,
    /// One pass over a node.
    Node,
    /// A step.
    Step,
    /// A call of a child workflow.
    Child,
    /// A model is asked. One that ends well ends with `generation.completed`.
    Generation,
}

/// Tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Read.
    pub input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
    /// Both, as the provider counts.
    pub total_tokens: u64,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        Self { input_tokens: usage.input, output_tokens: usage.output, total_tokens: usage.total }
    }
}

/// The payload of `span.started`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpanStarted {
    /// What begins.
    pub kind: SpanKind,
    /// Its name: of the workflow, the node, the step, the child's workflow or the model.
    pub name: String,
    /// It was begun before and goes on.
    pub resumed: bool,
    /// Why a run goes on: `answered`, `defaulted`, `recovered`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_reason: Option<&'static str>,
    /// The activation's number within the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<u32>,
    /// Which attempt it is, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Which use of its id it is in the activation, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<u32>,
    /// The id of a child call, or the step that asks a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The provider of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What it is given. Captured input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

impl SpanStarted {
    /// Something begins of which no more is known.
    pub fn new(kind: SpanKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            resumed: false,
            resume_reason: None,
            activation: None,
            attempt: None,
            occurrence: None,
            call_id: None,
            provider: None,
            input: None,
        }
    }
}

/// The payload of `span.ended`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpanEnded {
    /// What ends.
    pub kind: SpanKind,
    /// Its name.
    pub name: String,
    /// How: `completed`, `paused`, `dropped`; of runs `completed`, `suspended`, `expired`, `lease-lost`.
    pub outcome: &'static str,
    /// How long it took, in milliseconds, when its beginning was told too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The activation's number within the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<u32>,
    /// Which attempt it was, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Which use of its id it was in the activation, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<u32>,
    /// The id of a child call, or the step that asked a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// How many questions a suspended run waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_interrupts: Option<usize>,
    /// The tokens that a run has used so far with its children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// What it gave. Captured output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl SpanEnded {
    /// Something ended of which no more is known.
    pub fn new(kind: SpanKind, name: impl Into<String>, outcome: &'static str) -> Self {
        Self {
            kind,
            name: name.into(),
            outcome,
            duration_ms: None,
            activation: None,
            attempt: None,
            occurrence: None,
            call_id: None,
            open_interrupts: None,
            usage: None,
            output: None,
        }
    }
}

/// The payload of `span.failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpanFailed {
    /// What failed.
    pub kind: SpanKind,
    /// Its name.
    pub name: String,
    /// How: `failed`; of runs also `parked`.
    pub outcome: &'static str,
    /// The failure's code.
    pub code: &'static str,
    /// It is tried again.
    pub retries: bool,
    /// How long it took, in milliseconds, when its beginning was told too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The activation's number within the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<u32>,
    /// Which attempt it was, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Which use of its id it was in the activation, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<u32>,
    /// The id of a child call, or the step that asked a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The tokens that a run used with its children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

impl SpanFailed {
    /// Something failed of which no more is known.
    pub fn new(kind: SpanKind, name: impl Into<String>, code: &'static str) -> Self {
        Self {
            kind,
            name: name.into(),
            outcome: "failed",
            code,
            retries: false,
            duration_ms: None,
            activation: None,
            attempt: None,
            occurrence: None,
            call_id: None,
            usage: None,
        }
    }
}

/// The payload of `generation.completed`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationCompleted {
    /// The model.
    pub model: String,
    /// Its provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The step that asked it.
    pub call_id: String,
    /// The activation's number within the run.
    pub activation: u32,
    /// How long it took, in milliseconds, when its beginning was told too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The tokens, when the provider told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// Why it stopped: `stop`, `tool_calls`, `length`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// How many tools it calls.
    pub tool_calls: usize,
    /// What it said. Captured output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// The payload of `tool.started`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStarted {
    /// The tool.
    pub tool: String,
    /// The call's id.
    pub tool_call_id: String,
    /// A person had to approve the call.
    pub approved: bool,
    /// The activation's number within the run.
    pub activation: u32,
    /// The arguments. Captured input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

/// The payload of `tool.completed`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCompleted {
    /// The tool.
    pub tool: String,
    /// The call's id.
    pub tool_call_id: String,
    /// How: `completed`, `paused` when it asks a person, `dropped`.
    pub outcome: &'static str,
    /// The activation's number within the run.
    pub activation: u32,
    /// How long it took, in milliseconds, when its beginning was told too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The result. Captured output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// The payload of `tool.failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFailed {
    /// The tool.
    pub tool: String,
    /// The call's id.
    pub tool_call_id: String,
    /// The failure's code.
    pub code: &'static str,
    /// The activation's number within the run.
    pub activation: u32,
    /// How long it took, in milliseconds, when its beginning was told too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}
