//! A turn as a response that streams.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue},
    response::Response,
};
use bytes::Bytes;
use futures_util::{FutureExt as _, stream};
use kortyx_orchestrator::ChatStream;
use kortyx_protocol::{Failure, FailureCode, JsonError, SseWriter, StreamChunk};
use tokio_util::sync::CancellationToken;

use crate::streams::Place;

/// Chunks that are there already share a piece of the body up to this size.
const PIECE_BYTES: usize = 16 * 1024;

/// What a client is told when the server stops.
const STOPPING: &str = "the server stops; what is durable goes on elsewhere, so ask again";

/// A response with the chunks of a turn, as they come.
pub(crate) fn response(turn: ChatStream, keep_alive: Duration, closing: CancellationToken, place: Place) -> Response {
    let frames = Frames { turn: Some(turn), keep_alive, closing, _place: place };
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

/// The body, piece by piece. Nothing is read ahead of the client: the turn is held back while nobody asks.
struct Frames {
    /// The turn, until the last frame.
    turn: Option<ChatStream>,
    keep_alive: Duration,
    closing: CancellationToken,
    _place: Place,
}

impl Frames {
    async fn next(&mut self) -> Option<Bytes> {
        let turn = self.turn.as_mut()?;
        let piece = tokio::select! {
            biased;
            () = self.closing.cancelled() => self.stop(),
            chunk = turn.next() => self.piece(chunk),
            () = tokio::time::sleep(self.keep_alive) => SseWriter::KEEP_ALIVE.to_vec(),
        };
        Some(piece.into())
    }

    /// This chunk and those that are there already.
    fn piece(&mut self, mut chunk: Option<StreamChunk>) -> Vec<u8> {
        let mut piece = Vec::new();
        while let Some(turn) = &mut self.turn {
            match &chunk {
                None => {
                    piece.extend_from_slice(SseWriter::DONE);
                    self.turn = None;
                    break;
                }
                Some(chunk) => {
                    if let Err(error) = SseWriter::append(&mut piece, chunk) {
                        self.give_up(&mut piece, &error);
                        break;
                    }
                }
            }
            if piece.len() >= PIECE_BYTES {
                break;
            }
            match turn.next().now_or_never() {
                Some(next) => chunk = next,
                None => break,
            }
        }
        piece
    }

    /// The last frames of a turn that the client does not see the end of. The turn goes on: the agent decides what becomes of it.
    fn stop(&mut self) -> Vec<u8> {
        if let Some(mut turn) = self.turn.take() {
            tokio::spawn(async move { while turn.next().await.is_some() {} });
        }
        last(&[StreamChunk::status(STOPPING), StreamChunk::done(None)])
    }

    /// A chunk is not JSON, so the stream cannot go on.
    fn give_up(&mut self, piece: &mut Vec<u8>, error: &JsonError) {
        tracing::error!(%error, "a chunk is not JSON");
        self.turn = None;
        let failure = Failure::new(FailureCode::InvalidOutput, format!("an output is not JSON: {error}"));
        piece.extend(last(&[StreamChunk::error(failure), StreamChunk::done(None)]));
    }
}

fn last(chunks: &[StreamChunk]) -> Vec<u8> {
    let mut piece = Vec::new();
    for chunk in chunks {
        // Texts of ours: they are JSON.
        let _ = SseWriter::append(&mut piece, chunk);
    }
    piece.extend_from_slice(SseWriter::DONE);
    piece
}
