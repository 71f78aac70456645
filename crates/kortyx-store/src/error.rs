//! What can go wrong in a store.

use std::error::Error;

/// The kinds of failure; each has a stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Another lease was granted since, or the run is terminal or gone: stop driving.
    LeaseLost,
    /// The id is taken.
    AlreadyExists,
    /// The turn that a new run [follows](crate::NewRun::follows) was taken back by a rollback.
    Abandoned,
    /// A listing without session, run or context.
    ScopeRequired,
    /// The request contradicts itself or names something malformed; the message says what.
    InvalidRequest,
    /// A payload is over the store's limit.
    TooLarge,
    /// The schema is newer than this code, or was edited.
    Schema,
    /// Stored data does not read back; it is left untouched.
    Corrupt,
    /// The store cannot be reached or is overloaded; trying again may help.
    Unavailable,
    /// The store was closed.
    Closed,
    /// The driver failed in another way.
    Backend,
}

/// A failed operation: what was being done, why, and the driver's own error as its source.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {message}")]
pub struct StoreError {
    kind: StoreErrorKind,
    operation: &'static str,
    message: String,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// An error of this kind; `message` is a lower-case fragment without secrets.
    pub fn new(kind: StoreErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        Self { kind, operation, message: message.into(), source: None }
    }

    /// Attaches the driver's error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Its kind.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The transition that failed.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Whether the same call may succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_was_being_done_and_leaves_its_source_to_the_reader() {
        let error = StoreError::new(StoreErrorKind::Unavailable, "answer", "the file is locked")
            .with_source("SQLITE_BUSY".to_owned());
        assert_eq!(error.to_string(), "answer: the file is locked");
        assert_eq!(error.source().map(ToString::to_string), Some("SQLITE_BUSY".to_owned()));
        assert_eq!((error.kind(), error.operation()), (StoreErrorKind::Unavailable, "answer"));
    }

    #[test]
    fn only_an_unavailable_store_is_worth_another_try() {
        let retryable = |kind| StoreError::new(kind, "open", "why").is_retryable();
        assert!(retryable(StoreErrorKind::Unavailable));
        for kind in [StoreErrorKind::LeaseLost, StoreErrorKind::AlreadyExists, StoreErrorKind::Closed] {
            assert!(!retryable(kind));
        }
    }
}
