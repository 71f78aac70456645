//! What a run said and storage does not hold yet.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kortyx_protocol::StreamChunk;
use kortyx_store::Bytes;
use tokio::sync::Notify;

/// Chunks on their way to storage, which takes them with the next transition of their run.
#[derive(Default)]
pub(super) struct Log {
    chunks: Mutex<Vec<Bytes>>,
    /// There is something, after there was nothing.
    pub(super) begun: Notify,
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a chunk.
    pub(super) fn note(&self, text: Bytes) {
        let mut chunks = self.lock();
        chunks.push(text);
        if chunks.len() == 1 {
            self.begun.notify_one();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Takes everything, for a transition.
    pub(super) fn take(&self) -> Vec<Bytes> {
        std::mem::take(&mut *self.lock())
    }

    /// Puts back what a transition did not store.
    pub(super) fn put_back(&self, taken: Vec<Bytes>) {
        if !taken.is_empty() {
            self.lock().splice(..0, taken);
        }
    }
}

/// A chunk as storage keeps it. One that is not JSON was never shown either.
pub(super) fn text(chunk: &StreamChunk) -> Option<Bytes> {
    serde_json::to_vec(chunk).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_back_comes_before_what_was_said_since() {
        let log = Log::default();
        log.note(text(&StreamChunk::message("1")).unwrap());
        let taken = log.take();
        assert!(log.is_empty());
        log.note(text(&StreamChunk::message("2")).unwrap());
        log.put_back(taken);
        let texts: Vec<_> = log.take().iter().map(|chunk| String::from_utf8(chunk.to_vec()).unwrap()).collect();
        assert_eq!(texts, [r#"{"type":"message","content":"1"}"#, r#"{"type":"message","content":"2"}"#]);
    }
}
