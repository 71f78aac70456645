//! The agent on the store in memory.

mod answers;
mod execute;
mod world;
