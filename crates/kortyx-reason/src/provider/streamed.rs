//! An answer that is streamed.

use std::collections::VecDeque;

use futures_util::{StreamExt as _, stream};
use genai::chat::{ChatStream, ChatStreamEvent, StreamEnd};

use super::{calls::Calls, ending::Ending, fault::Faults, seen::Tap};
use crate::{ModelError, ModelEvent, ModelStream};

/// The events of a stream.
pub(super) fn events(stream: ChatStream, tap: Tap, faults: Faults) -> ModelStream<'static> {
    let answer = Answer { stream, tap, faults, calls: Calls::default(), events: VecDeque::new(), is_over: false };
    stream::unfold(answer, |mut answer| async move { answer.next().await.map(|event| (event, answer)) }).boxed()
}

struct Answer {
    stream: ChatStream,
    tap: Tap,
    faults: Faults,
    calls: Calls,
    /// What is to be told next.
    events: VecDeque<Result<ModelEvent, ModelError>>,
    is_over: bool,
}

impl Answer {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        while self.events.is_empty() && !self.is_over {
            let event = self.stream.next().await;
            if let Err(error) = self.take(event) {
                self.is_over = true;
                self.events.push_back(Err(error));
            }
        }
        self.events.pop_front()
    }

    fn take(&mut self, event: Option<genai::Result<ChatStreamEvent>>) -> Result<(), ModelError> {
        // What the crate skips, or tells without its words, counts first.
        let mut seen = self.tap.seen();
        if let Some(what) = &seen.malformed {
            return Err(self.faults.invalid(what));
        }
        self.events.extend(seen.pieces.drain(..).map(Ok));
        match event {
            None => return Err(self.faults.cut()),
            Some(Err(error)) => return Err(self.faults.of(error, &seen)),
            Some(Ok(ChatStreamEvent::Start)) => {}
            Some(Ok(ChatStreamEvent::Chunk(chunk))) => self.events.push_back(Ok(ModelEvent::Text(chunk.content))),
            Some(Ok(ChatStreamEvent::ToolCallChunk(_))) if seen.has_pieces() => {}
            Some(Ok(ChatStreamEvent::ToolCallChunk(chunk))) => {
                self.events.extend(self.calls.take(&chunk.tool_call).map(Ok));
            }
            // A sign of life.
            Some(Ok(
                ChatStreamEvent::Heartbeat
                | ChatStreamEvent::ReasoningChunk(_)
                | ChatStreamEvent::ThoughtSignatureChunk(_),
            )) => self.events.push_back(Ok(ModelEvent::Text(String::new()))),
            Some(Ok(ChatStreamEvent::End(end))) => {
                drop(seen);
                self.end(&end)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, end: &StreamEnd) -> Result<(), ModelError> {
        let seen = self.tap.seen();
        if !seen.has_pieces() {
            let told = end.captured_tool_calls().unwrap_or_default();
            let missing = self.calls.settle(&told).map_err(|what| self.faults.invalid(&what))?;
            self.events.extend(missing.into_iter().map(Ok));
        }
        let has_calls = seen.has_pieces() || !self.calls.is_empty();
        let ending = Ending { reason: end.captured_stop_reason.clone(), usage: end.captured_usage.clone(), has_calls };
        let last = ending.events(&seen, &self.faults)?;
        self.events.extend(last.into_iter().map(Ok));
        self.is_over = true;
        Ok(())
    }
}
