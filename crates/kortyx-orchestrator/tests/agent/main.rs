//! The agent on the store in memory.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a world that cannot be built fails the test"
)]

mod answers;
mod begun;
mod branching;
mod chat;
mod disconnect;
mod driven;
mod execute;
mod follow;
mod hooks;
mod recovery;
mod responses;
mod sessions;
mod shutdown;
mod talk;
mod telemetry;
mod traced;
mod worker;
mod world;
