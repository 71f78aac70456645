//! A response that is not streamed.

use serde::Serialize;

use crate::{ReduceError, StreamChunk, StructuredData, StructuredStreams};

/// A response as one JSON object, for clients that do not stream.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BufferedResponse {
    /// Every chunk, in order.
    pub chunks: Vec<StreamChunk>,
    /// The contents of messages and text deltas, one after another.
    pub text: String,
    /// What the structured streams have become.
    pub structured: Vec<StructuredData>,
}

impl BufferedResponse {
    /// Puts a whole stream together.
    ///
    /// ```
    /// use kortyx_protocol::{BufferedResponse, StreamChunk};
    ///
    /// let chunks = vec![StreamChunk::text_delta("Hel"), StreamChunk::text_delta("lo"), StreamChunk::done(None)];
    /// assert_eq!(BufferedResponse::from_chunks(chunks)?.text, "Hello");
    /// # Ok::<(), kortyx_protocol::ReduceError>(())
    /// ```
    pub fn from_chunks(chunks: Vec<StreamChunk>) -> Result<Self, ReduceError> {
        let mut text = String::new();
        let mut structured = StructuredStreams::default();
        for chunk in &chunks {
            structured.apply(chunk)?;
            match chunk {
                StreamChunk::Message { content, .. } => text.push_str(content),
                StreamChunk::TextDelta(delta) => text.push_str(&delta.delta),
                _ => {}
            }
        }
        Ok(Self { chunks, text, structured: structured.into_vec() })
    }
}
