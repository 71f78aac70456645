//! When a pass is tried again: transient failures only, and only before the model has said something.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

use super::{Collected, Listener, Model, ModelError, ModelRequest, Patience, collect};

/// How often and how far apart a pass is tried.
///
/// Waits grow by a factor of two, with jitter. What the provider asks for (`Retry-After`) is kept when it is longer; when it is
/// longer than [`longest_wait`](Self::longest_wait), the pass fails instead of holding the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct ModelRetry {
    attempts: u32,
    first_wait: Duration,
    longest_wait: Duration,
}

impl Default for ModelRetry {
    /// Four attempts, half a second apart at first, at most 30 seconds.
    fn default() -> Self {
        Self { attempts: 4, first_wait: Duration::from_millis(500), longest_wait: Duration::from_secs(30) }
    }
}

impl ModelRetry {
    /// One attempt.
    pub fn never() -> Self {
        Self::default().attempts(1)
    }

    /// How many attempts there are, the first included.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The wait before the second attempt.
    pub fn first_wait(mut self, wait: Duration) -> Self {
        self.first_wait = wait;
        self
    }

    /// The longest wait.
    pub fn longest_wait(mut self, wait: Duration) -> Self {
        self.longest_wait = wait;
        self
    }

    fn waits(self) -> impl Iterator<Item = Duration> {
        ExponentialBuilder::default()
            .with_min_delay(self.first_wait)
            .with_max_delay(self.longest_wait)
            .with_max_times(usize::try_from(self.attempts.saturating_sub(1)).unwrap_or(usize::MAX))
            .with_jitter()
            .build()
    }

    /// How long to wait after this failure, unless it is final.
    fn wait(self, error: &ModelError, backoff: Option<Duration>) -> Option<Duration> {
        let backoff = backoff.filter(|_| error.is_transient())?.min(self.longest_wait);
        let asked = error.retry_after().unwrap_or_default();
        (asked <= self.longest_wait).then(|| backoff.max(asked))
    }
}

/// Runs a pass to its end.
pub(crate) async fn answered(
    model: &dyn Model,
    request: ModelRequest<'_>,
    retry: ModelRetry,
    patience: Patience,
    listener: &mut impl Listener,
) -> Result<Collected, ModelError> {
    let clock = patience.begin();
    let mut waits = retry.waits();
    loop {
        let failed = match collect(model, request, &clock, listener).await {
            Ok(collected) => return Ok(collected),
            Err(failed) => failed,
        };
        let backoff = if failed.has_begun { None } else { waits.next() };
        let wait = retry.wait(&failed.error, backoff).filter(|wait| clock.has(*wait));
        let Some(wait) = wait else { return Err(failed.error) };
        tracing::warn!(model = model.name(), error = %failed.error, ?wait, "the model failed; it is tried again");
        tokio::time::sleep(wait).await;
    }
}
