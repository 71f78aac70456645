//! Leaves a cache that fails alone for a while.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Whether the cache may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Yes.
    Asked,
    /// No.
    Bypassed,
    /// No, and whoever is told this finds out, off the path of a caller, whether it works again.
    Probed,
}

/// Opens at the first failure; closes when a probe succeeds.
#[derive(Debug)]
pub(crate) struct Breaker {
    first: Duration,
    longest: Duration,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// When to probe; `None` while the cache works.
    until: Option<Instant>,
    is_probed: bool,
    /// How long the next bypass lasts.
    wait: Duration,
}

impl Breaker {
    pub(crate) fn new((first, longest): (Duration, Duration)) -> Self {
        Self { first, longest, inner: Mutex::new(Inner { until: None, is_probed: false, wait: first }) }
    }

    pub(crate) fn state(&self) -> State {
        let mut inner = self.lock();
        match inner.until {
            None => State::Asked,
            Some(until) if inner.is_probed || Instant::now() < until => State::Bypassed,
            Some(_) => {
                inner.is_probed = true;
                State::Probed
            }
        }
    }

    /// A call succeeded: the next failure is a new one.
    pub(crate) fn succeeded(&self) {
        let mut inner = self.lock();
        if inner.until.is_none() {
            inner.wait = self.first;
        }
    }

    /// A call failed. Says for how long the cache is left alone, to the first that notices.
    pub(crate) fn failed(&self) -> Option<Duration> {
        let mut inner = self.lock();
        if inner.until.is_some() {
            return None;
        }
        Some(self.open(&mut inner))
    }

    /// A probe ended. Says for how long the cache is left alone, when it still fails.
    pub(crate) fn probed(&self, is_well: bool) -> Option<Duration> {
        let mut inner = self.lock();
        inner.is_probed = false;
        if is_well {
            inner.until = None;
            return None;
        }
        Some(self.open(&mut inner))
    }

    fn open(&self, inner: &mut Inner) -> Duration {
        let wait = inner.wait;
        inner.until = Some(Instant::now() + wait);
        inner.wait = (wait * 2).min(self.longest);
        wait
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn breaker() -> Breaker {
        Breaker::new((SECOND, SECOND * 3))
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_failure_one_is_told_to_probe_and_only_when_the_time_is_over() {
        let breaker = breaker();
        assert_eq!(breaker.state(), State::Asked);
        assert_eq!(breaker.failed(), Some(SECOND));
        assert_eq!(breaker.failed(), None, "it is bypassed already");
        assert_eq!(breaker.state(), State::Bypassed);
        tokio::time::advance(SECOND).await;
        assert_eq!(breaker.state(), State::Probed);
        assert_eq!(breaker.state(), State::Bypassed, "one probe at a time");
        assert_eq!(breaker.probed(true), None);
        assert_eq!(breaker.state(), State::Asked);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_doubles_up_to_its_bound_until_a_call_succeeds() {
        let breaker = breaker();
        assert_eq!(breaker.failed(), Some(SECOND));
        for wait in [2, 3, 3] {
            tokio::time::advance(SECOND * 3).await;
            assert_eq!(breaker.state(), State::Probed);
            assert_eq!(breaker.probed(false), Some(SECOND * wait));
        }
        tokio::time::advance(SECOND * 3).await;
        assert_eq!(breaker.state(), State::Probed);
        breaker.probed(true);
        assert_eq!(breaker.failed(), Some(SECOND * 3), "a probe that succeeds is not enough");
        tokio::time::advance(SECOND * 3).await;
        assert_eq!(breaker.state(), State::Probed);
        breaker.probed(true);
        breaker.succeeded();
        assert_eq!(breaker.failed(), Some(SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_under_way_at_the_failure_closes_nothing() {
        let breaker = breaker();
        breaker.failed();
        breaker.succeeded();
        assert_eq!(breaker.state(), State::Bypassed);
    }
}
