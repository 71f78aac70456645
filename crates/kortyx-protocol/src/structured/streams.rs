//! All structured streams of a response.

use super::{ReduceError, StructuredData};
use crate::{StreamChunk, StructuredChunk};

/// The structured streams of a response, in the order of their first chunks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StructuredStreams {
    streams: Vec<StructuredData>,
}

impl StructuredStreams {
    /// Applies what concerns structured streams: a change, or that one no longer counts. Other chunks change nothing.
    pub fn apply(&mut self, chunk: &StreamChunk) -> Result<(), ReduceError> {
        match chunk {
            StreamChunk::StructuredData(chunk) => self.change(chunk),
            StreamChunk::StructuredDataInvalidated { stream_id, .. } => {
                self.streams.retain(|stream| stream.stream_id() != &**stream_id);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn change(&mut self, chunk: &StructuredChunk) -> Result<(), ReduceError> {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.stream_id() == &*chunk.stream_id) {
            return stream.apply(chunk);
        }
        let mut stream = StructuredData::new(chunk.stream_id.clone());
        stream.apply(chunk)?;
        self.streams.push(stream);
        Ok(())
    }

    /// The stream with this id, when something of it arrived.
    pub fn get(&self, stream_id: &str) -> Option<&StructuredData> {
        self.streams.iter().find(|stream| stream.stream_id() == stream_id)
    }

    /// Every stream, in the order of their first chunks.
    pub fn iter(&self) -> impl Iterator<Item = &StructuredData> {
        self.streams.iter()
    }

    /// Every stream, in the order of their first chunks.
    pub fn into_vec(self) -> Vec<StructuredData> {
        self.streams
    }
}
