//! What the allocator was asked for, in the program that counts it.

use stats_alloc::{INSTRUMENTED_SYSTEM, Stats};

use crate::error::Error;

/// The program that counts.
pub(crate) const COUNTED: &str = "kortyx-bench-counted";

/// Bytes that were allocated and not freed.
pub(crate) fn bytes_in_use() -> Result<usize, Error> {
    stats().map(|stats| stats.bytes_allocated.wrapping_sub(stats.bytes_deallocated))
}

/// How often memory was allocated so far, or moved to a larger place.
pub(crate) fn count() -> Result<usize, Error> {
    stats().map(|stats| stats.allocations.wrapping_add(stats.reallocations))
}

fn stats() -> Result<Stats, Error> {
    let stats = INSTRUMENTED_SYSTEM.stats();
    // No program comes this far without memory.
    if stats.allocations == 0 { Err(Error::Uncounted(COUNTED)) } else { Ok(stats) }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;

    use stats_alloc::StatsAlloc;

    use super::*;

    #[global_allocator]
    static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

    #[test]
    fn what_is_held_counts_until_it_is_freed() {
        // Other tests allocate meanwhile, much less than this.
        const MUCH: usize = 256 << 20;
        let before = bytes_in_use().unwrap();

        let held = vec![0_u8; MUCH];
        let during = bytes_in_use().unwrap();
        drop(held);

        assert!(during - before > MUCH / 2, "{before} {during}");
        assert!(during.saturating_sub(bytes_in_use().unwrap()) > MUCH / 2);
    }

    #[test]
    fn allocations_are_counted() {
        let before = count().unwrap();

        let held: Vec<Box<usize>> = (0..100).map(Box::new).collect();

        assert!(count().unwrap() - before >= held.len());
    }
}
