//! Requests to answer a question by its id.

use serde::{Deserialize, Serialize};

use crate::{Failure, Limits, ResumeResponse, execution_request::check_answer, request::read};

/// A request to answer the question whose id the address names, by a caller whom the application authorised. Read it with
/// [`from_slice`](Self::from_slice).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerRequest {
    /// The answer.
    pub response: ResumeResponse,
}

impl AnswerRequest {
    /// Reads a request's body. Fails with `INVALID_REQUEST` or `PAYLOAD_TOO_LARGE`, naming the place.
    ///
    /// ```
    /// use kortyx_protocol::{AnswerRequest, Limits, ResumeResponse};
    ///
    /// let request = AnswerRequest::from_slice(br#"{"response":{"type":"text","text":"Ann"}}"#, &Limits::default())?;
    /// assert_eq!(request.response, ResumeResponse::text("Ann"));
    /// # Ok::<(), kortyx_protocol::Failure>(())
    /// ```
    pub fn from_slice(body: &[u8], limits: &Limits) -> Result<Self, Failure> {
        let request: Self = read(body, limits)?;
        check_answer(&request.response, "/response", limits)?;
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureCode;

    #[test]
    fn a_malformed_or_large_answer_is_refused() {
        let small = Limits { body_bytes: 60, answer_bytes: 10, selected: 1, ..Limits::default() };
        let (large, text) = ("x".repeat(60), "x".repeat(11));
        for (body, code) in [
            ("{}".to_owned(), FailureCode::InvalidRequest),
            (r#"{"response":"yes"}"#.to_owned(), FailureCode::InvalidRequest),
            (format!(r#"{{"response":{{"type":"text","text":"{text}"}}}}"#), FailureCode::PayloadTooLarge),
            (r#"{"response":{"type":"select","ids":["a","b"]}}"#.to_owned(), FailureCode::PayloadTooLarge),
            (format!(r#"{{"response":{{"type":"cancel"}},"x":"{large}"}}"#), FailureCode::PayloadTooLarge),
        ] {
            assert_eq!(AnswerRequest::from_slice(body.as_bytes(), &small).unwrap_err().code, code, "{body}");
        }
        assert!(AnswerRequest::from_slice(br#"{"response":{"type":"cancel"},"x":1}"#, &small).is_ok());
    }
}
