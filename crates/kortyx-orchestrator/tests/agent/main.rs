//! The agent on the store in memory.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a world that cannot be built fails the test"
)]

mod answers;
mod begun;
mod chat;
mod disconnect;
mod driven;
mod execute;
mod faulty;
mod hooks;
mod recovery;
mod responses;
mod shutdown;
mod worker;
mod world;
