//! Servers of a test's own, which it may stop, restart and cut off.

mod keeper;
mod postgres;
mod redis;

pub use postgres::PostgresServer;
pub use redis::{RedisCluster, RedisServer};
