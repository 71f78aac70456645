//! A cache in a real Redis beside a real Postgres.
//!
//! `KORTYX_TEST_POSTGRES_URL` and `KORTYX_TEST_REDIS_URL` name the servers: `cargo xtask test-matrix --lane postgres+cache` starts
//! them. Tests that stop a Redis or cut it off start one of their own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails in a test panics")]

mod conformance;
mod faults;
mod moody;
mod server;
mod world;
