//! Tools of real MCP servers: one that is a child process, and one that listens on the loopback.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails should say where")]

mod calls;
mod elicitations;
mod endings;
mod http;
mod lists;
mod server;
mod world;
