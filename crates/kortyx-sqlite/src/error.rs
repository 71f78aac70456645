//! How the driver's errors become the port's.

use std::{sync::Arc, time::Duration};

use kortyx_store::{StoreError, StoreErrorKind};
use sqlx::error::DatabaseError;

/// A failure that may be told to several callers: each gets its own error with the same source.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) kind: StoreErrorKind,
    message: String,
    source: Option<Arc<sqlx::Error>>,
}

impl Failure {
    pub(crate) fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The one mapping of the driver's errors. `patience` is how long it waited for a lock.
    pub(crate) fn from_driver(error: sqlx::Error, patience: Duration) -> Self {
        let (kind, message) = match &error {
            sqlx::Error::Database(database) => classify(database.as_ref(), patience),
            sqlx::Error::Io(_) => (StoreErrorKind::Unavailable, "the database file cannot be used".to_owned()),
            sqlx::Error::WorkerCrashed => (StoreErrorKind::Unavailable, "the connection broke".to_owned()),
            sqlx::Error::ColumnDecode { index, .. } => {
                (StoreErrorKind::Corrupt, format!("column {index} holds another type than it should"))
            }
            _ => (StoreErrorKind::Backend, "the database driver failed".to_owned()),
        };
        Self { kind, message, source: Some(Arc::new(error)) }
    }

    /// The error for one caller.
    pub(crate) fn told(&self, operation: &'static str) -> StoreError {
        let error = StoreError::new(self.kind, operation, self.message.clone());
        match &self.source {
            Some(source) => error.with_source(Arc::clone(source)),
            None => error,
        }
    }

    /// Whether only one of several transitions in a commit can be at fault.
    pub(crate) fn is_of_one(&self) -> bool {
        matches!(self.kind, StoreErrorKind::AlreadyExists | StoreErrorKind::TooLarge | StoreErrorKind::Backend)
    }
}

/// Result codes: <https://www.sqlite.org/rescode.html>.
fn classify(error: &dyn DatabaseError, patience: Duration) -> (StoreErrorKind, String) {
    let code = error.code().and_then(|code| code.parse::<i32>().ok()).unwrap_or_default();
    let (kind, message) = match code & 0xff {
        5 | 6 => {
            let message = format!("another process kept the database locked for {patience:?}");
            return (StoreErrorKind::Unavailable, message);
        }
        1 if error.message().starts_with("no such table") => {
            (StoreErrorKind::Schema, "the tables are missing: call setup first")
        }
        1 if error.message().starts_with("no such column") => {
            (StoreErrorKind::Schema, "a column is missing: the schema was edited")
        }
        8 => (StoreErrorKind::Unavailable, "the database file is read-only"),
        10 => (StoreErrorKind::Unavailable, "the disk failed"),
        11 => (StoreErrorKind::Corrupt, "the database file is damaged"),
        13 => (StoreErrorKind::Unavailable, "the disk is full"),
        14 => (StoreErrorKind::Unavailable, "the database file cannot be opened"),
        18 => (StoreErrorKind::TooLarge, "a value is larger than the database takes"),
        19 if error.is_unique_violation() => (StoreErrorKind::AlreadyExists, "an id is taken"),
        26 => (StoreErrorKind::Corrupt, "the file is no database"),
        _ => (StoreErrorKind::Backend, "the database refused a statement"),
    };
    (kind, message.to_owned())
}
