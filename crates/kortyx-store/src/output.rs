//! What a run said: its chunks, numbered in the order in which they were stored.

use bytes::Bytes;

use crate::RunStatus;

/// A stored chunk of a run's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkRecord {
    /// Its place in the run's output, from 1, without gaps.
    pub number: u64,
    /// What was appended.
    pub chunk: Bytes,
}

/// A piece of a run's output, and where the run stood when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkPage {
    /// Chunks above the number that was asked for, in order.
    pub chunks: Vec<ChunkRecord>,
    /// The number of the run's last chunk; 0 when it has none.
    pub last: u64,
    /// Where the run stands.
    pub status: RunStatus,
    /// The run has completed its response: the chunks up to [`last`](Self::last) hold all that the response said.
    pub response_completed: bool,
}

impl ChunkPage {
    /// A page of chunks that follow a number, of a run whose response is not complete. For adapters.
    pub fn new(after: u64, chunks: impl IntoIterator<Item = Bytes>, last: u64, status: RunStatus) -> Self {
        let numbers = (1_u64..).map(|place| after.saturating_add(place));
        let chunks = numbers.zip(chunks).map(|(number, chunk)| ChunkRecord { number, chunk }).collect();
        Self { chunks, last, status, response_completed: false }
    }
}
