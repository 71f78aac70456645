//! Outside tallies of real effects.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counts an effect that storage knows nothing of. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    /// A counter at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one more, and says how many there were before.
    pub fn hit(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
