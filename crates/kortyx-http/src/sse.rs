//! Chunks as a response that streams.

mod source;

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue},
    response::Response,
};
use bytes::Bytes;
use futures_util::{FutureExt as _, stream};
use kortyx_protocol::{Failure, SseWriter, StreamChunk};
use tokio_util::sync::CancellationToken;

pub(crate) use self::source::{Source, leave};
use crate::streams::Place;

/// Chunks that are there already share a piece of the body up to this size.
const PIECE_BYTES: usize = 16 * 1024;

/// What a client is told when the server stops.
const STOPPING: &str = "the server stops; what is durable goes on elsewhere, so ask again";

/// A response with chunks as they come.
pub(crate) fn response(
    source: impl Into<Source>,
    keep_alive: Duration,
    closing: CancellationToken,
    place: Place,
) -> Response {
    let frames = Frames { source: Some(source.into()), keep_alive, closing, _place: place };
    let body = stream::unfold(frames, |mut frames| async move {
        let piece = frames.next().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), frames))
    });
    let mut response = Response::new(Body::from_stream(body));
    for (name, value) in SseWriter::HEADERS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// The body, piece by piece. Nothing is read ahead of the client: the source is held back while nobody asks.
struct Frames {
    /// Where chunks come from, until the last frame.
    source: Option<Source>,
    keep_alive: Duration,
    closing: CancellationToken,
    _place: Place,
}

/// A chunk's frame was written; or the stream has ended, badly or well.
type Written = Result<bool, Box<Failure>>;

impl Frames {
    async fn next(&mut self) -> Option<Bytes> {
        let source = self.source.as_mut()?;
        let mut piece = Vec::new();
        tokio::select! {
            biased;
            () = self.closing.cancelled() => self.stop(&mut piece),
            written = source.next(&mut piece) => self.fill(&mut piece, written),
            () = tokio::time::sleep(self.keep_alive) => piece.extend_from_slice(SseWriter::KEEP_ALIVE),
        }
        Some(piece.into())
    }

    /// Adds to what was written the chunks that are there already.
    fn fill(&mut self, piece: &mut Vec<u8>, mut written: Written) {
        loop {
            match written {
                Ok(true) => {}
                Ok(false) => {
                    piece.extend_from_slice(SseWriter::DONE);
                    self.source = None;
                }
                Err(failure) => {
                    self.source = None;
                    end(piece, &[StreamChunk::error(*failure), StreamChunk::done(None)]);
                }
            }
            let Some(source) = self.source.as_mut().filter(|_| piece.len() < PIECE_BYTES) else { return };
            match source.next(piece).now_or_never() {
                Some(next) => written = next,
                None => return,
            }
        }
    }

    /// The last frames of a stream that the client does not see the end of.
    fn stop(&mut self, piece: &mut Vec<u8>) {
        if let Some(source) = self.source.take() {
            source.leave();
        }
        end(piece, &[StreamChunk::status(STOPPING), StreamChunk::done(None)]);
    }
}

fn end(piece: &mut Vec<u8>, chunks: &[StreamChunk]) {
    for chunk in chunks {
        // Texts of ours: they are JSON.
        let _ = SseWriter::append(piece, chunk);
    }
    piece.extend_from_slice(SseWriter::DONE);
}
