//! What the engine is given: where chunks and durable steps go, and a clock, randomness and a timer.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use kortyx_protocol::{StreamChunk, Timestamp};

use crate::{
    CompletedResponse, Observer,
    turn::{DeliveredAnswer, OpenQuestion},
};

/// A future of an [`Io`] trait.
pub type IoFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where chunks go. The future is pending while the receiver is full, which holds the node back.
pub trait ChunkSink: Send + Sync + 'static {
    /// Delivers a chunk; a receiver that is gone swallows it.
    fn send(&self, chunk: StreamChunk) -> IoFuture<'_, ()>;
}

/// Where durable steps go.
pub trait Recorder: Send + Sync + 'static {
    /// Makes a new run durable with this snapshot. Called at most once, before the first [`Recorder::record`].
    fn open(&self, snapshot: Vec<u8>) -> IoFuture<'_, Result<(), RecordError>>;

    /// Appends entries and publishes questions, all or nothing.
    fn record(&self, batch: Batch) -> IoFuture<'_, Result<RecordReply, RecordError>>;
}

/// What happened since the last durable point.
#[derive(Debug)]
pub struct Batch {
    /// One opaque entry; `None` when there is nothing but questions, or nothing at all.
    pub entries: Option<Vec<u8>>,
    /// Questions to publish now, while other branches work.
    pub publish: Vec<OpenQuestion>,
    /// The ask keys of published questions that nobody waits for any more.
    pub withdraw: Vec<String>,
    /// The highest answer number that the engine has received.
    pub answers_seen: u64,
    /// The response that this batch completes: once it is stored, nobody hears what comes after, and the run goes on.
    pub response: Option<CompletedResponse>,
    /// The response was complete before this batch: its questions are asked after it.
    pub response_completed: bool,
}

/// What storage says to a batch.
#[derive(Debug, Default)]
pub struct RecordReply {
    /// Answers that the engine has not seen.
    pub answers: Vec<DeliveredAnswer>,
}

/// A batch that was not stored. The engine stops at once; the run goes on from its last durable point later.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct RecordError {
    /// What went wrong.
    pub message: String,
    /// The storage's error.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The clock, the randomness and the timer that the engine does not have.
pub trait Host: Send + Sync + 'static {
    /// Now. Asked for with the engine's state at hand: it answers at once, and calls nothing of the engine.
    fn now(&self) -> Timestamp;
    /// Random bytes from the system's generator.
    fn random(&self) -> Result<[u8; 16], RecordError>;
    /// Waits.
    fn sleep(&self, duration: Duration) -> IoFuture<'static, ()>;
}

/// All that an execution is given.
#[derive(Clone)]
pub struct Io {
    /// Where chunks go.
    pub chunks: Arc<dyn ChunkSink>,
    /// Where durable steps go.
    pub recorder: Arc<dyn Recorder>,
    /// Clock, randomness, timer.
    pub host: Arc<dyn Host>,
    /// Who is told what happens.
    pub observer: Option<Arc<dyn Observer>>,
}

impl Io {
    /// An execution that nobody observes.
    pub fn new(chunks: Arc<dyn ChunkSink>, recorder: Arc<dyn Recorder>, host: Arc<dyn Host>) -> Self {
        Self { chunks, recorder, host, observer: None }
    }

    /// Tells this observer what happens.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }
}
