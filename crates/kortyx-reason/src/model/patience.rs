//! How long a pass may take.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::ModelError;

/// What a call allows its passes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// The longest wait for the next event.
    pub(crate) silence: Duration,
    /// The longest time of a pass, with all its attempts and the waits between them.
    pub(crate) pass: Duration,
}

impl Default for Patience {
    /// Models that reason may be silent for minutes.
    fn default() -> Self {
        Self { silence: Duration::from_mins(5), pass: Duration::from_mins(15) }
    }
}

impl Patience {
    /// A pass begins now.
    pub(crate) fn begin(self) -> PassClock {
        PassClock { patience: self, end: Instant::now().checked_add(self.pass) }
    }
}

/// The time of one pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassClock {
    patience: Patience,
    end: Option<Instant>,
}

impl PassClock {
    /// Waits for the model, as long as it may take.
    pub(crate) async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, ModelError> {
        let silent = Instant::now().checked_add(self.patience.silence);
        let Some(end) = silent.into_iter().chain(self.end).min() else { return Ok(work.await) };
        timeout_at(end, work).await.map_err(|_| self.expired(end))
    }

    /// Whether so much time is left.
    pub(crate) fn has(&self, time: Duration) -> bool {
        self.end.is_none_or(|end| Instant::now().checked_add(time).is_some_and(|then| then < end))
    }

    fn expired(&self, end: Instant) -> ModelError {
        ModelError::transport(if self.end == Some(end) {
            format!("the model was not done after {:?}", self.patience.pass)
        } else {
            format!("the model said nothing for {:?}", self.patience.silence)
        })
    }
}
