//! Output to the client. What was delivered before a pause is not delivered again by replay.

use std::{future::poll_fn, sync::Arc, task::Poll};

use kortyx_protocol::{StreamChunk, StructuredChange, StructuredChunk, TextDelta};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    NodeContext, NodeError,
    context::{derived_id, hex},
    pass::PassOver,
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
    pub fn structured(&self, id: &str, data_type: impl Into<Arc<str>>) -> StructuredStream {
        let key = self.0.with_pass(|pass| pass.next_key(&format!("structured:{id}")));
        let stream_id: Arc<str> = key.map_or_else(|_| String::new(), |key| derived_id(self, &key)).into();
        StructuredStream { ctx: self.clone(), stream_id, data_type: data_type.into(), id: id.into() }
    }

    /// Hands a chunk over and waits until it is delivered, which holds the node back while the receiver is full.
    ///
    /// A step's chunks are part of its effect: replay does not run the step, so they do not count.
    pub(crate) async fn emit(&self, chunk: StreamChunk) {
        if matches!(self.0.with_pass(|pass| pass.running_step.is_some()), Ok(true)) {
            self.0.shared.lock().note_stream(&chunk);
            return self.0.shared.io.chunks.send(chunk).await;
        }
        let Ok(text) = serde_json::to_vec(&chunk) else { return };
        let hash: String = hex(&Sha256::digest(&text)).chars().take(16).collect();
        let Ok(number) = self.0.with_pass(|pass| pass.hand_over(chunk, hash.into())) else { return };
        poll_fn(|cx| match self.0.with_pass(|pass| pass.is_sent(number, cx.waker())) {
            Ok(false) => Poll::Pending,
            Ok(true) | Err(PassOver) => Poll::Ready(()),
        })
        .await;
    }
}

/// A stream of structured data that the client reduces to one value.
pub struct StructuredStream {
    ctx: NodeContext,
    stream_id: Arc<str>,
    data_type: Arc<str>,
    id: Arc<str>,
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
        self.ctx.emit(chunk.into()).await;
    }
}

fn value_of<T: Serialize + ?Sized>(value: &T) -> Result<Value, NodeError> {
    Ok(kortyx_protocol::RawJson::of(value)?.to_value()?)
}
