//! Errors of providers: what kind they are, whether to try again, and when.

use std::time::Duration;

use kortyx_reason::{GenaiModel, Message, ModelError, ModelErrorKind};
use serde_json::{Value, json};

use crate::{
    format::{ALL, Format, KEY, Said, hear},
    provider::Reply,
};

/// The body of an error as a provider writes it.
fn body(format: Format, kind: &str, message: &str) -> Value {
    match format {
        Format::Chat | Format::Responses => {
            json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
        }
        Format::Anthropic => {
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
        }
        Format::Gemini => json!({"error": {"code": 400, "message": message, "status": kind}}),
    }
}

async fn fails(format: Format, reply: &Reply) -> [ModelError; 2] {
    let streamed = format.hears(reply.clone(), false).await.unwrap_err();
    let buffered = format.hears(reply.clone(), true).await.unwrap_err();
    [streamed, buffered]
}

#[tokio::test]
async fn a_status_says_whether_to_try_again_and_the_headers_when() {
    for format in ALL {
        let cases = [
            (Reply::json(429, &body(format, "rate_limit_error", "slow")).header("retry-after", "7"), true, Some(7000)),
            (
                Reply::json(429, &body(format, "rate_limit_error", "slow")).header("retry-after-ms", "250"),
                true,
                Some(250),
            ),
            (
                Reply::json(503, &body(format, "UNAVAILABLE", "slow"))
                    .header("date", "Mon, 30 Nov 2026 22:00:00 GMT")
                    .header("retry-after", "Mon, 30 Nov 2026 22:00:09 GMT"),
                true,
                Some(9000),
            ),
            (Reply::json(503, &json!({})).header("retry-after", "Mon, 30 Nov 1998 22:00:09 GMT"), true, Some(0)),
            (Reply::json(503, &json!({})).header("retry-after", "soon"), true, None),
            (Reply::json(529, &body(format, "overloaded_error", "overloaded")), true, None),
            (Reply::text(502, "text/html", "<html>Bad gateway</html>"), true, None),
            (Reply::json(400, &body(format, "invalid_request_error", "unknown parameter")), false, None),
            (Reply::json(401, &body(format, "authentication_error", "no such key")), false, None),
            (Reply::json(404, &body(format, "not_found_error", "no such model")), false, None),
            (Reply::json(429, &body(format, "insufficient_quota", "pay")), false, None),
            (Reply::json(500, &json!({})).header("x-should-retry", "false"), false, None),
            (Reply::json(409, &json!({})).header("x-should-retry", "true"), true, None),
        ];
        for (reply, transient, wait) in cases {
            for error in fails(format, &reply).await {
                assert!(matches!(error.kind(), ModelErrorKind::Http(_)), "{format:?}: {error:?}");
                assert_eq!(error.is_transient(), transient, "{format:?}: {error}");
                assert_eq!(error.retry_after(), wait.map(Duration::from_millis), "{format:?}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn google_says_in_the_body_how_long_to_wait() {
    let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"});
    let body = json!({"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": [retry]}});
    for error in fails(Format::Gemini, &Reply::json(429, &body)).await {
        assert_eq!(
            (error.kind(), error.retry_after()),
            (ModelErrorKind::Http(429), Some(Duration::from_millis(17_500)))
        );
    }
}

#[tokio::test]
async fn the_error_says_what_the_provider_said_and_never_the_key() {
    for format in ALL {
        let reply = Reply::json(401, &body(format, "authentication_error", &format!("the key {KEY} is not valid")));
        for error in fails(format, &reply).await {
            let text = format!("{error} {error:?}");
            assert!(text.contains(&format!("`{}`: 401: the key [key] is not valid", format.model())), "{text}");
            assert!(!text.contains(KEY), "{text}");
        }
        let long = Reply::text(500, "text/plain", &"é".repeat(100_000));
        for error in fails(format, &long).await {
            assert!(error.to_string().len() < 3000);
        }
    }
}

#[tokio::test]
async fn an_error_in_a_stream_is_the_error_that_it_would_have_been_before_it() {
    let frame = |kind: &str, value: &Value| format!("event: {kind}\ndata: {value}\n\n");
    let failed = |code: &str| {
        let error = json!({"code": code, "message": "it failed"});
        json!({"type": "response.failed", "response": {"id": "answer-1", "status": "failed", "model": "m", "error": error, "output": []}})
    };
    let cases = [
        (Format::Chat, "message", body(Format::Chat, "server_error", "it failed"), ModelErrorKind::Http(500), true),
        (
            Format::Chat,
            "message",
            json!({"error": {"code": 429, "message": "it failed"}}),
            ModelErrorKind::Http(429),
            true,
        ),
        (Format::Responses, "response.failed", failed("server_error"), ModelErrorKind::Http(500), true),
        (Format::Responses, "response.failed", failed("rate_limit_exceeded"), ModelErrorKind::Http(429), true),
        (
            Format::Responses,
            "error",
            json!({"type": "error", "code": "server_error", "message": "it failed", "param": null}),
            ModelErrorKind::Http(500),
            true,
        ),
        (
            Format::Anthropic,
            "error",
            body(Format::Anthropic, "overloaded_error", "it failed"),
            ModelErrorKind::Http(529),
            true,
        ),
        (
            Format::Anthropic,
            "error",
            body(Format::Anthropic, "invalid_request_error", "it failed"),
            ModelErrorKind::Http(400),
            false,
        ),
        (
            Format::Anthropic,
            "error",
            body(Format::Anthropic, "new_error", "it failed"),
            ModelErrorKind::InvalidResponse,
            false,
        ),
        (
            Format::Gemini,
            "message",
            json!({"error": {"code": 503, "message": "it failed", "status": "UNAVAILABLE"}}),
            ModelErrorKind::Http(503),
            true,
        ),
    ];
    for (format, kind, value, expected, transient) in cases {
        let frames = format.frames(&Said::much());
        for place in [0, 1, frames.len() - 1] {
            let mut frames = frames.clone();
            frames.insert(place, frame(kind, &value));
            let error = format.hears(Reply::stream(&frames), false).await.unwrap_err();
            assert_eq!((error.kind(), error.is_transient()), (expected, transient), "{format:?}: {error}");
            assert!(error.to_string().contains("it failed"), "{error}");
        }
    }
}

#[tokio::test]
async fn an_error_with_the_status_of_an_answer_is_an_error() {
    for format in ALL {
        for error in fails(format, &Reply::json(200, &body(format, "server_error", "it failed"))).await {
            assert_ne!(error.kind(), ModelErrorKind::Refusal, "{format:?}: {error}");
        }
    }
    let whole = json!({
        "id": "answer-1", "object": "response", "status": "failed", "model": "m", "output": [],
        "error": {"code": "server_error", "message": "it failed"},
    });
    let error = Format::Responses.hears(Reply::json(200, &whole), true).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Http(500), "{error}");
}

#[tokio::test]
async fn a_redirection_is_not_followed_with_the_key() {
    for format in ALL {
        let reply = Reply::json(307, &json!({})).header("location", "http://127.0.0.1:9/stolen");
        for error in fails(format, &reply).await {
            assert_eq!((error.kind(), error.is_transient()), (ModelErrorKind::Http(307), false), "{format:?}: {error}");
        }
    }
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_a_failure_of_transport_that_keeps_passwords_to_itself() {
    let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for format in ALL {
        for buffered in [false, true] {
            let url = format!("http://user:pass-word@{address}/v1");
            let model = GenaiModel::new(format.model()).unwrap().endpoint(url).api_key(KEY);
            let model = if buffered { model.buffered() } else { model };
            let error = hear(&model, &[Message::user("Tea.")], &[]).await.unwrap_err();
            assert_eq!((error.kind(), error.is_transient()), (ModelErrorKind::Transport, true), "{error}");
            let text = format!("{error:?} {model:?}");
            assert!(!text.contains("pass-word") && !text.contains(KEY), "{text}");
        }
    }
}
