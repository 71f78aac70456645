//! The clock, the randomness and the timer that runs are given.

use std::{
    cell::RefCell,
    mem,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

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

/// How many bytes are asked of the system at once: a call into it takes longer than to fill these.
const SUPPLY: usize = 1024;

thread_local! {
    /// Bytes of the system's generator that this thread has not used, and how many they are: the last ones of the supply.
    static RANDOM: RefCell<(usize, Box<[u8; SUPPLY]>)> = RefCell::new((0, Box::new([0; SUPPLY])));
}

/// Bytes of the system's generator. None is given out twice, nor kept once it was.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    const { assert!(N <= SUPPLY) };
    RANDOM.with_borrow_mut(|(left, supply)| {
        if *left < N {
            *left = 0;
            getrandom::fill(&mut **supply)?;
            *left = SUPPLY;
        }
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().zip(supply.iter_mut().skip(SUPPLY - *left)) {
            *to = mem::take(from);
        }
        *left -= N;
        Ok(bytes)
    })
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
    fn no_random_byte_is_given_out_twice() {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..2_000 {
            let (long, short): ([u8; 48], [u8; 16]) = (random().unwrap(), random().unwrap());
            let parts = long.chunks_exact(16).chain([short.as_slice()]).map(<[u8]>::to_vec);
            assert!(parts.into_iter().all(|part| part.iter().any(|byte| *byte != 0) && seen.insert(part)));
        }
    }

    #[test]
    fn jitter_stays_within_a_quarter() {
        for _ in 0..1_000 {
            let jittered = jittered(Duration::from_secs(4));
            assert!((Duration::from_secs(3)..Duration::from_secs(5)).contains(&jittered), "{jittered:?}");
        }
    }
}
