//! Output to the client. What was delivered before a pause is not delivered again by replay.

use std::{future::poll_fn, sync::Arc, task::Poll};

use kortyx_protocol::{StreamChunk, StructuredChange, StructuredChunk, TextDelta};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    NodeContext, NodeError,
    context::{derived_id, hex},
    pass::{PassOver, PassRef},
    state::CallKey,
};

impl NodeContext {
    /// Streams text.
    ///
    /// Replay recognises what was delivered by its content and its count: text that differs from pass to pass is
    /// delivered again, so make it in a [`step`](NodeContext::step).
    pub async fn text(&self, text: impl Into<String>) {
        let node = Some(self.0.node.clone());
        self.emit(StreamChunk::TextDelta(TextDelta { delta: text.into(), node, ..TextDelta::default() })).await;
    }

    /// Sends a whole message.
    pub async fn message(&self, content: impl Into<String>) {
        self.emit(StreamChunk::Message { content: content.into(), node: Some(self.0.node.clone()) }).await;
    }

    /// Tells what the node is doing.
    pub async fn status(&self, message: impl Into<String>) {
        self.emit(StreamChunk::Status { message: message.into(), node: Some(self.0.node.clone()) }).await;
    }

    /// Opens a stream of structured data. Using an id again opens the next stream of that name.
    ///
    /// A stream that is opened within a step belongs to it: when the step has to be made again, because it failed or its process died,
    /// the client is told first that the stream no longer counts (`structured-data-invalidated`).
    pub fn structured(&self, id: &str, data_type: impl Into<Arc<str>>) -> StructuredStream {
        let key = self.0.with_pass(|pass| pass.next_key(&format!("structured:{id}")));
        let stream_id: Arc<str> = key.map_or_else(|_| String::new(), |key| derived_id(self, &key)).into();
        let opened_in = self.running_step();
        StructuredStream { ctx: self.clone(), stream_id, data_type: data_type.into(), id: id.into(), opened_in }
    }

    /// The step whose future is being polled.
    fn running_step(&self) -> Option<CallKey> {
        self.0.with_pass(|pass| pass.running_step.clone()).ok().flatten()
    }

    /// Hands a chunk over and waits until it is delivered, which holds the node back while the receiver is full.
    ///
    /// A step's chunks are part of its effect: replay does not run the step, so they do not count. Structured streams that it
    /// opens are taken back when it has to run again.
    pub(crate) async fn emit(&self, chunk: StreamChunk) {
        self.emit_of(chunk, self.running_step()).await;
    }

    /// `opened_in` is the step in which the stream was opened that a structured chunk belongs to.
    async fn emit_of(&self, chunk: StreamChunk, opened_in: Option<CallKey>) {
        if let Some(step) = self.running_step() {
            let own = opened_in.filter(|opened_in| *opened_in == step);
            self.0.shared.lock().note_stream(&chunk, own.map(|step| (self.0.activation, step)));
            return self.0.shared.io.chunks.send(chunk).await;
        }
        let Some(hash) = content_hash(&chunk) else { return };
        let Ok(number) = self.0.with_pass(|pass| pass.hand_over(chunk, hash)) else { return };
        self.0.sent(number).await;
    }
}

impl PassRef {
    /// Waits until an emission is over.
    pub(crate) async fn sent(&self, number: u64) {
        poll_fn(|cx| match self.with_pass(|pass| pass.is_sent(number, cx.waker())) {
            Ok(false) => Poll::Pending,
            Ok(true) | Err(PassOver) => Poll::Ready(()),
        })
        .await;
    }
}

/// What a chunk is recognised by.
pub(crate) fn content_hash(chunk: &StreamChunk) -> Option<Arc<str>> {
    let text = serde_json::to_vec(chunk).ok()?;
    Some(hex(&Sha256::digest(&text)).chars().take(16).collect::<String>().into())
}

/// A stream of structured data that the client reduces to one value.
pub struct StructuredStream {
    ctx: NodeContext,
    stream_id: Arc<str>,
    data_type: Arc<str>,
    id: Arc<str>,
    /// The step in which it was opened.
    opened_in: Option<CallKey>,
}

impl StructuredStream {
    /// Writes a value at a dot-separated path.
    pub async fn set<T: Serialize + ?Sized>(&self, path: &str, value: &T) -> Result<(), NodeError> {
        let value = value_of(value)?;
        self.send(StructuredChange::Set { path: path.to_owned(), value }).await;
        Ok(())
    }

    /// Adds items to the array at a path.
    pub async fn append<T: Serialize>(&self, path: &str, items: &[T]) -> Result<(), NodeError> {
        let items = items.iter().map(value_of).collect::<Result<_, _>>()?;
        self.send(StructuredChange::Append { path: path.to_owned(), items }).await;
        Ok(())
    }

    /// Adds text to the string at a path.
    pub async fn text_delta(&self, path: &str, delta: impl Into<String>) {
        self.send(StructuredChange::TextDelta { path: path.to_owned(), delta: delta.into() }).await;
    }

    /// Replaces everything and ends the stream.
    pub async fn finish<T: Serialize + ?Sized>(self, data: &T) -> Result<(), NodeError> {
        let data = value_of(data)?;
        self.send(StructuredChange::Final { data }).await;
        Ok(())
    }

    async fn send(&self, change: StructuredChange) {
        let mut chunk = StructuredChunk::new(self.stream_id.clone(), self.data_type.clone(), change);
        chunk.node = Some(self.ctx.0.node.clone());
        chunk.id = Some(self.id.clone());
        self.ctx.emit_of(chunk.into(), self.opened_in.clone()).await;
    }
}

fn value_of<T: Serialize + ?Sized>(value: &T) -> Result<Value, NodeError> {
    Ok(kortyx_protocol::RawJson::of(value)?.to_value()?)
}
