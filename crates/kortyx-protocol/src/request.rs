//! Reading requests: limits first, then JSON, with everything wrong said as a failure.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Failure, FailureCode, InvalidId, Issue, JsonError, Limits, SessionId, json, limits::nests_within};

/// Reads a body of at most so many bytes as a `T`.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8], limits: &Limits) -> Result<T, Failure> {
    if body.len() > limits.body_bytes {
        return Err(too_large("", format!("the request must have at most {} bytes", limits.body_bytes)));
    }
    json::from_slice(body).map_err(|JsonError { path, message }| invalid(path, message))
}

/// The request is malformed here.
pub(crate) fn invalid(path: impl Into<String>, message: impl Into<String>) -> Failure {
    refuse(FailureCode::InvalidRequest, "the request is malformed", Issue::new(path, "invalid", message))
}

/// Something of the request is too large.
pub(crate) fn too_large(path: impl Into<String>, message: impl Into<String>) -> Failure {
    refuse(FailureCode::PayloadTooLarge, "the request is too large", Issue::new(path, "too_large", message))
}

fn refuse(code: FailureCode, what: &str, issue: Issue) -> Failure {
    let place = if issue.path.is_empty() { String::new() } else { format!(" at {}", issue.path) };
    Failure::new(code, format!("{what}{place}: {}", issue.message)).with_issues([issue])
}

/// Trimmed; empty counts as absent.
pub(crate) fn trimmed(text: Option<String>) -> Option<String> {
    let text = text?;
    let inner = text.trim();
    if inner.is_empty() {
        return None;
    }
    Some(if inner.len() == text.len() { text } else { inner.to_owned() })
}

pub(crate) fn session_id(text: Option<String>) -> Result<Option<SessionId>, Failure> {
    let id = trimmed(text).map(SessionId::new).transpose();
    id.map_err(|error: InvalidId| invalid("/sessionId", error.to_string()))
}

/// Refuses an object that nests too deep.
pub(crate) fn check_depth(fields: Option<&Map<String, Value>>, path: &str, limits: &Limits) -> Result<(), Failure> {
    let levels = limits.metadata_depth;
    let fits = |fields: &Map<String, Value>| levels > 0 && fields.values().all(|field| nests_within(field, levels - 1));
    if fields.is_none_or(fits) {
        return Ok(());
    }
    Err(too_large(path, format!("it must nest at most {levels} levels deep")))
}
