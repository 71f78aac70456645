//! The Kortyx store in Redis or Valkey.
//!
#![doc = include_str!("../README.md")]

mod answer;
mod cache;
mod call;
mod client;
mod config;
mod drive;
mod encode;
mod hints;
mod inspect;
mod list;
mod locate;
mod names;
mod pack;
mod prune;
mod read;
mod repair;
mod reply;
mod row;
mod script;
mod session;
mod setup;
mod signal;
mod snapshot;
mod store;
mod turn;
mod work;

pub use cache::RedisCache;
pub use config::RedisConfig;
pub use repair::Repaired;
pub use store::RedisStore;
