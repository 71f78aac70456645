//! What went wrong, and whether trying again may help.

use std::{error::Error, fmt, sync::Arc};

use kortyx_store::{StoreError, StoreErrorKind};

/// What of the driver's error is told: never values, statements or addresses.
#[derive(Debug, Clone)]
pub(crate) struct Cause(pub(crate) String);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Cause {}

/// What became of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changed nothing, and would fail again.
    Refused,
    /// It changed nothing; the next attempt may succeed.
    Undone,
    /// The connection broke: it may have changed something. The next attempt finds out.
    Unknown,
}

/// A failed call.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) kind: StoreErrorKind,
    pub(crate) message: String,
    pub(crate) effect: Effect,
    cause: Option<Arc<Cause>>,
}

impl Failure {
    pub(crate) fn new(kind: StoreErrorKind, effect: Effect, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), effect, cause: None }
    }

    #[must_use]
    pub(crate) fn with_cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(Arc::new(Cause(cause.into())));
        self
    }

    pub(crate) fn closed() -> Self {
        Self::new(StoreErrorKind::Closed, Effect::Refused, "the store was closed")
    }

    /// Trying again has taken too long.
    #[must_use]
    pub(crate) fn given_up(mut self, was_unknown: bool, tried_for: std::time::Duration) -> Self {
        let outcome = if was_unknown { "; whether it took effect is unknown" } else { "" };
        self.message = format!("{}, also after {tried_for:?} of trying again{outcome}", self.message);
        self
    }

    pub(crate) fn told(&self, operation: &'static str) -> StoreError {
        let error = StoreError::new(self.kind, operation, self.message.clone());
        match &self.cause {
            Some(cause) => error.with_source(Arc::clone(cause)),
            None => error,
        }
    }
}
