//! The store against servers of its own: what they must be, what they lose, and what a lost reply leaves behind.

#![expect(clippy::unwrap_used, reason = "what fails in a test panics")]

#[path = "../support/mod.rs"]
mod support;

mod deployment;
mod faults;
mod inspected;
mod ordinary;
mod output;
mod placed;
mod repeats;
mod snapshots;
mod tls;
mod told;
