//! What a model says comes through, whatever format carries it and however its bytes are split.

use kortyx_protocol::FailureCode;
use kortyx_reason::{FinishReason, ModelError, ModelErrorKind, ModelEvent, Usage};
use serde_json::{Value, json};

use crate::{
    format::{ALL, End, Format, Heard, Said},
    provider::Reply,
};

fn much() -> Vec<(String, Value)> {
    vec![("order".into(), json!({"what": "thé 🍵 vert", "amount": 2})), ("note".into(), json!({"what": "é"}))]
}

fn check(heard: &Heard, format: Format) {
    assert_eq!(heard.text, "Ein Tässchen 🫖", "{format:?}");
    assert_eq!(heard.calls, much(), "{format:?}");
    assert_eq!(heard.usage, Usage { input: 11, output: 7, total: 18 }, "{format:?}");
    assert_eq!(heard.finish, Some(FinishReason::ToolCalls), "{format:?}");
    assert_eq!((&heard.metadata["id"], &heard.metadata["cachedTokens"]), (&json!("answer-1"), &json!(4)), "{format:?}");
    assert!(heard.metadata["model"].as_str().unwrap().starts_with(format.model()), "{format:?}");
}

#[tokio::test]
async fn text_and_parallel_calls_come_with_what_they_cost() {
    for format in ALL {
        for buffered in [false, true] {
            check(&format.hears(format.reply(&Said::much(), buffered), buffered).await.unwrap(), format);
        }
    }
}

#[tokio::test]
async fn bytes_may_be_split_anywhere() {
    for format in ALL {
        for size in [1, 2, 5, usize::MAX] {
            check(&format.hears(format.reply(&Said::much(), false).split(size), false).await.unwrap(), format);
        }
    }
}

fn with_crlf(format: Format) -> String {
    format.frames(&Said::much()).concat().replace('\n', "\r\n")
}

#[tokio::test]
async fn lines_may_end_as_the_standard_allows() {
    for format in ALL {
        let reply = Reply::bytes(with_crlf(format).into_bytes());
        check(&format.hears(reply.clone(), false).await.unwrap(), format);
        // `genai` takes a line's end that is split for two, which only events with names feel.
        if format != Format::Anthropic {
            check(&format.hears(reply.split(1), false).await.unwrap(), format);
        }
    }
}

#[tokio::test]
async fn an_event_that_a_split_end_of_line_robs_of_its_name_is_not_skipped() {
    let text = with_crlf(Format::Anthropic);
    for (at, _) in text.match_indices("\r\ndata: ") {
        let reply = Reply::bytes(text.clone().into_bytes()).split(at + 1);
        match Format::Anthropic.hears(reply, false).await {
            Ok(heard) => check(&heard, Format::Anthropic), // the ping may be lost
            Err(error) => assert!(matches!(error.kind(), ModelErrorKind::InvalidResponse), "{error}"),
        }
    }
}

#[tokio::test]
async fn text_and_arguments_are_told_as_they_come() {
    for format in [Format::Chat, Format::Responses, Format::Anthropic] {
        let heard = format.hears(format.reply(&Said::much(), false), false).await.unwrap();
        let texts = heard.events.iter().filter(|event| matches!(event, ModelEvent::Text(text) if !text.is_empty()));
        let pieces = heard
            .events
            .iter()
            .filter(|event| matches!(event, ModelEvent::ToolCall { arguments, .. } if !arguments.is_empty()));
        assert_eq!((texts.count(), pieces.count()), (3, 6), "{format:?}: {:?}", heard.events);
    }
}

#[tokio::test]
async fn an_answer_may_be_a_text_and_a_call_may_have_no_arguments() {
    for format in ALL {
        for buffered in [false, true] {
            let heard = format.hears(format.reply(&Said::text("Tea."), buffered), buffered).await.unwrap();
            assert_eq!((heard.text.as_str(), heard.finish), ("Tea.", Some(FinishReason::Stop)), "{format:?}");
            let heard = format.hears(format.reply(&Said::call("now", "{}"), buffered), buffered).await.unwrap();
            assert_eq!(heard.calls, [("now".to_owned(), json!({}))], "{format:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_at_the_most_tokens_says_so() {
    for format in ALL {
        for buffered in [false, true] {
            let said = Said::text("Once upon").end(End::Cut);
            let heard = format.hears(format.reply(&said, buffered), buffered).await.unwrap();
            assert_eq!((heard.text.as_str(), heard.finish), ("Once upon", Some(FinishReason::Length)), "{format:?}");
        }
    }
    for format in [Format::Chat, Format::Responses, Format::Anthropic] {
        let said = Said::call("order", "{\"what\":\"te").end(End::Cut);
        let heard = format.hears(format.reply(&said, false), false).await.unwrap();
        assert_eq!(heard.calls, [("order".to_owned(), json!("{\"what\":\"te"))], "{format:?}");
        assert_eq!(heard.finish, Some(FinishReason::Length), "{format:?}");
    }
}

#[tokio::test]
async fn a_refusal_is_an_error_with_its_words() {
    let check = |error: &ModelError, words: &str, format: Format| {
        assert_eq!(error.kind(), ModelErrorKind::Refusal, "{format:?}: {error}");
        assert!(!error.is_transient() && error.to_string().contains(words), "{format:?}: {error}");
    };
    for format in ALL {
        for buffered in [false, true] {
            let said = Said::text("I can't help with tea.").end(End::Refused);
            let error = format.hears(format.reply(&said, buffered), buffered).await.unwrap_err();
            let words = match format {
                Format::Chat | Format::Responses => "I can't help with tea.",
                Format::Anthropic => "refusal",
                Format::Gemini => "SAFETY",
            };
            check(&error, words, format);
        }
    }
    let blocked =
        json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 5}});
    for buffered in [false, true] {
        let reply =
            if buffered { Reply::json(200, &blocked) } else { Reply::stream(&[format!("data: {blocked}\n\n")]) };
        check(&Format::Gemini.hears(reply, buffered).await.unwrap_err(), "PROHIBITED_CONTENT", Format::Gemini);
    }
    let mut filtered = Format::Responses.whole(&Said::text("No").end(End::Cut));
    filtered["incomplete_details"] = json!({"reason": "content_filter"});
    check(
        &Format::Responses.hears(Reply::json(200, &filtered), true).await.unwrap_err(),
        "content_filter",
        Format::Responses,
    );
    assert_eq!(FailureCode::ProviderRefusal.as_str(), "PROVIDER_REFUSAL");
}

#[tokio::test]
async fn calls_are_told_apart_by_their_numbers_and_where_those_are_missing_by_their_ids() {
    let delta = |calls: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": {"tool_calls": calls}, "finish_reason": reason});
        format!("data: {}\n\n", json!({"id": "answer-1", "model": "m", "choices": [choice]}))
    };
    let call = |index: Value, id: &str, tool: Value, arguments: &str| json!({"index": index, "id": id, "type": "function", "function": {"name": tool, "arguments": arguments}});
    let zero = json!(0);
    // In turns, with ids in every piece; then all with the number 0, as Gemini does in this format.
    let interleaved = [
        delta(
            json!([call(zero.clone(), "a", json!("order"), ""), call(json!(1), "b", json!("note"), "")]),
            Value::Null,
        ),
        delta(
            json!([call(json!(1), "b", Value::Null, "{\"what\":"), call(zero.clone(), "a", Value::Null, "{\"a\":1")]),
            Value::Null,
        ),
        delta(
            json!([call(zero.clone(), "a", Value::Null, "}"), call(json!(1), "b", Value::Null, "\"x\"}")]),
            json!("tool_calls"),
        ),
        "data: [DONE]\n\n".into(),
    ];
    let same_number = [
        delta(json!([call(zero.clone(), "a", json!("order"), "{\"a\":1}")]), Value::Null),
        delta(json!([call(zero, "b", json!("note"), "{\"what\":\"x\"}")]), json!("stop")),
        "data: [DONE]\n\n".into(),
    ];
    for frames in [&interleaved[..], &same_number[..]] {
        let heard = Format::Chat.hears(Reply::stream(frames), false).await.unwrap();
        let expected = [("order".to_owned(), json!({"a": 1})), ("note".to_owned(), json!({"what": "x"}))];
        assert_eq!(heard.calls, expected);
        assert_eq!(heard.finish, Some(FinishReason::ToolCalls));
    }
}

#[tokio::test]
async fn a_call_that_only_the_end_of_the_stream_tells_is_not_lost() {
    let frames = Format::Responses.frames(&Said::call("order", "{\"what\":\"tea\"}"));
    let only_the_end = [frames[0].clone(), frames[frames.len() - 1].clone()];
    let heard = Format::Responses.hears(Reply::stream(&only_the_end), false).await.unwrap();
    assert_eq!(heard.calls, [("order".to_owned(), json!({"what": "tea"}))]);
}

#[tokio::test]
async fn what_a_model_thinks_is_a_sign_of_life_and_no_text() {
    let mut frames = Format::Chat.frames(&Said::text("Tea."));
    let thought = json!({"choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}, "finish_reason": null}]});
    frames.insert(1, format!("data: {thought}\n\n"));
    let heard = Format::Chat.hears(Reply::stream(&frames), false).await.unwrap();
    assert_eq!((heard.text.as_str(), &heard.events[0]), ("Tea.", &ModelEvent::Text(String::new())));
}
