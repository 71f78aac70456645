//! Failures as clients see them.

use std::{error::Error, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{FailureCategory, FailureCode, present::present};

/// One thing that is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Issue {
    /// Where, as a JSON pointer; empty for the whole value.
    pub path: String,
    /// Which rule it breaks; stable.
    pub code: String,
    /// What to do about it, for people.
    pub message: String,
}

impl Issue {
    /// An issue at this place.
    pub fn new(path: impl Into<String>, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), code: code.into(), message: message.into() }
    }
}

/// A failure as clients see it: what happened, whether to try again, what to change.
///
/// The message says what to do and carries no secret, no SQL and no connection string.
///
/// ```
/// use kortyx_protocol::{Failure, FailureCode, Issue};
///
/// let failure = Failure::new(FailureCode::InvalidResponse, "choose one of the options")
///     .with_issues([Issue::new("/ids", "required", "select exactly one option")]);
/// assert_eq!(failure.status, Some(422));
/// assert_eq!(failure.to_string(), "INVALID_RESPONSE: choose one of the options");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Failure {
    /// The version of this format: 1.
    pub version: u32,
    /// What went wrong.
    pub code: FailureCode,
    /// Whom it concerns.
    pub category: FailureCategory,
    /// What happened and what to do, for people.
    pub message: String,
    /// Whether the same call may succeed later without a change; `null` when nobody knows.
    pub retryable: Option<bool>,
    /// The HTTP status that goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What is wrong with the value that was sent, one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<Vec<Issue>>,
    /// More, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub details: Option<Value>,
    /// What led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<Failure>>,
}

impl Failure {
    /// The version of the format.
    pub const VERSION: u32 = 1;

    /// A failure with the category, the status and the retry advice of its code.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            version: Self::VERSION,
            code,
            category: code.category(),
            message: message.into(),
            retryable: code.retryable(),
            status: Some(code.status()),
            issues: None,
            details: None,
            cause: None,
        }
    }

    /// Says what is wrong with the value, one by one.
    #[must_use]
    pub fn with_issues(mut self, issues: impl IntoIterator<Item = Issue>) -> Self {
        self.issues = Some(issues.into_iter().collect());
        self
    }

    /// Adds what programs may want to know.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<Value>) -> Self {
        self.details = Some(details.into());
        self
    }

    /// Adds what led to it.
    #[must_use]
    pub fn with_cause(mut self, cause: Self) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// Replaces the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Replaces the retry advice.
    #[must_use]
    pub fn with_retryable(mut self, retryable: Option<bool>) -> Self {
        self.retryable = retryable;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}
