//! Why there is no export.

/// Why the export of traces cannot be set up. Never shows a header or a variable: they may hold a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OtelError {
    /// A part of the configuration is wrong.
    #[error("`{name}` is wrong: {reason}")]
    Invalid {
        /// The part.
        name: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
    /// The exporter refuses what the variables `OTEL_EXPORTER_OTLP_*` say.
    #[error("the exporter cannot be set up from the variables `OTEL_EXPORTER_OTLP_*`")]
    Exporter,
}

impl OtelError {
    pub(super) fn invalid(name: &'static str, reason: &'static str) -> Self {
        Self::Invalid { name, reason }
    }
}
