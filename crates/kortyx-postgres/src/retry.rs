//! Trying again what may be tried again.

use std::time::{Duration, Instant};

use crate::error::{Effect, Failure};

/// The first pause between attempts; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Makes attempts until one succeeds or is refused, for this long after the first that failed.
pub(crate) async fn retrying<T, F>(patience: Duration, attempt: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut started = None;
    let mut was_unknown = false;
    let mut pause = FIRST_PAUSE;
    loop {
        let failure = match attempt().await {
            Ok(outcome) => return Ok(outcome),
            // An attempt before may have taken effect.
            Err(failure) if failure.effect == Effect::Refused && was_unknown && failure.is_unavailable() => {
                return Err(failure.left_unknown());
            }
            Err(failure) if failure.effect == Effect::Refused => return Err(failure),
            Err(failure) => failure,
        };
        was_unknown |= failure.effect == Effect::Unknown;
        let tried_for = started.get_or_insert_with(Instant::now).elapsed();
        if tried_for + pause > patience {
            let failure = failure.given_up(tried_for);
            return Err(if was_unknown { failure.left_unknown() } else { failure });
        }
        tracing::debug!(?failure, "trying again");
        tokio::time::sleep(pause.mul_f64(jitter())).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Between a half and one and a half, so that those who failed together do not come back together.
fn jitter() -> f64 {
    let mut random = [0_u8; 2];
    if getrandom::fill(&mut random).is_err() {
        return 1.0;
    }
    0.5 + f64::from(u16::from_be_bytes(random)) / 65_536.0
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use kortyx_store::StoreErrorKind;

    use super::*;

    fn failing(effect: Effect) -> Result<(), Failure> {
        Err(Failure::new(StoreErrorKind::Unavailable, effect, "no"))
    }

    #[tokio::test]
    async fn attempts_go_on_until_one_succeeds() {
        let attempts = Cell::new(0);
        let outcome = retrying(Duration::from_secs(5), || async {
            attempts.set(attempts.get() + 1);
            if attempts.get() < 5 { failing(Effect::Unknown) } else { Ok(()) }
        });
        assert!(outcome.await.is_ok());
        assert_eq!(attempts.get(), 5);
    }

    #[tokio::test]
    async fn what_was_refused_is_not_tried_again() {
        let attempts = Cell::new(0);
        let outcome = retrying(Duration::from_secs(5), || async {
            attempts.set(attempts.get() + 1);
            failing(Effect::Refused)
        });
        assert_eq!(outcome.await.unwrap_err().message, "no");
        assert_eq!(attempts.get(), 1);
    }

    #[tokio::test]
    async fn an_outcome_that_stays_unknown_is_called_so() {
        let told =
            |effect| async move { retrying(Duration::ZERO, || async { failing(effect) }).await.unwrap_err().message };
        assert!(told(Effect::Unknown).await.contains("whether it took effect is unknown"));
        assert!(!told(Effect::Undone).await.contains("unknown"));
        let attempts = Cell::new(0);
        let outcome = retrying(Duration::from_secs(5), || async {
            attempts.set(attempts.get() + 1);
            failing(if attempts.get() == 1 { Effect::Unknown } else { Effect::Refused })
        });
        assert!(outcome.await.unwrap_err().message.contains("whether it took effect is unknown"));
    }
}
