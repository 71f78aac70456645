#![doc = include_str!("../README.md")]
//!
//! How it works inside: `store` is the port. What writes becomes a `job` for the one `writer`, which takes a `batch` of
//! rows (read in the transaction, `work`, or known from the last commits), lets every `transition` decide over it and
//! commits once; transitions that read as they go are `alone`. What only reads takes one of the `readers` (`read`). SQL is
//! in `queries`, connections in `client`, the driver's errors in `error`.

mod alone;
mod batch;
mod client;
mod config;
mod error;
mod job;
#[cfg(test)]
mod plans;
mod read;
mod readers;
mod row;
mod store;
mod transition;
mod work;
mod writer;

pub use config::{SqliteConfig, Synchronous};
pub use store::SqliteStore;
