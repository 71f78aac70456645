//! What is cached, for how long, and what a cache that fails may cost.

use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The settings of a [`CachedStore`](crate::CachedStore).
///
/// ```
/// use std::time::Duration;
/// use kortyx_cache::CacheConfig;
///
/// let config = CacheConfig::new().timeout(Duration::from_millis(10)).above(32 * 1024);
/// # let _ = config;
/// ```
#[derive(Debug, Clone)]
pub struct CacheConfig {
    pub(crate) timeout: Duration,
    pub(crate) above: usize,
    pub(crate) largest: usize,
    pub(crate) ttl: Duration,
    pub(crate) outstanding: usize,
    pub(crate) bypass: (Duration, Duration),
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(25),
            above: 8 * KIB,
            largest: 4 * MIB,
            ttl: Duration::from_hours(1),
            outstanding: 16 * MIB,
            bypass: (Duration::from_secs(5), Duration::from_mins(1)),
        }
    }
}

impl CacheConfig {
    /// The defaults, which each method below names.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long a transition waits for the cache at most, 25 ms by default. Snapshots go into the cache beside the
    /// caller's path and may take forty times as long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// Caches snapshots that are longer than this, 8 KiB by default. A shorter one comes with the lease, in the same round
    /// trip.
    #[must_use]
    pub fn above(mut self, bytes: usize) -> Self {
        self.above = bytes;
        self
    }

    /// Does not cache snapshots that are longer than this, 4 MiB by default.
    #[must_use]
    pub fn largest(mut self, bytes: usize) -> Self {
        self.largest = bytes;
        self
    }

    /// How long the cache keeps a snapshot, an hour by default. One that is waited for longer is read from the store.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl.max(Duration::from_millis(1));
        self
    }

    /// How many bytes may be on their way to the cache at once, 16 MiB by default and 1 GiB at most. What is over that is
    /// not cached.
    #[must_use]
    pub fn outstanding(mut self, bytes: usize) -> Self {
        self.outstanding = bytes.min(1024 * MIB);
        self
    }

    /// How long the cache is left alone after a failure, 5 s by default, and at most, a minute by default: the time doubles
    /// while it goes on failing.
    #[must_use]
    pub fn bypass(mut self, first: Duration, longest: Duration) -> Self {
        self.bypass = (first, longest.max(first));
        self
    }

    /// How long a put may take.
    pub(crate) fn put_timeout(&self) -> Duration {
        self.timeout * 40
    }
}
