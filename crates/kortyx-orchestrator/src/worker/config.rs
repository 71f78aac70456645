//! How a worker works.

use std::time::Duration;

use kortyx_store::Retention;

/// How a worker works.
///
/// ```
/// use std::time::Duration;
/// use kortyx_orchestrator::WorkerConfig;
///
/// let mut config = WorkerConfig::default();
/// config.poll = Duration::from_millis(250);
/// config.concurrency = 8;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerConfig {
    /// How often it looks for work, give or take a quarter. The store wakes it earlier where it can. A second by default.
    pub poll: Duration,
    /// How many recovered runs it drives at once. 64 by default.
    pub concurrency: usize,
    /// How many runs it claims at once, at most. 16 by default.
    pub claim_batch: u32,
    /// How many questions it closes at once, at most. 64 by default.
    pub expire_batch: u32,
    /// How often it removes what retention allows. Five minutes by default.
    pub prune_every: Duration,
    /// How many things it removes at once, at most. 256 by default.
    pub prune_batch: u32,
    /// How long things are kept.
    pub retention: Retention,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(1),
            concurrency: 64,
            claim_batch: 16,
            expire_batch: 64,
            prune_every: Duration::from_mins(5),
            prune_batch: 256,
            retention: Retention::default(),
        }
    }
}

impl WorkerConfig {
    /// Says which setting is out of range.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.poll.is_zero() {
            return Err("the worker's poll is zero: give it a millisecond or more");
        }
        if self.concurrency == 0 || self.claim_batch == 0 || self.expire_batch == 0 || self.prune_batch == 0 {
            return Err("the worker's concurrency or one of its batches is 0: give it at least 1");
        }
        Ok(())
    }
}
