#![doc = include_str!("../README.md")]
//!
//! How it works inside: `store` is the port. A transition becomes a `request`: JSON and an array of payloads, which one
//! statement hands to a function in the database (`drafts`; `functions`, installed by `setup`). Suspending, answering and
//! finishing have statements of their own (`queries`), which do the plain case and hand everything else to the same function:
//! they read what the decision stands on, and write only if the run's row is still the version that they read. Whatever changes
//! a run's questions therefore changes its row as well. What comes back are rows, which
//! `reply` and `row` turn into records. `client` speaks to the server over the connections of a `pool`, `retry` tries again what
//! may be tried again; `error` says what went wrong; `listener` passes on notifications;
//! `beside` is the part of the port that a cache of snapshots may stand beside.

mod beside;
mod client;
mod config;
mod drafts;
mod encoding;
mod error;
mod listener;
mod pool;
mod reply;
mod request;
mod retry;
mod row;
mod setup;
mod statements;
mod store;

pub use config::{ClockShift, PostgresConfig};
pub use store::PostgresStore;
