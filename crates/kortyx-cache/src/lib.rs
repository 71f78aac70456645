//! A cache of snapshots beside a store.
//!
#![doc = include_str!("../README.md")]

mod breaker;
mod config;
mod counts;
mod guard;
mod store;

pub use config::CacheConfig;
pub use counts::CacheCounts;
pub use store::CachedStore;
