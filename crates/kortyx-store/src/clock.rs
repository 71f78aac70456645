//! The clock of stores that have none of their own.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use kortyx_protocol::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that stands still until it is moved; for tests.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows this time.
    pub fn at(time: Timestamp) -> Self {
        Self(AtomicI64::new(time.as_millis()))
    }

    /// Moves it forward, to the end of time at most.
    pub fn advance(&self, by: Duration) {
        let later = |now| Timestamp::from_millis(now).saturating_add(by).as_millis();
        self.0.update(Ordering::SeqCst, Ordering::SeqCst, later);
    }

    /// Moves it to this time, backwards too.
    pub fn set(&self, time: Timestamp) {
        self.0.store(time.as_millis(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_it_is_told_to() {
        let clock = ManualClock::at(Timestamp::from_millis(1_000));
        assert_eq!(clock.now().as_millis(), 1_000);
        clock.advance(Duration::from_secs(2));
        assert_eq!(clock.now().as_millis(), 3_000);
        clock.set(Timestamp::from_millis(5));
        assert_eq!(clock.now().as_millis(), 5);
    }

    #[test]
    fn a_manual_clock_stops_at_the_end_of_time() {
        let clock = ManualClock::at(Timestamp::from_millis(1_000));
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::MAX);
    }

    #[test]
    fn the_machine_knows_what_century_it_is() {
        assert!(SystemClock.now() > Timestamp::from_millis(1_700_000_000_000));
    }
}
