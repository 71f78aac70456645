//! Measures over stores on servers, against loops that send the same bytes through the same driver as often.

mod many;
mod paused;
pub(crate) mod postgres;
pub(crate) mod redis;
mod server;
mod trips;

pub(crate) use self::server::Server;

use crate::error::Error;

/// The cycle of a raw loop.
trait Raw: Clone + Send + Sync + 'static {
    /// Goes through the cycle with this number.
    fn cycle(&self, number: u64) -> impl Future<Output = Result<(), Error>> + Send;
}
