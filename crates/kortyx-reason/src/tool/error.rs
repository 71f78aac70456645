//! The error of a tool.

use std::{error::Error, fmt};

/// Why a tool did not do what it was asked.
///
/// Any `std::error::Error` converts into it by `?`. Its text is what the model reads, unless the tool's policy ends the run; clients
/// are told that the tool failed and not why.
pub struct ToolError {
    text: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ToolError {
    /// An error with this text for the model.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), source: None }
    }

    /// The error that it was made from.
    pub fn source(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError").field("text", &self.text).field("source", &self.source).finish()
    }
}

/// `ToolError` is no `Error` itself, so that this conversion can exist for every error that is.
impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self { text: error.to_string(), source: Some(Box::new(error)) }
    }
}
