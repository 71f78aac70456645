//! What became of facts and events, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of what a reporter was told, since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReporterCounts {
    /// Events that the receiver took.
    pub sent: u64,
    /// Facts that were dropped because too many, or too large ones, were waiting.
    pub dropped: u64,
    /// Events that the receiver refused for good.
    pub refused: u64,
    /// Events given up after the receiver could not be reached, or asked to wait, too often.
    pub abandoned: u64,
    /// Facts that are no event, because what an event must say is not known.
    pub unbuildable: u64,
    /// Pieces of captured content that were left out: too large, or not readable exactly.
    pub omitted: u64,
}

/// The numbers while they grow.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) sent: Count,
    pub(super) dropped: Count,
    pub(super) refused: Count,
    pub(super) abandoned: Count,
    pub(super) unbuildable: Count,
    pub(super) omitted: Count,
}

/// One of them.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    /// Adds to it. Says whether it was nothing before, so that the first is logged and no other.
    pub(super) fn add(&self, more: usize) -> bool {
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        more > 0 && self.0.fetch_add(more, Ordering::Relaxed) == 0
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counts {
    /// Notes that pieces of content were left out.
    pub(super) fn note_omitted(&self, pieces: usize) {
        if self.omitted.add(pieces) {
            tracing::warn!(
                "captured content is left out of telemetry: it is too large or cannot be read; this is not logged again"
            );
        }
    }

    pub(super) fn now(&self) -> ReporterCounts {
        ReporterCounts {
            sent: self.sent.get(),
            dropped: self.dropped.get(),
            refused: self.refused.get(),
            abandoned: self.abandoned.get(),
            unbuildable: self.unbuildable.get(),
            omitted: self.omitted.get(),
        }
    }
}
