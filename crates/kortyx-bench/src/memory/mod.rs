//! Measures over the store in memory, on one core.

mod cycles;
mod growth;
mod parts;
mod paused;
mod reason;

use std::time::{Duration, Instant};

pub(crate) use self::{
    cycles::{allocations, cycles},
    growth::growth,
    paused::paused,
    reason::{reason, reason_allocations},
};
use crate::{number::float, process};

/// A moment, by the clock and by the processor time of this thread.
struct Stopwatch {
    clock: Instant,
    processor: Duration,
}

impl Stopwatch {
    fn start() -> Self {
        Self { clock: Instant::now(), processor: process::thread_time() }
    }

    /// Microseconds of the clock for each of so many things.
    fn clock(&self, count: u64) -> f64 {
        self.clock.elapsed().as_secs_f64() * 1e6 / float(count)
    }

    /// Microseconds of the processor for each of so many things.
    fn processor(&self, count: u64) -> f64 {
        process::thread_time().saturating_sub(self.processor).as_secs_f64() * 1e6 / float(count)
    }
}
