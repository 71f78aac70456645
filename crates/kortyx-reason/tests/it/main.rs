//! Reasoning in runs of an agent, on the store in memory.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails should say where"
)]

mod any_output;
mod approval;
mod cases;
mod crashes;
mod deliveries;
mod later_code;
mod limits;
mod models;
mod outputs;
mod places;
mod questions;
mod rejections;
mod stream;
mod streamed_crashes;
mod streamed_outputs;
mod telling;
mod tool_questions;
mod tools;
mod turns;
mod world;
