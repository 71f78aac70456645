//! What can go wrong with a model.

use std::{error::Error, sync::Arc, time::Duration};

use kortyx_protocol::{Failure, FailureCode};

/// Why a pass failed.
///
/// The message is for the application's log. A client sees what kind of failure it is and nothing that the provider wrote.
///
/// ```
/// use std::time::Duration;
///
/// use kortyx_reason::ModelError;
///
/// let busy = ModelError::http(429, "rate limit reached").with_retry_after(Duration::from_secs(2));
/// assert!(busy.is_transient());
/// assert!(!ModelError::http(400, "unknown parameter").is_transient());
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    kind: ModelErrorKind,
    message: String,
    transient: bool,
    retry_after: Option<Duration>,
    #[source]
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The provider answered with this HTTP status.
    Http(u16),
    /// The provider was not reached, or the connection broke.
    Transport,
    /// The answer is not what the provider's protocol promises.
    InvalidResponse,
    /// The provider refuses to answer this.
    Refusal,
    /// The adapter cannot work as it is set up: a missing key, an unknown model.
    Configuration,
}

impl ModelError {
    /// A failure of this kind. Failures of transport are transient; others are, when their status says so.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        let transient = match kind {
            ModelErrorKind::Http(status) => matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504 | 529),
            ModelErrorKind::Transport => true,
            ModelErrorKind::InvalidResponse | ModelErrorKind::Refusal | ModelErrorKind::Configuration => false,
        };
        Self { kind, message: message.into(), transient, retry_after: None, source: None }
    }

    /// The provider answered with this HTTP status.
    pub fn http(status: u16, message: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Http(status), message)
    }

    /// The provider was not reached, or the connection broke.
    pub fn transport(message: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Transport, message)
    }

    /// Says whether the same request may succeed later.
    #[must_use]
    pub fn with_transient(mut self, transient: bool) -> Self {
        self.transient = transient;
        self
    }

    /// How long the provider asks to wait (`Retry-After`).
    #[must_use]
    pub fn with_retry_after(mut self, time: Duration) -> Self {
        self.retry_after = Some(time);
        self
    }

    /// What led to it.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ModelErrorKind {
        self.kind
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        self.transient
    }

    /// How long the provider asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// What a client sees.
    pub(crate) fn failure(&self) -> Failure {
        let (code, text) = match self.kind {
            ModelErrorKind::Http(_) => (FailureCode::ProviderHttpError, "the model's provider answered with an error"),
            ModelErrorKind::Transport => (FailureCode::ProviderTransportError, "the model's provider was not reached"),
            ModelErrorKind::InvalidResponse => {
                (FailureCode::ProviderInvalidResponse, "the model's provider answered with something unreadable")
            }
            ModelErrorKind::Refusal => (FailureCode::ProviderRefusal, "the model refused to answer"),
            ModelErrorKind::Configuration => (
                FailureCode::ProviderConfiguration,
                "the model is not set up correctly; the server's log has the cause",
            ),
        };
        let failure = Failure::new(code, text).with_retryable(Some(self.transient));
        match self.kind {
            ModelErrorKind::Http(status) => failure.with_details(serde_json::json!({ "providerStatus": status })),
            _ => failure,
        }
    }
}
