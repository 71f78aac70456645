//! Requests to the receiver. The only file that names the HTTP client's types.

use std::{
    future::Future,
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect,
};

use super::{StudioConfig, StudioError, config::bearer};
use crate::tls::tls;

/// How much of an answer is read.
const MAX_ANSWER: usize = 1024 * 1024;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Events,
    Revisions,
}

/// What a request came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// It was taken, with this answer.
    Taken(Bytes),
    /// It was refused for good, with this status.
    Refused(u16),
    /// It may be tried again, not before this time has passed.
    Later { after: Duration, why: String },
}

/// Sends a request and says what it came to.
pub(super) trait Deliver: Send + 'static {
    fn post(&self, route: Route, body: Bytes) -> impl Future<Output = Reply> + Send;
}

/// Over HTTP.
pub(super) struct Http {
    client: Client,
    events: Url,
    revisions: Url,
    key: HeaderValue,
}

impl Http {
    pub(super) fn new(config: &StudioConfig) -> Result<Self, StudioError> {
        let key = bearer(&config.key).ok_or(StudioError::invalid("key", "it cannot stand in a header"))?;
        if config.endpoint.scheme() == "http" {
            tracing::warn!("telemetry is sent without TLS: its key and its events can be read on the way");
        }
        let client = Client::builder()
            .tls_backend_preconfigured(tls().map_err(StudioError::Client)?)
            // The key would go along.
            .redirect(redirect::Policy::none())
            .timeout(config.patience.timeout)
            .build()
            .map_err(|error| StudioError::Client(error.to_string()))?;
        let below = |path| url(&config.endpoint, path);
        Ok(Self {
            client,
            events: below("v1/telemetry/events:batch")?,
            revisions: below("v1/telemetry/workflow-revisions:ensure")?,
            key,
        })
    }
}

fn url(endpoint: &Url, path: &str) -> Result<Url, StudioError> {
    let text = format!("{}/{path}", endpoint.as_str().trim_end_matches('/'));
    Url::parse(&text).map_err(|_| StudioError::invalid("endpoint", "it is not a URL"))
}

impl Deliver for Http {
    async fn post(&self, route: Route, body: Bytes) -> Reply {
        let url = match route {
            Route::Events => &self.events,
            Route::Revisions => &self.revisions,
        };
        let request = self.client.post(url.clone()).header(AUTHORIZATION, self.key.clone());
        match request.header(CONTENT_TYPE, "application/json").body(body).send().await {
            Ok(response) => reply(response).await,
            Err(error) => later(&error),
        }
    }
}

fn later(error: &reqwest::Error) -> Reply {
    let why = if error.is_timeout() { "it does not answer in time" } else { "it cannot be reached" };
    Reply::Later { after: Duration::ZERO, why: why.to_owned() }
}

async fn reply(mut response: Response) -> Reply {
    let status = response.status();
    if status.is_success() {
        let mut answer = BytesMut::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if answer.len().saturating_add(chunk.len()) <= MAX_ANSWER => {
                    answer.extend_from_slice(&chunk);
                }
                Ok(None) => return Reply::Taken(answer.freeze()),
                // It was taken, whatever else it says.
                Ok(Some(_)) => return Reply::Taken(Bytes::new()),
                Err(error) => return later(&error),
            }
        }
    }
    let passes = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    if passes || status.is_server_error() {
        let after = retry_after(response.headers()).unwrap_or_default();
        return Reply::Later { after, why: format!("it answers {}", status.as_u16()) };
    }
    Reply::Refused(status.as_u16())
}

/// `Retry-After`, in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::trim);
    let after = text(RETRY_AFTER)?;
    if let Ok(seconds) = after.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let now = text(DATE).and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or_else(SystemTime::now);
    Some(httpdate::parse_http_date(after).ok()?.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(headers: &[(reqwest::header::HeaderName, &str)]) -> Option<Duration> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
        retry_after(&headers.collect())
    }

    #[test]
    fn a_time_to_wait_is_read_as_seconds_and_as_a_date() {
        assert_eq!(after(&[(RETRY_AFTER, "7")]), Some(Duration::from_secs(7)));
        let date = [(RETRY_AFTER, "Thu, 01 Jan 2026 00:00:30 GMT"), (DATE, "Thu, 01 Jan 2026 00:00:00 GMT")];
        assert_eq!(after(&date), Some(Duration::from_secs(30)));
        assert_eq!(after(&[(RETRY_AFTER, "soon")]), None);
        assert_eq!(after(&[]), None);
    }

    #[test]
    fn the_path_of_the_endpoint_stays_in_front() {
        for endpoint in ["https://studio.example.com/ingest", "https://studio.example.com/ingest/"] {
            let url = url(&Url::parse(endpoint).unwrap(), "v1/telemetry/events:batch").unwrap();
            assert_eq!(url.as_str(), "https://studio.example.com/ingest/v1/telemetry/events:batch");
        }
    }
}
