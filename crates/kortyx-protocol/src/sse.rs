//! The stream's form on the wire: server-sent events.

mod reader;

use std::io::Write;

pub use self::reader::{SseError, SseEvent, SseReader};
use crate::{JsonError, RawJson, StreamChunk};

/// Writes the frames of a stream.
///
/// A chunk's frame is `data: `, its JSON without a line break, and an empty line. Nothing comes before `data: `, because clients
/// look for that prefix.
///
/// ```
/// use kortyx_protocol::{SseWriter, StreamChunk};
///
/// let frame = SseWriter::chunk(&StreamChunk::done(None))?;
/// assert_eq!(frame, b"data: {\"type\":\"done\"}\n\n");
/// # Ok::<(), kortyx_protocol::JsonError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SseWriter;

impl SseWriter {
    /// The last frame of a stream.
    pub const DONE: &'static [u8] = b"data: [DONE]\n\n";

    /// A comment, for every 15 seconds of silence.
    pub const KEEP_ALIVE: &'static [u8] = b": \n\n";

    /// The headers of a response that streams.
    pub const HEADERS: [(&'static str, &'static str); 4] = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("connection", "keep-alive"),
        ("x-accel-buffering", "no"),
    ];

    /// The frame of one chunk.
    pub fn chunk(chunk: &StreamChunk) -> Result<Vec<u8>, JsonError> {
        let mut frame = Vec::with_capacity(128);
        Self::append(&mut frame, chunk)?;
        Ok(frame)
    }

    /// Appends the frame of a chunk of a run's output that is followed: with its number as the event's id, if it has one. Only
    /// these frames have more than `data: `.
    ///
    /// ```
    /// use kortyx_protocol::{RawJson, SseWriter};
    ///
    /// let mut buffer = Vec::new();
    /// SseWriter::append_numbered(&mut buffer, Some(7), &RawJson::parse(r#"{"type":"done"}"#)?);
    /// assert_eq!(buffer, b"id: 7\ndata: {\"type\":\"done\"}\n\n");
    /// # Ok::<(), kortyx_protocol::JsonError>(())
    /// ```
    pub fn append_numbered(buffer: &mut Vec<u8>, number: Option<u64>, chunk: &RawJson) {
        if let Some(number) = number {
            buffer.extend_from_slice(format!("id: {number}\n").as_bytes());
        }
        for line in chunk.get().lines() {
            buffer.extend_from_slice(b"data: ");
            buffer.extend_from_slice(line.as_bytes());
            buffer.push(b'\n');
        }
        buffer.push(b'\n');
    }

    /// Appends the frame of one chunk to a buffer, which is as before after an error.
    pub fn append(buffer: &mut Vec<u8>, chunk: &StreamChunk) -> Result<(), JsonError> {
        let start = buffer.len();
        buffer.extend_from_slice(b"data: ");
        let written = serde_json::to_writer(&mut *buffer, chunk).map_err(|error| JsonError::of(&error));
        let ended =
            written.and_then(|()| buffer.write_all(b"\n\n").map_err(|error| JsonError::new("", error.to_string())));
        if ended.is_err() {
            buffer.truncate(start);
        }
        ended
    }
}

#[cfg(test)]
mod tests;
