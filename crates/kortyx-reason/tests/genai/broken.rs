//! Streams that break: an answer that is not complete is an error at every place, and never a success.

use kortyx_reason::ModelErrorKind;
use serde_json::json;

use crate::{
    format::{ALL, Format, Said},
    provider::Reply,
};

#[tokio::test]
async fn a_stream_that_ends_early_is_no_answer_wherever_it_ends() {
    for format in ALL {
        let frames = format.frames(&Said::much());
        for count in 0..frames.len() {
            for broken in [false, true] {
                let reply = Reply::stream(&frames[..count]);
                let reply = if broken { reply.broken() } else { reply };
                let error = format.hears(reply, false).await.unwrap_err();
                assert_eq!(error.kind(), ModelErrorKind::Transport, "{format:?} after {count}: {error}");
                assert!(error.is_transient());
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_ends_early_is_none() {
    for format in ALL {
        let whole = format.whole(&Said::much()).to_string();
        let reply = Reply::text(200, "application/json", &whole[..whole.len() / 2]);
        assert_eq!(format.hears(reply.clone(), true).await.unwrap_err().kind(), ModelErrorKind::InvalidResponse);
        assert_eq!(format.hears(reply.broken(), true).await.unwrap_err().kind(), ModelErrorKind::Transport);
    }
}

#[tokio::test]
async fn an_event_that_cannot_be_read_fails_the_pass_wherever_it_comes() {
    for format in ALL {
        let frames = format.frames(&Said::much());
        for place in 0..frames.len() {
            let mut frames = frames.clone();
            let (name, _) = frames[place].split_once("data: ").unwrap_or_default();
            frames[place] = format!("{name}data: {{\"type\": \"resp\n\n");
            let error = format.hears(Reply::stream(&frames), false).await.unwrap_err();
            assert_eq!(error.kind(), ModelErrorKind::InvalidResponse, "{format:?} at {place}: {error}");
            assert!(!error.is_transient());
        }
    }
}

#[tokio::test]
async fn an_event_without_what_it_is_for_is_not_skipped() {
    let frames = Format::Responses.frames(&Said::much());
    let has = |kind: &str| frames.iter().position(|frame| frame.contains(kind)).unwrap();
    for kind in ["response.output_text.delta", "response.function_call_arguments.delta", "response.output_item.added"] {
        let mut frames = frames.clone();
        frames[has(kind)] = format!("event: {kind}\ndata: {}\n\n", json!({"type": kind}));
        let error = Format::Responses.hears(Reply::stream(&frames), false).await.unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::InvalidResponse, "{kind}: {error}");
    }
}

#[tokio::test]
async fn what_is_no_answer_at_all_is_an_error() {
    for format in ALL {
        for buffered in [false, true] {
            let page = Reply::text(200, "text/html", "<html>Sign in</html>");
            let error = format.hears(page, buffered).await.unwrap_err();
            let kind = if buffered { ModelErrorKind::InvalidResponse } else { ModelErrorKind::Transport };
            assert_eq!(error.kind(), kind, "{format:?}: {error}");
            let nothing = if buffered { Reply::json(200, &json!({})) } else { Reply::stream(&["data: {}\n\n".into()]) };
            assert!(format.hears(nothing, buffered).await.is_err(), "{format:?}");
        }
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_fail_the_pass() {
    for format in ALL {
        let frames = format.frames(&Said::text("é"));
        // Pieces of one byte that end in the middle of the character.
        let bytes = frames.concat().into_bytes();
        let cut = bytes.iter().position(|byte| *byte == 0xc3).unwrap();
        let reply = Reply::bytes([&bytes[..=cut], b"\n\n", &bytes[cut..]].concat());
        let error = format.hears(reply, false).await.unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::InvalidResponse, "{format:?}: {error}");
    }
}

#[tokio::test]
async fn a_call_that_was_told_in_two_versions_is_made_in_none() {
    let mut frames = Format::Responses.frames(&Said::call("order", "{\"what\":\"tea\"}"));
    let last = frames.iter().position(|frame| frame.contains("output_item.done")).unwrap();
    frames[last] = frames[last].replace("tea", "coffee");
    let error = Format::Responses.hears(Reply::stream(&frames), false).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::InvalidResponse, "{error}");
}

#[tokio::test]
async fn a_call_that_the_model_got_wrong_is_an_answer_that_may_come_better() {
    let answer = json!({"candidates": [{"index": 0, "finishReason": "MALFORMED_FUNCTION_CALL"}]});
    for buffered in [false, true] {
        let reply = if buffered { Reply::json(200, &answer) } else { Reply::stream(&[format!("data: {answer}\n\n")]) };
        let error = Format::Gemini.hears(reply, buffered).await.unwrap_err();
        assert_eq!((error.kind(), error.is_transient()), (ModelErrorKind::InvalidResponse, true), "{error}");
    }
}
