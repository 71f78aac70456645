//! What this adapter promises beyond the port: on a server, through proxies that cut connections, and across crashes.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what fails in a test panics")]

mod beside;
mod explained;
mod faults;
mod life;
mod load;
mod plain;
mod plans;
mod proxy;
mod standstill;
#[path = "../support/mod.rs"]
mod support;
#[cfg(feature = "tls")]
mod tls;
mod trips;
mod upgrade;
mod world;
