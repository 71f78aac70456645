//! What a call to reason comes to.

use kortyx_protocol::Usage;
use serde_json::Value;

use crate::{Delivered, Emissions, FinishReason, InterruptHistory, ToolCall, ToolResult};

/// What a model came to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Reasoned<T = ()> {
    /// What it said last.
    pub text: String,
    /// The validated object, when one was asked for.
    pub output: T,
    /// What it returned, where a contract to return with is declared.
    pub returned: Option<Delivered>,
    /// What it emitted, in its order.
    pub emissions: Emissions,
    /// The calls that it asked for, those by which it asked a person or delivered something among them, in its order.
    pub tool_calls: Vec<ToolCall>,
    /// What became of the calls of tools, in the same order.
    pub tool_results: Vec<ToolResult>,
    /// What it asked people, and their answers.
    pub interrupt_history: InterruptHistory,
    /// What all passes cost.
    pub usage: Usage,
    /// Why the last pass ended.
    pub finish_reason: FinishReason,
    /// What the models warned of.
    pub warnings: Vec<String>,
    /// What the provider said beside its last answer.
    pub provider_metadata: Option<Value>,
    /// How many passes there were.
    pub steps: u32,
}

/// What was done before a call to reason failed.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What the model said last.
    pub text: String,
    /// The calls that it asked for.
    pub tool_calls: Vec<ToolCall>,
    /// What became of the calls of tools.
    pub tool_results: Vec<ToolResult>,
    /// What it asked people, and their answers.
    pub interrupt_history: InterruptHistory,
    /// What it emitted.
    pub emissions: Emissions,
    /// What all passes cost.
    pub usage: Usage,
    /// What the models warned of.
    pub warnings: Vec<String>,
    /// How many passes there were.
    pub steps: u32,
}

/// Adds what one more pass costs.
pub(crate) fn add(all: &mut Usage, pass: Usage) {
    all.input = all.input.saturating_add(pass.input);
    all.output = all.output.saturating_add(pass.output);
    all.total = all.total.saturating_add(pass.total);
}
