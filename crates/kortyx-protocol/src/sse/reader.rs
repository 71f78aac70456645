//! Reading a stream as it arrives.

use std::{error::Error, fmt};

use crate::{JsonError, StreamChunk, json};

/// The largest frame by default, in bytes.
const DEFAULT_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// The byte order mark that a stream may begin with.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Something that arrived.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SseEvent {
    /// A chunk.
    Chunk(Box<StreamChunk>),
    /// A frame without data, such as a keep-alive comment.
    KeepAlive,
    /// The last frame. What follows it is ignored.
    Done,
}

/// A frame that does not read. The reader goes on with the next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SseError {
    /// It is larger than the limit.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// Its data is not a chunk.
    Malformed(JsonError),
    /// The stream ended before its last frame.
    Truncated,
}

impl fmt::Display for SseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { limit } => write!(f, "a frame of the stream has more than {limit} bytes"),
            Self::Malformed(_) => f.write_str("a frame of the stream is not a chunk"),
            Self::Truncated => f.write_str("the stream ended before its last frame"),
        }
    }
}

impl Error for SseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Malformed(error) => Some(error),
            Self::TooLarge { .. } | Self::Truncated => None,
        }
    }
}

/// Reads a stream piece by piece. The events do not depend on how the bytes are split.
///
/// Follows the event stream format of the HTML standard (section 9.2.6): lines end in LF, CR or CRLF, several `data` lines are one
/// text, other fields are ignored.
///
/// ```
/// use kortyx_protocol::{SseEvent, SseReader};
///
/// let mut reader = SseReader::new();
/// assert!(reader.push(b"data: {\"type\":\"do").is_empty());
/// let events = reader.push(b"ne\"}\n\ndata: [DONE]\n\n");
/// assert!(matches!(&events[..], [Ok(SseEvent::Chunk(_)), Ok(SseEvent::Done)]));
/// reader.finish()?;
/// # Ok::<(), kortyx_protocol::SseError>(())
/// ```
#[derive(Debug)]
pub struct SseReader {
    limit: usize,
    /// What is kept of the line that is arriving.
    line: Vec<u8>,
    /// Whether that line has a byte.
    line_started: bool,
    /// The data of the frame that is arriving; `None` before its first `data` line.
    data: Option<Vec<u8>>,
    frame: Frame,
    /// Whether the last byte was a CR, so that an LF belongs to it.
    after_cr: bool,
    phase: Phase,
}

/// How far the stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its first line is arriving.
    Start,
    /// Between its first line and its last frame.
    Middle,
    /// Its last frame arrived.
    Done,
}

/// How far the frame that is arriving has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// No line yet.
    Empty,
    /// At least one line, or a part of it.
    Started,
    /// Over the limit: the rest of it is dropped.
    TooLarge,
}

impl Default for SseReader {
    fn default() -> Self {
        Self::with_limit(DEFAULT_FRAME_BYTES)
    }
}

impl SseReader {
    /// A reader of a new stream, with frames of at most 16 MiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader of a new stream, with frames of at most so many bytes; it never holds much more than that.
    pub fn with_limit(frame_bytes: usize) -> Self {
        Self {
            limit: frame_bytes,
            line: Vec::new(),
            line_started: false,
            data: None,
            frame: Frame::Empty,
            after_cr: false,
            phase: Phase::Start,
        }
    }

    /// Takes the next bytes and returns what is complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Result<SseEvent, SseError>> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while !self.is_done() && !rest.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let length = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (piece, ending) = rest.split_at_checked(length.unwrap_or(rest.len())).unwrap_or((rest, &[]));
            self.hold(piece);
            if let Some((byte, after)) = ending.split_first() {
                self.after_cr = *byte == b'\r';
                events.extend(self.end_line());
                rest = after;
            } else {
                rest = &[];
            }
        }
        events
    }

    /// Whether the last frame arrived.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Ends the stream. Fails when its last frame did not arrive.
    pub fn finish(self) -> Result<(), SseError> {
        if self.is_done() { Ok(()) } else { Err(SseError::Truncated) }
    }

    fn hold(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        self.line_started = true;
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if self.frame == Frame::TooLarge {
            return;
        }
        if held + piece.len() > self.limit {
            self.frame = Frame::TooLarge;
            self.line = Vec::new();
            self.data = None;
        } else {
            self.line.extend_from_slice(piece);
        }
    }

    fn end_line(&mut self) -> Option<Result<SseEvent, SseError>> {
        let mut line = std::mem::take(&mut self.line);
        let mut started = std::mem::take(&mut self.line_started);
        if std::mem::replace(&mut self.phase, Phase::Middle) == Phase::Start && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
            started = !line.is_empty();
        }
        if !started {
            return self.end_frame();
        }
        if self.frame != Frame::TooLarge {
            self.frame = Frame::Started;
            self.add_data(&line);
        }
        line.clear();
        self.line = line;
        None
    }

    /// Takes what a line adds to the frame's data.
    fn add_data(&mut self, line: &[u8]) {
        let Some(value) = line.strip_prefix(b"data") else { return };
        let value = match value.split_first() {
            None => value,
            Some((b':', value)) => value.strip_prefix(b" ").unwrap_or(value),
            Some(_) => return,
        };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
    }

    fn end_frame(&mut self) -> Option<Result<SseEvent, SseError>> {
        let data = self.data.take();
        match std::mem::replace(&mut self.frame, Frame::Empty) {
            Frame::Empty => return None,
            Frame::TooLarge => return Some(Err(SseError::TooLarge { limit: self.limit })),
            Frame::Started => {}
        }
        let Some(data) = data else { return Some(Ok(SseEvent::KeepAlive)) };
        if data.trim_ascii() == b"[DONE]" {
            self.phase = Phase::Done;
            return Some(Ok(SseEvent::Done));
        }
        Some(json::from_slice(&data).map(|chunk| SseEvent::Chunk(Box::new(chunk))).map_err(SseError::Malformed))
    }
}
