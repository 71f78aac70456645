//! The first program that a newcomer runs, `cargo run --example approval`, from outside: its options, its answers, its prompts
//! in a terminal, and what is left when it is killed.

#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails in a test panics")]

mod options;
mod program;
mod prompts;
mod terminal;
