//! How a cache does.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of snapshots since the store was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheCounts {
    /// Found in the cache.
    pub hits: u64,
    /// Not there, so read from the store.
    pub misses: u64,
    /// There with other bytes than those that the store stored, so read from the store; not among the misses.
    pub corrupt: u64,
    /// The cache failed or was too slow when it was asked, so they were read from the store; not among the misses.
    pub failures: u64,
    /// Put into the cache.
    pub kept: u64,
    /// Not put there, because too much was on its way or the cache failed.
    pub dropped: u64,
    /// How often the cache was found to fail and left alone for a while.
    pub bypasses: u64,
}

/// The same, while it changes.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) corrupt: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) kept: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) bypasses: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn read(&self) -> CacheCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheCounts {
            hits: read(&self.hits),
            misses: read(&self.misses),
            corrupt: read(&self.corrupt),
            failures: read(&self.failures),
            kept: read(&self.kept),
            dropped: read(&self.dropped),
            bypasses: read(&self.bypasses),
        }
    }
}
