//! What a model is to us.

mod collect;
mod error;
mod patience;
mod retry;
mod scripted;

use std::sync::Arc;

use futures_util::{future::BoxFuture, stream::BoxStream};
use kortyx_protocol::{RawJson, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Message;

pub(crate) use self::{
    collect::{Collected, Listener, RequestedCall, collect},
    patience::{PassClock, Patience},
    retry::answered,
};
pub use self::{
    error::{ModelError, ModelErrorKind},
    retry::ModelRetry,
    scripted::{Played, Script, ScriptedModel},
};

/// A language model behind whatever provider.
///
/// One pass is one request: the conversation goes in, events come out. The trait knows no memory between passes. Wrap it in an
/// `Arc` to share it.
pub trait Model: Send + Sync {
    /// What it is called, for people and logs.
    fn name(&self) -> &str;

    /// Who provides it, in the words of the OpenTelemetry conventions for generative models where they have one: `openai`, `anthropic`, …
    fn provider(&self) -> Option<&str> {
        None
    }

    /// What it can do.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Begins a pass.
    ///
    /// The stream ends with [`ModelEvent::Finish`]; one that ends without was cut off, and one of more than 16 MiB of text and arguments is
    /// refused. An error says whether the same request may succeed later, and how long to wait. Dropping the stream ends the request.
    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>>;
}

/// The events of one pass.
pub type ModelStream<'a> = BoxStream<'a, Result<ModelEvent, ModelError>>;

/// What a model can do; what it cannot is asked for in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// It can call tools. Without it a call with tools or contracts is refused before the first pass.
    pub tools: bool,
    /// It can be held to a JSON Schema.
    pub json_schema: bool,
}

impl Default for Capabilities {
    /// Tools and schemas.
    fn default() -> Self {
        Self { tools: true, json_schema: true }
    }
}

impl Capabilities {
    /// Says whether it can call tools.
    #[must_use]
    pub fn with_tools(mut self, tools: bool) -> Self {
        self.tools = tools;
        self
    }

    /// Says whether it can be held to a JSON Schema.
    #[must_use]
    pub fn with_json_schema(mut self, json_schema: bool) -> Self {
        self.json_schema = json_schema;
        self
    }
}

/// What a model is given for one pass.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ModelRequest<'a> {
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The tools it may call.
    pub tools: &'a [ToolDeclaration],
    /// JSON mode: its answer is to be one JSON value that fits this schema. Only where the model is
    /// [capable](Capabilities::json_schema) of it.
    pub json_schema: Option<&'a RawJson>,
    /// How it is to answer.
    pub settings: &'a ModelSettings,
}

impl<'a> ModelRequest<'a> {
    /// A request with these messages, without tools.
    pub fn new(messages: &'a [Message], settings: &'a ModelSettings) -> Self {
        Self { messages, tools: &[], json_schema: None, settings }
    }
}

/// How a model is to answer; what is not set is the provider's to say.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelSettings {
    /// How much chance is in it.
    pub temperature: Option<f64>,
    /// The most tokens of one answer.
    pub max_output_tokens: Option<u32>,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolDeclaration {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// JSON Schema (2020-12) of its arguments.
    pub parameters: RawJson,
}

impl ToolDeclaration {
    /// A tool as a model sees it.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: RawJson) -> Self {
        Self { name: name.into(), description: description.into(), parameters }
    }
}

/// One event of a pass.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// More of the text.
    Text(String),
    /// A call of a tool, or more of one.
    ToolCall {
        /// Which call of the pass, in the model's order.
        index: u32,
        /// The tool's name; may be empty in all parts but one.
        tool: String,
        /// More of the JSON text of the arguments.
        arguments: String,
    },
    /// What the pass costs; the last one counts.
    Usage(Usage),
    /// Something that the caller should know.
    Warning(String),
    /// What the provider says beside. It is handed out with the result and never given to a model.
    ProviderMetadata(Value),
    /// The end.
    Finish(FinishReason),
}

/// Why a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// It calls tools.
    ToolCalls,
    /// The answer was cut at the most tokens.
    Length,
    /// It refused, or a filter of the provider did.
    Refusal,
    /// Something else.
    Other,
}

macro_rules! forward_model {
    ($($pointer:ty),*) => {$(
        impl<M: Model + ?Sized> Model for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn provider(&self) -> Option<&str> {
                (**self).provider()
            }

            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }

            fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
                (**self).stream(request)
            }
        }
    )*};
}

forward_model!(Arc<M>, Box<M>);
