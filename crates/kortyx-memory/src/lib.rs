#![doc = include_str!("../README.md")]

mod index;
mod intern;
mod map;
mod question;
mod run;
mod session;
mod slab;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod transition;

pub use store::{MemoryStore, MemoryStoreBuilder};
