//! Reasoning with a model inside a node.
//!
#![doc = include_str!("../README.md")]

mod error;
#[cfg(any(feature = "genai", feature = "mcp"))]
mod http;
mod interrupts;
mod issues;
mod limits;
#[cfg(feature = "mcp")]
mod mcp;
mod message;
mod model;
mod output;
mod outputs;
pub mod partial;
#[cfg(feature = "genai")]
mod provider;
mod reason;
mod reasoned;
mod run;
mod tool;

pub use error::ReasonError;
pub use interrupts::{AskedAndAnswered, InterruptHistory, Interrupts, REQUEST_INPUT_PREFIX};
pub use kortyx_protocol::Usage;
pub use limits::{MODEL_PASSES, TOOL_CALLS};
#[cfg(feature = "mcp")]
pub use mcp::{ExcludedTool, McpCommand, McpError, McpHandshake, McpServer, McpServerBuilder, McpToolInfo, McpTools};
pub use message::{Message, ToolCall};
pub use model::{
    Capabilities, FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelRetry, ModelSettings,
    ModelStream, Played, Script, ScriptedModel, ToolDeclaration,
};
pub use outputs::{Delivered, EMIT_PREFIX, Emissions, Outputs, RETURN_PREFIX};
#[cfg(feature = "genai")]
pub use provider::GenaiModel;
pub use reason::{Reason, ReasonExt, WhileWaiting};
pub use reasoned::{Progress, Reasoned};
pub use tool::{
    Approval, FunctionTool, OnError, Tool, ToolContext, ToolError, ToolOutput, ToolPolicy, ToolResult, ToolStatus, tool,
};
