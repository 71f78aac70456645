//! The system's allocator, with its calls counted.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes that were allocated and not freed.
pub(crate) fn bytes_in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.wrapping_sub(stats.bytes_deallocated)
}

/// How often memory was allocated so far, or moved to a larger place.
pub(crate) fn count() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations.wrapping_add(stats.reallocations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_counts_until_it_is_freed() {
        // Other tests allocate meanwhile, much less than this.
        const MUCH: usize = 256 << 20;
        let before = bytes_in_use();

        let held = vec![0_u8; MUCH];
        let during = bytes_in_use();
        drop(held);

        assert!(during - before > MUCH / 2, "{before} {during}");
        assert!(during.saturating_sub(bytes_in_use()) > MUCH / 2);
    }

    #[test]
    fn allocations_are_counted() {
        let before = count();

        let held: Vec<Box<usize>> = (0..100).map(Box::new).collect();

        assert!(count() - before >= held.len());
    }
}
