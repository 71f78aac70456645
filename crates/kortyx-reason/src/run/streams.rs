//! What a client is told of outputs while a model writes them, within one attempt of a pass.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::{FutureExt as _, future::BoxFuture};
use kortyx_contracts::OutputError;
use kortyx_protocol::{RawJson, StreamChunk, StructuredChange, StructuredChunk};
use kortyx_runtime::{NodeContext, NodeError};
use serde_json::Value;

use super::voice::Voice;
use crate::{
    Outputs,
    issues::listed,
    model::Listener,
    output::Streamed,
    outputs::Declared,
    partial::{Finished, PartialJson, Rejected, StructuredOutput, Wrapping},
};

/// Hears a pass, and tells the client.
pub(super) struct Ears<'a> {
    pub(super) voice: Voice<'a>,
    pub(super) streams: Streams<'a>,
}

impl Ears<'_> {
    /// Ends what was told of a pass that came to nothing.
    pub(super) async fn hush(&mut self) {
        self.voice.end().await;
        self.streams.abandon().await;
    }
}

impl Listener for Ears<'_> {
    fn text<'a>(&'a mut self, delta: &'a str) -> BoxFuture<'a, ()> {
        async move {
            self.voice.text(delta).await;
            self.streams.text(delta).await;
        }
        .boxed()
    }

    fn call<'a>(&'a mut self, index: u32, tool: &'a str, arguments: &'a str) -> BoxFuture<'a, ()> {
        self.streams.call(index, tool, arguments).boxed()
    }

    fn end(&mut self) -> BoxFuture<'_, ()> {
        self.voice.end().boxed()
    }
}

/// The structured streams of one attempt.
pub(super) struct Streams<'a> {
    ctx: &'a NodeContext,
    outputs: &'a Outputs,
    /// What the ids of the streams of its calls begin with, and those of no other attempt.
    attempt: String,
    text: Option<(String, StructuredOutput)>,
    calls: BTreeMap<u32, Writing<'a>>,
    /// Streams of which something was told and whose end is told later.
    accepted: Vec<String>,
}

/// A call that the model is writing.
enum Writing<'a> {
    /// Of a tool that is not known yet.
    Unnamed(String),
    /// Of a tool that delivers nothing.
    Other,
    /// Of one that delivers with this contract.
    Output(Box<Open<'a>>),
}

/// An output that the model is writing.
struct Open<'a> {
    contract: &'a Declared,
    id: String,
    output: StructuredOutput,
}

/// What a model wrote, when it fits, and the stream in which a client has it.
pub(super) struct Written {
    pub(super) data: Value,
    pub(super) stream: Option<String>,
}

impl<'a> Streams<'a> {
    pub(super) fn new(ctx: &'a NodeContext, outputs: &'a Outputs) -> Result<Self, NodeError> {
        let attempt = if outputs.is_empty() { String::new() } else { ctx.random_id()? };
        Ok(Self { ctx, outputs, attempt, text: None, calls: BTreeMap::new(), accepted: Vec::new() })
    }

    /// Streams the text too, as an object of this schema.
    pub(super) fn of_text(mut self, streamed: &Streamed, schema: &RawJson) -> Result<Self, NodeError> {
        let id = self.ctx.random_id()?;
        let output = StructuredOutput::new(id.as_str(), streamed.data_type.clone(), streamed.json(schema));
        self.text = Some((id, output.node(self.ctx.node())));
        Ok(self)
    }

    async fn send(&self, chunks: impl IntoIterator<Item = StreamChunk>) {
        for chunk in chunks {
            // Structured data is what nodes send.
            let _ = self.ctx.chunk(chunk).await;
        }
    }

    async fn text(&mut self, delta: &str) {
        let chunks = self.text.as_mut().map(|(_, output)| output.push(delta.as_bytes()));
        self.send(chunks.unwrap_or_default()).await;
    }

    async fn call(&mut self, index: u32, tool: &str, arguments: &str) {
        if self.outputs.is_empty() {
            return;
        }
        let writing = self.calls.entry(index).or_insert_with(|| Writing::Unnamed(String::new()));
        if let Writing::Unnamed(early) = writing {
            early.push_str(arguments);
            if tool.is_empty() {
                return;
            }
            let early = std::mem::take(early);
            *writing = Writing::begin(self.ctx, self.outputs, tool, format!("{}-{index}", self.attempt));
            if let Writing::Output(open) = writing {
                let chunks = open.push(&early);
                self.send(chunks).await;
            }
        } else if let Writing::Output(open) = writing {
            let chunks = open.push(arguments);
            self.send(chunks).await;
        }
    }

    /// Takes a call for complete, when it is one that delivers: gives the value, or tells what is wrong with it, the client too.
    /// `refused` is why it cannot count, whatever it is.
    pub(super) async fn finish(
        &mut self,
        index: u32,
        refused: Option<&str>,
    ) -> Option<(&'a Declared, Result<Written, String>)> {
        let Some(Writing::Output(open)) = self.calls.remove(&index) else { return None };
        let Open { contract, id, mut output } = *open;
        if output.is_blank() {
            // Models leave arguments empty where there are none.
            let chunks = output.push(b"{}");
            self.send(chunks).await;
        }
        let Finished { chunks, outcome } = output.finish(|data| match refused {
            Some(why) => Err(why.to_owned()),
            None => contract.accept(data).map(|()| data.clone()).map_err(|error| refusal(&error)),
        });
        let written = match outcome {
            // The end is told when the call's turn has come.
            Ok(data) => {
                self.accepted.extend(contract.has_fields().then(|| id.clone()));
                Ok(Written { data, stream: contract.is_streamed.then_some(id) })
            }
            Err(rejected) => {
                self.send(chunks).await;
                Err(match rejected {
                    Rejected::Json(error) => format!("the arguments are not JSON: {error}"),
                    Rejected::Refused(why) => why,
                })
            }
        };
        Some((contract, written))
    }

    /// Takes the text for complete: as the final object, whose end is told later, or as something else.
    pub(super) async fn finish_text(&mut self, is_final: bool) -> Option<String> {
        let (id, output) = self.text.take()?;
        if is_final {
            self.accepted.push(id.clone());
            return Some(id);
        }
        self.send(output.abandon()).await;
        None
    }

    /// Takes everything back: the model's answer broke off, or does not count.
    pub(super) async fn abandon(&mut self) {
        let text = self.text.take().and_then(|(_, output)| output.abandon());
        let calls = std::mem::take(&mut self.calls).into_values().filter_map(|writing| match writing {
            Writing::Output(open) => open.output.abandon(),
            Writing::Unnamed(_) | Writing::Other => None,
        });
        let accepted = std::mem::take(&mut self.accepted)
            .into_iter()
            .map(|stream| StreamChunk::StructuredDataInvalidated { stream_id: stream.into(), checkpoint_id: None });
        let chunks: Vec<StreamChunk> = text.into_iter().chain(calls).chain(accepted).collect();
        self.send(chunks).await;
    }
}

impl<'a> Writing<'a> {
    fn begin(ctx: &NodeContext, outputs: &'a Outputs, tool: &str, id: String) -> Self {
        let Some(contract) = outputs.find(tool) else { return Self::Other };
        let json = PartialJson::new(contract.fields(), Wrapping::Bare);
        let info = contract.info;
        let output =
            StructuredOutput::new(id.as_str(), info.name, json).node(ctx.node()).schema(info.schema_id, info.version);
        Self::Output(Box::new(Open { contract, id, output }))
    }
}

impl Open<'_> {
    fn push(&mut self, arguments: &str) -> Vec<StreamChunk> {
        self.output.push(arguments.as_bytes())
    }
}

/// What is wrong with a value, for the model.
fn refusal(error: &OutputError) -> String {
    match error {
        OutputError::Invalid { issues, .. } => listed(issues),
        other => other.to_string(),
    }
}

/// The end of a stream: what a client has from then on.
pub(super) struct Last<'a> {
    pub(super) stream: &'a str,
    pub(super) data_type: Arc<str>,
    /// The schema and its version.
    pub(super) schema: Option<(&'a str, &'a str)>,
    pub(super) data: Value,
}

impl Last<'_> {
    pub(super) fn chunk(self, ctx: &NodeContext) -> StreamChunk {
        let mut chunk = StructuredChunk::new(self.stream, self.data_type, StructuredChange::Final { data: self.data });
        chunk.node = Some(ctx.node().into());
        (chunk.schema_id, chunk.schema_version) = match self.schema {
            Some((id, version)) => (Some(id.into()), Some(version.into())),
            None => (None, None),
        };
        chunk.into()
    }
}
