//! Servers as the lanes start them: real ones, where they are installed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails in a test panics")]

mod provision;
mod stopping;
mod using;
mod world;
