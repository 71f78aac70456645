//! Reading bodies, within bounds of size and time.

use axum::{
    body::Body,
    http::{HeaderMap, StatusCode, header},
};
use http_body_util::BodyExt as _;
use kortyx_protocol::FailureCode;
use tokio::time::timeout;

use crate::{HttpLimits, problem::Problem};

/// The whole body. Its type does not matter; it must not be compressed.
pub(crate) async fn read(headers: &HeaderMap, body: Body, limits: &HttpLimits) -> Result<Vec<u8>, Problem> {
    let is_plain = |value: &header::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(header::CONTENT_ENCODING).iter().all(is_plain) {
        let message = "send the body as it is: a content encoding is not understood";
        let problem = Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, FailureCode::InvalidRequest, message);
        return Err(problem.with_header(header::ACCEPT_ENCODING, "identity"));
    }
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limits.request.body_bytes as u64) {
        return Err(too_large(limits));
    }
    let Ok(body) = timeout(limits.body_read, collect(body, limits)).await else {
        let message = "the body took too long to arrive";
        let problem = Problem::new(StatusCode::REQUEST_TIMEOUT, FailureCode::InvalidRequest, message);
        return Err(problem.with_header(header::CONNECTION, "close"));
    };
    body
}

async fn collect(mut body: Body, limits: &HttpLimits) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            Problem::new(StatusCode::BAD_REQUEST, FailureCode::InvalidRequest, "the body did not arrive as a whole")
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > limits.request.body_bytes {
            return Err(too_large(limits));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn too_large(limits: &HttpLimits) -> Problem {
    let message = format!("the request must have at most {} bytes", limits.request.body_bytes);
    // What is left of the body would be taken for the next request.
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, FailureCode::PayloadTooLarge, message)
        .with_header(header::CONNECTION, "close")
}
