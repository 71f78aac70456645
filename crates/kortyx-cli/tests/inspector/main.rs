//! The real program over an SQLite file that a real agent filled.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a world that cannot be built fails the test")]

mod world;

mod answering;
mod checking;
mod elsewhere;
mod looking;
mod refusing;
mod tracing;
