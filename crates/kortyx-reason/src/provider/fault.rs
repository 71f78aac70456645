//! What goes wrong, as our errors: their kind, whether it may go well later, how long to wait.

use std::{
    error::Error as _,
    time::{Duration, SystemTime},
};

use genai::{BoxError, webc};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::seen::{Seen, at};
use crate::{ModelError, ModelErrorKind};

/// How much of what a provider wrote is kept for the log.
const LONGEST_TEXT: usize = 1000;

/// Makes errors of one model, which name it and hide its key.
pub(super) struct Faults {
    model: String,
    keys: Vec<String>,
}

impl Faults {
    pub(super) fn new(model: String, key: Option<String>) -> Self {
        Self { model, keys: Vec::new() }.hiding(key)
    }

    /// Hides a key in all texts.
    pub(super) fn hiding(mut self, key: Option<String>) -> Self {
        self.keys.extend(key.filter(|key| !key.is_empty()));
        self
    }

    /// The answer is not what its format promises.
    pub(super) fn invalid(&self, what: &str) -> ModelError {
        self.error(ModelErrorKind::InvalidResponse, what)
    }

    /// The answer ended before it was complete.
    pub(super) fn cut(&self) -> ModelError {
        self.error(ModelErrorKind::Transport, "the answer ended before it was complete")
    }

    pub(super) fn refused(&self, words: &str) -> ModelError {
        self.error(ModelErrorKind::Refusal, &format!("the model refused to answer: {words}"))
    }

    /// An error in the place of an answer, or in the middle of one.
    pub(super) fn told(&self, error: &Value) -> ModelError {
        let error = inner(error);
        let Some(status) = status_of(error) else { return self.invalid(&words_of(error)) };
        self.status(status, error, &error.to_string(), &HeaderMap::new())
    }

    pub(super) fn of(&self, error: genai::Error, seen: &Seen) -> ModelError {
        if !seen.refusal.is_empty() {
            return self.refused(&seen.refusal);
        }
        if let Some(told) = &seen.error {
            return self.told(told);
        }
        match error {
            genai::Error::HttpError { status, body, headers, .. } => self.http(status.as_u16(), &body, &headers),
            genai::Error::WebModelCall { webc_error, .. } | genai::Error::WebAdapterCall { webc_error, .. } => {
                self.web(webc_error)
            }
            genai::Error::WebStream { error, .. } => self.stream(error),
            genai::Error::ChatResponse { body, .. } => self.told(&body),
            genai::Error::ChatResponseGeneration { cause, .. } => self.invalid(&cause),
            genai::Error::StreamParse { serde_error, .. } => self.invalid(&serde_error.to_string()),
            error @ (genai::Error::NoChatResponse { .. }
            | genai::Error::InvalidJsonResponseElement { .. }
            | genai::Error::JsonValueExt(_)
            | genai::Error::SerdeJson(_)) => self.invalid(&error.to_string()),
            error => self.error(ModelErrorKind::Configuration, &error.to_string()),
        }
    }

    fn web(&self, error: webc::Error) -> ModelError {
        match error {
            webc::Error::ResponseFailedStatus { status, body, headers } => self.http(status.as_u16(), &body, &headers),
            webc::Error::Reqwest(error) => self.transport(error),
            webc::Error::ResponseFailedNotJson { content_type, .. } => {
                self.invalid(&format!("the answer is of the type `{content_type}`, not JSON"))
            }
            webc::Error::ResponseFailedInvalidJson { cause, .. } => self.invalid(&cause),
            webc::Error::JsonValueExt(error) => self.invalid(&error.to_string()),
        }
    }

    fn stream(&self, error: BoxError) -> ModelError {
        let error = match error.downcast::<genai::Error>() {
            Ok(error) => return self.of(*error, &Seen::default()),
            Err(error) => error,
        };
        match error.downcast::<reqwest::Error>() {
            Ok(error) => self.transport(*error),
            Err(error) if error.is::<std::string::FromUtf8Error>() => self.invalid(&error.to_string()),
            Err(error) => self.error(ModelErrorKind::Transport, &error.to_string()),
        }
    }

    /// The connection, or its making. An address may hold a password, so it is left out.
    fn transport(&self, error: reqwest::Error) -> ModelError {
        let kind = if error.is_builder() { ModelErrorKind::Configuration } else { ModelErrorKind::Transport };
        let error = error.without_url();
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        self.error(kind, &text)
    }

    fn http(&self, status: u16, body: &str, headers: &HeaderMap) -> ModelError {
        let value = serde_json::from_str::<Value>(body).unwrap_or_default();
        self.status(status, inner(&value), body, headers)
    }

    fn status(&self, status: u16, error: &Value, body: &str, headers: &HeaderMap) -> ModelError {
        let codes = ["code", "type", "status"].map(|key| error.get(key).and_then(Value::as_str).unwrap_or_default());
        let is = |code: &str| codes.contains(&code);
        if is("content_filter") || is("content_policy_violation") {
            return self.refused(&words_of(error));
        }
        let words = if error.is_object() { words_of(error) } else { body.to_owned() };
        let mut fault = self.error(ModelErrorKind::Http(status), &format!("{status}: {words}"));
        if is("insufficient_quota") {
            fault = fault.with_transient(false);
        }
        match headers.get("x-should-retry").map(reqwest::header::HeaderValue::as_bytes) {
            Some(b"true") => fault = fault.with_transient(true),
            Some(b"false") => fault = fault.with_transient(false),
            _ => {}
        }
        match retry_after(headers).or_else(|| retry_delay(error)) {
            Some(time) => fault.with_retry_after(time),
            None => fault,
        }
    }

    fn error(&self, kind: ModelErrorKind, text: &str) -> ModelError {
        let mut text = text.to_owned();
        for key in &self.keys {
            text = text.replace(key.as_str(), "[key]");
        }
        if let Some((end, _)) = text.char_indices().nth(LONGEST_TEXT) {
            text.truncate(end);
            text.push('…');
        }
        ModelError::new(kind, format!("`{}`: {text}", self.model))
    }
}

/// The error within what is around it.
fn inner(value: &Value) -> &Value {
    let value = value.get(0).unwrap_or(value);
    value.get("error").filter(|error| !error.is_null()).unwrap_or(value)
}

fn words_of(error: &Value) -> String {
    let words = at(error, "/message").as_str().or_else(|| error.as_str());
    words.map_or_else(|| error.to_string(), ToOwned::to_owned)
}

/// The status that an error in a stream would have had as a response.
fn status_of(error: &Value) -> Option<u16> {
    let code = at(error, "/code").as_u64().and_then(|code| u16::try_from(code).ok());
    if let Some(code) = code.filter(|code| (400..600).contains(code)) {
        return Some(code);
    }
    let names = ["type", "code", "status"].into_iter().filter_map(|key| error.get(key)?.as_str());
    names.into_iter().find_map(|name| {
        Some(match name {
            "invalid_request_error" | "INVALID_ARGUMENT" | "content_filter" => 400,
            "authentication_error" => 401,
            "permission_error" => 403,
            "not_found_error" => 404,
            "request_too_large" => 413,
            "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" | "RESOURCE_EXHAUSTED" => 429,
            "api_error" | "server_error" | "internal_server_error" | "INTERNAL" => 500,
            "UNAVAILABLE" => 503,
            "timeout_error" | "DEADLINE_EXCEEDED" => 504,
            "overloaded_error" => 529,
            _ => return None,
        })
    })
}

/// What the headers ask to wait: milliseconds, seconds, or until a time, which is that of the provider's clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok();
    if let Some(time) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(time / 1000.0).ok();
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Some(time) = number(after) {
        return Duration::try_from_secs_f64(time).ok();
    }
    let now = text(DATE.as_str()).and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or_else(SystemTime::now);
    Some(httpdate::parse_http_date(after).ok()?.duration_since(now).unwrap_or_default())
}

/// The same in the body, as Google says it.
fn retry_delay(error: &Value) -> Option<Duration> {
    let delay = at(error, "/details").as_array()?.iter().find_map(|detail| at(detail, "/retryDelay").as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}
