//! Measures over the store in memory, on one core.

mod cycles;
mod growth;
mod parts;
mod paused;

use std::time::Instant;

pub(crate) use self::{cycles::cycles, growth::growth, paused::paused};
use crate::number::float;

/// Microseconds since a moment, for each of so many things.
fn micros_each(since: Instant, count: u64) -> f64 {
    since.elapsed().as_secs_f64() * 1e6 / float(count)
}
