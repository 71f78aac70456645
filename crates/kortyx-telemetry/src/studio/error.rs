//! Why there is no reporter.

/// Why a reporter cannot be made. Never shows a value: it may be a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StudioError {
    /// A variable is not set.
    #[error("`{variable}` is not set, and other variables of telemetry are")]
    Missing {
        /// The variable.
        variable: &'static str,
    },
    /// A variable, or a part of the configuration, is wrong.
    #[error("`{name}` is wrong: {reason}")]
    Invalid {
        /// The variable or the part.
        name: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no Tokio runtime to send from.
    #[error("a reporter sends from a Tokio runtime, and there is none here")]
    NoRuntime,
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
    /// A workflow cannot be described.
    #[error("the topology of the workflow `{0}` cannot be written")]
    Topology(String),
}

impl StudioError {
    pub(super) fn invalid(name: &'static str, reason: &'static str) -> Self {
        Self::Invalid { name, reason }
    }
}
