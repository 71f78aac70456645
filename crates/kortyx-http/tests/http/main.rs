//! The routes and the server, over real connections.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a world that cannot be built fails the test"
)]

mod chat;
mod checkpoints;
mod client;
mod errors;
mod execute;
mod hostile;
mod interrupts;
mod links;
mod openapi;
mod runs;
mod scope;
mod shutdown;
mod slow;
mod workflows;
mod world;
