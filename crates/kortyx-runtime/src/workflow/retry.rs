//! How often a failed node is tried again, and how long to wait in between.

use std::time::Duration;

/// How a node that fails with a retryable error is tried again.
///
/// A pause for an answer is not a failure and never uses up an attempt. The delay before attempt `n` is
/// `delay * backoff^(n - 2)`, never more than `max_delay`.
///
/// ```
/// use std::time::Duration;
/// use kortyx_runtime::workflow::Retry;
///
/// let retry = Retry::attempts(4).delay(Duration::from_millis(100)).backoff(3.0).max_delay(Duration::from_millis(500));
/// let delays: Vec<u128> = (1..=4).map(|attempt| retry.delay_before(attempt).as_millis()).collect();
/// assert_eq!(delays, [0, 100, 300, 500]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Retry {
    /// How often the node is tried in total, at least 1. 1 means that it is never tried again.
    pub attempts: u32,
    /// The wait before the second attempt.
    pub delay: Duration,
    /// The factor by which each further wait grows, at least 1.
    pub backoff: f64,
    /// The longest wait.
    pub max_delay: Duration,
}

impl Retry {
    /// Tries the node `attempts` times in total, waiting 1 s, then 2 s, 4 s and so on, at most 60 s.
    pub fn attempts(attempts: u32) -> Self {
        Self { attempts, delay: Duration::from_secs(1), backoff: 2.0, max_delay: Duration::from_mins(1) }
    }

    /// Sets the wait before the second attempt. Zero tries again at once.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Sets the factor by which each further wait grows. 1 keeps the wait constant.
    #[must_use]
    pub fn backoff(self, backoff: f64) -> Self {
        Self { backoff, ..self }
    }

    /// Sets the longest wait.
    #[must_use]
    pub fn max_delay(self, max_delay: Duration) -> Self {
        Self { max_delay, ..self }
    }

    /// The wait before the given attempt, counted from 1: nothing before the first.
    pub fn delay_before(&self, attempt: u32) -> Duration {
        let Some(growths) = attempt.checked_sub(2) else { return Duration::ZERO };
        if self.delay.is_zero() {
            return Duration::ZERO;
        }
        let factor = self.backoff.powi(i32::try_from(growths).unwrap_or(i32::MAX));
        let seconds = self.delay.as_secs_f64() * factor;
        Duration::try_from_secs_f64(seconds).map_or(self.max_delay, |delay| delay.min(self.max_delay))
    }

    /// Says which value is out of range.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.attempts == 0 {
            return Err("`attempts` is 0: it counts every try, so it is at least 1");
        }
        if !(self.backoff.is_finite() && self.backoff >= 1.0) {
            return Err("`backoff` is not a number of at least 1: use 1 for a constant wait, 2 to double it");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn waits_grow_up_to_the_longest() {
        let retry = Retry::attempts(9);
        let waits: Vec<u64> = (1..=9).map(|attempt| retry.delay_before(attempt).as_secs()).collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn values_out_of_range_are_named() {
        assert_eq!(Retry::attempts(1).check(), Ok(()));
        assert!(Retry::attempts(0).check().is_err_and(|why| why.contains("`attempts`")));
        for backoff in [0.5, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Retry::attempts(2).backoff(backoff).check().is_err_and(|why| why.contains("`backoff`")));
        }
    }

    proptest! {
        #[test]
        fn no_wait_is_longer_than_the_longest(
            attempt: u32, delay: Duration, backoff in any::<f64>(), max_delay: Duration,
        ) {
            let retry = Retry::attempts(3).delay(delay).backoff(backoff).max_delay(max_delay);
            prop_assert!(retry.delay_before(attempt) <= max_delay);
        }
    }
}
