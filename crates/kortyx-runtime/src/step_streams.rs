//! Structured streams that steps open: what a client has of them counts when the step is recorded.

use std::sync::Arc;

use kortyx_protocol::{StreamChunk, StructuredChange};
use serde::{Deserialize, Serialize};

use crate::{
    emit::content_hash,
    event::Event,
    pass::PassRef,
    shared::Core,
    state::{CallKey, Journal, RunState},
};

/// A stream that a step opened whose result is not recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StepStream {
    pub(crate) key: CallKey,
    pub(crate) stream: Arc<str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_final: bool,
}

/// What a step said of a stream that it opened.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) activation: u32,
    pub(crate) key: CallKey,
    pub(crate) what: Stand,
}

/// How a stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stand {
    Open,
    Final,
    TakenBack,
}

impl Journal {
    /// Whether it does not know yet that a stream of a step stands so.
    fn is_news(&self, key: &CallKey, stream: &str, stand: Stand) -> bool {
        let known = self.streams.iter().find(|known| known.key == *key && *known.stream == *stream);
        match stand {
            Stand::Open => known.is_none(),
            Stand::Final => !known.is_some_and(|known| known.is_final),
            Stand::TakenBack => known.is_some(),
        }
    }
}

impl RunState {
    pub(crate) fn apply_said(&mut self, stream: Arc<str>, said: Said) {
        let Some(activation) = self.activations.get_mut(&said.activation) else { return };
        let streams = &mut activation.journal.streams;
        streams.retain(|known| known.key != said.key || known.stream != stream);
        if said.what != Stand::TakenBack {
            streams.push(StepStream { key: said.key, stream, is_final: said.what == Stand::Final });
        }
    }
}

impl Core {
    /// Notes the structured stream that a chunk on its way to the client belongs to, and the step that opened it.
    pub(crate) fn note_stream(&mut self, chunk: &StreamChunk, step: Option<(u32, CallKey)>) {
        let (stream, what) = match chunk {
            StreamChunk::StructuredData(chunk) if matches!(chunk.change, StructuredChange::Final { .. }) => {
                (&chunk.stream_id, Stand::Final)
            }
            StreamChunk::StructuredData(chunk) => (&chunk.stream_id, Stand::Open),
            StreamChunk::StructuredDataInvalidated { stream_id, .. } => (stream_id, Stand::TakenBack),
            _ => return,
        };
        let step = step.map(|(activation, key)| Said { activation, key, what }).filter(|said| {
            let activation = self.state.activations.get(&said.activation);
            activation.is_some_and(|activation| activation.journal.is_news(&said.key, stream, what))
        });
        let is_traced = what != Stand::TakenBack && self.state.is_untraced(stream);
        if is_traced || step.is_some() {
            self.emit(Event::Streamed { stream: stream.clone(), step });
        }
    }

    /// Has the client told that the streams no longer count which a step had opened when the node dropped it.
    pub(crate) fn take_back_dropped(&mut self, activation: u32, key: &CallKey) {
        let Some(journal) = self.state.activations.get(&activation).map(|activation| &activation.journal) else {
            return;
        };
        let Some(pass) = self.passes.get_mut(&activation) else { return };
        for stream in journal.streams.iter().filter(|stream| stream.key == *key && !stream.is_final) {
            let chunk = taken_back(&stream.stream);
            if let Some(hash) = content_hash(&chunk) {
                pass.unawaited = Some(pass.hand_over(chunk, hash));
            }
        }
    }
}

fn taken_back(stream: &Arc<str>) -> StreamChunk {
    StreamChunk::StructuredDataInvalidated { stream_id: stream.clone(), checkpoint_id: None }
}

impl PassRef {
    /// Tells the client that the streams no longer count which an earlier attempt of a step has opened.
    ///
    /// The attempt failed, or its process died. This one opens streams of its own.
    pub(crate) async fn take_back(&self, key: &CallKey) {
        while let Some(stream) = self.stream_of(key) {
            let chunk = taken_back(&stream);
            self.shared.io.chunks.send(chunk.clone()).await;
            self.shared.lock().note_stream(&chunk, Some((self.activation, key.clone())));
        }
    }

    /// Waits until is sent what the node does not wait for.
    pub(crate) async fn sent_unawaited(&self) {
        if let Ok(Some(number)) = self.with_pass(|pass| pass.unawaited.take()) {
            self.sent(number).await;
        }
    }

    fn stream_of(&self, key: &CallKey) -> Option<Arc<str>> {
        let found = self.with(|core| {
            let journal = &core.state.activations.get(&self.activation)?.journal;
            journal.streams.iter().find(|known| known.key == *key).map(|known| known.stream.clone())
        });
        found.ok().flatten()
    }
}
