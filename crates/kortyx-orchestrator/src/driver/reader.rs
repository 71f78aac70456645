//! Who reads what a run says and waits for where it stands, until its response is complete.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kortyx_protocol::StreamChunk;
use tokio::sync::mpsc;

use super::{Response, Stand};
use crate::chat::Transcript;

/// Where a run's chunks go; `None` throws them away.
pub(crate) type Output = Option<Sink>;

/// A client, and what is kept of what it was told.
#[derive(Clone)]
pub(crate) struct Sink {
    pub(crate) chunks: mpsc::Sender<StreamChunk>,
    pub(crate) transcript: Option<Arc<Transcript>>,
}

impl Sink {
    /// Sends a chunk; a client that is gone is told nothing.
    pub(crate) async fn send(&self, chunk: StreamChunk) {
        if let Some(transcript) = &self.transcript {
            transcript.note(&chunk);
        }
        let _ = self.chunks.send(chunk).await;
    }
}

/// Hears where a run stands. Called once.
type Waiter = Box<dyn FnOnce(Stand) + Send>;

/// The reader of a run. Once the response is complete it hears no more, whatever the run does.
pub(super) struct Reader(Mutex<Reading>);

struct Reading {
    output: Output,
    waiter: Option<Waiter>,
    /// Storage is being told that the response is complete, or was told.
    is_completing: bool,
    response: Completion,
}

/// Whether the response is complete.
enum Completion {
    No,
    /// By this driver.
    Now(Box<Response>),
    /// Before this driver had the run.
    Before,
}

impl Reader {
    pub(super) fn new(output: Output) -> Self {
        Self(Mutex::new(Reading { output, waiter: None, is_completing: false, response: Completion::No }))
    }

    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where chunks go now.
    pub(super) fn output(&self) -> Output {
        self.lock().output.clone()
    }

    /// Tells this waiter where the run stands at its response or, without one, at its pause or end.
    pub(super) fn wait(&self, waiter: impl FnOnce(Stand) + Send + 'static) {
        self.lock().waiter = Some(Box::new(waiter));
    }

    /// Who waits. Nobody is told twice.
    pub(super) fn take_waiter(&self) -> Option<Waiter> {
        self.lock().waiter.take()
    }

    /// Storage is being told that the response is complete: if it is, the run goes on though its client leaves.
    pub(super) fn begin_completing(&self) {
        self.lock().is_completing = true;
    }

    /// Whether the response is complete, or will be unless storage refuses.
    pub(super) fn is_completing(&self) -> bool {
        let reading = self.lock();
        reading.is_completing || !matches!(reading.response, Completion::No)
    }

    /// From here on nobody reads.
    pub(super) fn complete(&self, response: Response) {
        let mut reading = self.lock();
        reading.output = None;
        reading.response = Completion::Now(Box::new(response));
    }

    /// Nobody reads from the start: the response was completed before.
    pub(super) fn completed_before(&self) {
        let mut reading = self.lock();
        reading.output = None;
        reading.response = Completion::Before;
    }

    pub(super) fn is_complete(&self) -> bool {
        !matches!(self.lock().response, Completion::No)
    }

    /// The response that this driver has completed.
    pub(super) fn response(&self) -> Option<Response> {
        match &self.lock().response {
            Completion::Now(response) => Some((**response).clone()),
            Completion::No | Completion::Before => None,
        }
    }
}
