//! What a response says, kept for those who want to know when it is complete.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kortyx_protocol::{StreamChunk, StructuredStreams};

use crate::{Interrupt, ResponseFinalized};

/// What a response said so far.
#[derive(Default)]
pub(crate) struct Transcript(Mutex<Said>);

#[derive(Default)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) structured: StructuredStreams,
    pub(super) is_truncated: bool,
    pub(super) interrupts: Vec<Interrupt>,
    size: usize,
}

impl Transcript {
    fn lock(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a chunk on its way to the client.
    pub(crate) fn note(&self, chunk: &StreamChunk) {
        self.lock().note(chunk);
    }

    /// Notes a question that the response puts.
    pub(super) fn ask(&self, question: Interrupt) {
        self.lock().interrupts.push(question);
    }

    /// Takes all that was said.
    pub(super) fn take(&self) -> Said {
        std::mem::take(&mut *self.lock())
    }
}

impl Said {
    fn note(&mut self, chunk: &StreamChunk) {
        match chunk {
            StreamChunk::Message { content, .. } => self.add(content),
            StreamChunk::TextDelta(delta) => self.add(&delta.delta),
            StreamChunk::StructuredData(_) => {
                let size = serde_json::to_vec(chunk).map_or(0, |text| text.len());
                if self.has_room(size)
                    && let Err(error) = self.structured.apply(chunk)
                {
                    tracing::warn!(%error, "a structured stream of a response does not reduce");
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, text: &str) {
        if self.has_room(text.len()) {
            self.text.push_str(text);
        }
    }

    /// Whether there is room. Once there is none, nothing more is kept: a transcript with a hole would mislead.
    fn has_room(&mut self, size: usize) -> bool {
        self.size = self.size.saturating_add(size);
        self.is_truncated |= self.size > ResponseFinalized::KEPT;
        !self.is_truncated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_ends_the_transcript() {
        let transcript = Transcript::default();
        let half = "x".repeat(ResponseFinalized::KEPT / 2 + 1);
        transcript.note(&StreamChunk::message(half.clone()));
        assert!(!transcript.lock().is_truncated);
        transcript.note(&StreamChunk::text_delta(half.clone()));
        transcript.note(&StreamChunk::message("y"));
        let said = transcript.take();
        assert_eq!((said.is_truncated, said.text.len()), (true, half.len()));
    }
}
