//! The clock, the randomness and the timer that runs are given.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kortyx_protocol::Timestamp;
use kortyx_runtime::{Host, IoFuture, RecordError};

/// The machine's.
pub(crate) struct SystemHost;

impl Host for SystemHost {
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
    }

    fn random(&self) -> Result<[u8; 16], RecordError> {
        random().map_err(|error| RecordError {
            message: "random bytes are not to be had".into(),
            source: Some(error.into()),
        })
    }

    fn sleep(&self, duration: Duration) -> IoFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Bytes of the system's generator.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// A duration between three quarters and five quarters of this one, so that processes do not poll in step.
pub(crate) fn jittered(duration: Duration) -> Duration {
    let [byte] = random::<1>().unwrap_or([128]);
    duration.mul_f64(0.75 + f64::from(byte) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_a_quarter() {
        for _ in 0..1_000 {
            let jittered = jittered(Duration::from_secs(4));
            assert!((Duration::from_secs(3)..Duration::from_secs(5)).contains(&jittered), "{jittered:?}");
        }
    }
}
