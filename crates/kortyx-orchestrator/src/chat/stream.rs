//! The chunks of a turn, as they come.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{Stream, future::poll_fn};
use kortyx_protocol::{Failure, FailureCode, RunId, StreamChunk};
use tokio::sync::mpsc;

/// The chunks of one turn. Always ends with `done`.
///
/// Dropping it tells the agent that the client went away.
#[must_use = "a turn whose stream is dropped is cancelled"]
pub struct ChatStream {
    chunks: mpsc::Receiver<StreamChunk>,
    run_id: Option<RunId>,
    state: State,
}

enum State {
    Open,
    /// The turn ended without a word, and only `done` is missing.
    CutShort,
    Ended,
}

impl ChatStream {
    pub(super) fn new(chunks: mpsc::Receiver<StreamChunk>) -> Self {
        Self { chunks, run_id: None, state: State::Open }
    }

    pub(super) fn of(self, run_id: RunId) -> Self {
        Self { run_id: Some(run_id), ..self }
    }

    /// The turn's run, which [`follow`](crate::Agent::follow) finds; known of a turn that was begun by
    /// [`begin_chat`](crate::Agent::begin_chat).
    pub fn run_id(&self) -> Option<&RunId> {
        self.run_id.as_ref()
    }

    /// The next chunk; `None` after `done`.
    pub async fn next(&mut self) -> Option<StreamChunk> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// All chunks that are left.
    pub async fn collect(mut self) -> Vec<StreamChunk> {
        let mut chunks = Vec::new();
        while let Some(chunk) = self.next().await {
            chunks.push(chunk);
        }
        chunks
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamChunk>> {
        match self.state {
            State::Ended => return Poll::Ready(None),
            State::CutShort => {
                self.state = State::Ended;
                return Poll::Ready(Some(StreamChunk::done(None)));
            }
            State::Open => {}
        }
        let chunk = std::task::ready!(self.chunks.poll_recv(cx));
        if matches!(chunk, Some(StreamChunk::Done { .. })) {
            self.state = State::Ended;
        }
        Poll::Ready(Some(chunk.unwrap_or_else(|| {
            self.state = State::CutShort;
            let message = "the turn was cut short; what was durable goes on";
            StreamChunk::error(Failure::new(FailureCode::ExecutionFailed, message).with_retryable(Some(true)))
        })))
    }
}

impl Stream for ChatStream {
    type Item = StreamChunk;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamChunk>> {
        self.poll_chunk(cx)
    }
}

impl fmt::Debug for ChatStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatStream").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_turn_that_is_cut_short_still_ends_with_done() {
        let (sender, receiver) = mpsc::channel(1);
        drop(sender);
        let kinds: Vec<_> = ChatStream::new(receiver).collect().await.iter().map(StreamChunk::kind).collect();
        assert_eq!(kinds, ["error", "done"]);
    }
}
