//! JSON responses.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use kortyx_protocol::{RunId, json};
use serde::Serialize;

/// The run that a response is about.
const RUN_ID: HeaderName = HeaderName::from_static("kortyx-run-id");

/// A response that may hold tokens and questions, so nobody keeps it.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let (status, body) = match json::to_vec(value) {
        Ok(body) => (status, Body::from(body)),
        Err(error) => {
            tracing::error!(%error, "a response is not JSON");
            (StatusCode::INTERNAL_SERVER_ERROR, Body::empty())
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A response with status 200.
pub(crate) fn ok(value: &impl Serialize) -> Response {
    json(StatusCode::OK, value)
}

/// A response that says which run it is about, for those who follow it.
pub(crate) fn of_run(mut response: Response, run_id: Option<&RunId>) -> Response {
    if let Some(value) = run_id.and_then(|run_id| HeaderValue::from_str(run_id.as_str()).ok()) {
        response.headers_mut().insert(RUN_ID, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_json_is_an_internal_error_and_not_half_a_body() {
        assert_eq!(ok(&f64::NAN).status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(ok(&1).status(), StatusCode::OK);
    }
}
