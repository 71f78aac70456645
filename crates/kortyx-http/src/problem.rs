//! Refused requests as responses.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use kortyx_orchestrator::OrchestratorError;
use kortyx_protocol::{Failure, FailureCode};
use serde::Serialize;

use crate::{Refusal, reply};

/// Why a request has no other response.
#[derive(Debug)]
pub(crate) struct Problem {
    failure: Box<Failure>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// As it is sent.
#[derive(Serialize)]
struct Body<'a> {
    error: &'a str,
    failure: &'a Failure,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: FailureCode, message: impl Into<String>) -> Self {
        Failure::new(code, message).with_status(status.as_u16()).into()
    }

    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Self {
        if let Ok(value) = value.try_into() {
            self.headers.push((name, value));
        }
        self
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let is_for_later = matches!(failure.status, Some(429 | 503));
        let problem = Self { failure: Box::new(failure), headers: Vec::new() };
        if is_for_later { problem.with_header(header::RETRY_AFTER, "1") } else { problem }
    }
}

impl From<OrchestratorError> for Problem {
    fn from(error: OrchestratorError) -> Self {
        Failure::from(error).into()
    }
}

impl From<Refusal> for Problem {
    fn from(Refusal { failure, challenge }: Refusal) -> Self {
        let problem = Self::from(failure);
        match challenge {
            Some(challenge) => problem.with_header(header::WWW_AUTHENTICATE, challenge),
            None => problem,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let failure = &*self.failure;
        let status = failure.status.and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = reply::json(status, &Body { error: &failure.message, failure });
        response.headers_mut().extend(self.headers);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_without_a_sensible_status_is_an_internal_error() {
        for status in [None, Some(7)] {
            let mut failure = Failure::new(FailureCode::NotFound, "gone");
            failure.status = status;
            assert_eq!(Problem::from(failure).into_response().status(), StatusCode::INTERNAL_SERVER_ERROR);
        }
    }

    #[test]
    fn what_may_succeed_later_says_when() {
        let busy = Problem::new(StatusCode::TOO_MANY_REQUESTS, FailureCode::LimitReached, "busy").into_response();
        assert_eq!(busy.headers().get("retry-after").unwrap(), "1");
        let refused = Problem::from(Refusal::unauthenticated("Bearer")).into_response();
        assert_eq!(refused.headers().get("www-authenticate").unwrap(), "Bearer");
    }
}
