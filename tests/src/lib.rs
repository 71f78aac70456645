//! What workspace-level tests are made of: a world with a store and a clock, processes that die, stores that fail.
//!
//! Tests run on the store that `KORTYX_TEST_STORE` names (see [`place`]), in a place of its own for each world. All give the
//! same results, because every store behaves the same.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "what fails in a test panics"
)]

mod counter;
pub mod driven;
mod facts;
mod heard;
pub mod place;
mod process;
mod reading;
pub mod redis_cli;
pub mod servers;
mod shapes;
pub mod site;
mod world;

pub use counter::Counter;
pub use facts::Facts;
pub use heard::Heard;
pub use kortyx_testkit::{Faulty, Gate, Op, When};
pub use process::Process;
pub use reading::{
    code, data, ends, eventually, failure, handle, input_of, kinds, only, questions, reason, takes_over, text_of,
};
pub use shapes::{approve_or_decline, one_node, resume_message, with};
pub use world::World;
