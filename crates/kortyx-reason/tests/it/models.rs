//! Passes: what is tried again, what the model is given, and when it has had enough.

use std::time::Duration;

use futures_util::StreamExt as _;
use kortyx_protocol::FailureCode;
use kortyx_reason::{
    FinishReason, Message, Model as _, ModelError, ModelEvent, ModelRequest, ModelRetry, Reason, Script, ScriptedModel,
};
use serde_json::json;
use tokio::time::Instant;

use crate::world::{Effects, data, failure, reason};

fn asking(model: &ScriptedModel) -> Reason {
    Reason::new(model.clone()).system("Be brief.").input("What is due?")
}

#[tokio::test]
async fn a_model_without_tools_answers_in_one_pass() {
    let model = ScriptedModel::new([Script::new().text("Nothing is due.").split(3).usage(12, 4)]);
    let given = model.clone();
    let result = data(reason(move || asking(&given)).await);
    assert_eq!((&result["text"], &result["steps"]), (&json!("Nothing is due."), &json!(1)));
    assert_eq!(model.played()[0].messages, [Message::system("Be brief."), Message::user("What is due?")]);
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_before_the_first_token_is_tried_again_after_what_the_provider_asks() {
    let busy = ModelError::http(429, "slow down").with_retry_after(Duration::from_secs(7));
    let broken = ModelError::transport("connection reset");
    let model = ScriptedModel::new([Script::new().text("Done.").after_failures([busy, broken])]);
    let (given, begun) = (model.clone(), Instant::now());
    assert_eq!(data(reason(move || asking(&given)).await)["text"], "Done.");
    assert!(begun.elapsed() >= Duration::from_secs(7), "{:?}", begun.elapsed());
    assert_eq!(model.played().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_transient_or_comes_after_the_first_token_is_not_tried_again() {
    let first_of_all = Script::new().after_failures([ModelError::http(400, "unknown parameter sk-secret")]);
    let after_a_token = Script::new().text("Do").fail(ModelError::transport("connection reset"));
    let after_a_call = Script::new().call("note", json!({})).cut();
    let too_long = Script::new()
        .after_failures([ModelError::http(529, "overloaded").with_retry_after(Duration::from_hours(1))])
        .text("Never said.");
    for (script, code) in [
        (first_of_all, FailureCode::ProviderHttpError),
        (after_a_token, FailureCode::ProviderTransportError),
        (after_a_call, FailureCode::ProviderTransportError),
        (too_long, FailureCode::ProviderHttpError),
    ] {
        let model = ScriptedModel::new([script]);
        let given = model.clone();
        let failure = failure(reason(move || asking(&given)).await);
        assert_eq!(failure.code, code);
        assert!(!failure.message.contains("sk-secret"), "{failure}");
        assert_eq!(model.played().len(), 1, "{code:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted() {
    let failures = (0..9).map(|_| ModelError::http(503, "down"));
    let model = ScriptedModel::new([Script::new().text("Done.").after_failures(failures)]);
    let given = model.clone();
    let retry = ModelRetry::default().attempts(3);
    let failure = failure(reason(move || asking(&given).retry(retry)).await);
    assert_eq!((failure.code, model.played().len()), (FailureCode::ProviderHttpError, 3));
    assert_eq!(failure.details, Some(json!({"providerStatus": 503})));
}

#[tokio::test]
async fn a_refusal_and_a_truncated_call_are_failures_of_their_own() {
    let refusal = Script::new().text("I can't.").finish(FinishReason::Refusal);
    let cut = Script::new().call_text("order", "{\"what\": \"te").finish(FinishReason::Length);
    for (script, code) in [(refusal, FailureCode::ProviderRefusal), (cut, FailureCode::OutputTruncated)] {
        let model = ScriptedModel::new([script]);
        assert_eq!(failure(reason(move || asking(&model)).await).code, code);
    }
}

#[tokio::test]
async fn a_model_that_never_ends_is_stopped_after_its_steps_and_what_was_done_is_told() {
    let effects = Effects::default();
    let model = ScriptedModel::from_fn(|_| Script::new().call("order", json!({"what": "tea"})).usage(3, 2));
    let (given, order) = (model.clone(), effects.clone());
    let failure = failure(reason(move || asking(&given).tool(order.tool("order")).max_steps(3)).await);
    assert_eq!((failure.code, effects.count(), model.played().len()), (FailureCode::ReasonStepsExhausted, 3, 3));
    let done = failure.details.unwrap();
    assert_eq!((&done["steps"], &done["usage"]["total"]), (&json!(3), &json!(15)));
    assert_eq!(done["toolCalls"], json!(vec![json!({"tool": "order", "status": "completed"}); 3]));
}

#[tokio::test]
async fn pieces_of_calls_that_come_in_turns_are_put_together() {
    let part = |index, tool: &str, arguments: &str| ModelEvent::ToolCall {
        index,
        tool: tool.into(),
        arguments: arguments.into(),
    };
    let first = Script::new()
        .event(part(1, "order", "{\"what\""))
        .event(part(0, "order", "{\"what\":\"é"))
        .event(part(1, "", ":\"b\"}"))
        .event(part(0, "", "\"}"))
        .finish(FinishReason::ToolCalls);
    let model = ScriptedModel::new([first, Script::new().text("Done.")]);
    let effects = Effects::default();
    let result = data(reason(move || asking(&model).tool(effects.tool("order"))).await);
    assert_eq!(result["results"][0], json!(["order", "completed", {"done": "é"}]));
    assert_eq!(result["results"][1], json!(["order", "completed", {"done": "b"}]));
}

#[tokio::test(start_paused = true)]
async fn a_paced_script_waits_before_every_piece() {
    let model =
        ScriptedModel::new([Script::new().text("Four").call("note", json!({})).split(2).pace(Duration::from_secs(1))]);
    let settings = kortyx_reason::ModelSettings::default();
    let begun = Instant::now();
    let mut events = model.stream(ModelRequest::new(&[], &settings)).await.unwrap();
    let mut heard = Vec::new();
    while let Some(event) = events.next().await {
        heard.push((event.unwrap(), begun.elapsed().as_secs()));
    }
    let call = ModelEvent::ToolCall { index: 0, tool: "note".into(), arguments: "{}".into() };
    let finish = ModelEvent::Finish(FinishReason::ToolCalls);
    let texts = ["Fo", "ur"].map(|text| ModelEvent::Text(text.into()));
    let [first, second] = texts;
    assert_eq!(heard, [(first, 1), (second, 2), (call, 3), (finish, 3)]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_is_asked_again_and_one_that_falls_silent_is_not() {
    let minutes = Duration::from_mins;
    let hangs = ScriptedModel::from_fn(move |_| Script::new().wait(minutes(60)).text("Never said."));
    let falls_silent = ScriptedModel::from_fn(move |_| Script::new().text("Do").wait(minutes(60)).text("ne."));
    for (model, attempts, silent) in [(hangs, 3, minutes(3)), (falls_silent, 1, minutes(1))] {
        let (given, begun) = (model.clone(), Instant::now());
        let retry = ModelRetry::default().attempts(3);
        let failure = failure(reason(move || asking(&given).retry(retry).silence_timeout(minutes(1))).await);
        assert_eq!((failure.code, model.played().len()), (FailureCode::ProviderTransportError, attempts));
        let waited = begun.elapsed();
        assert!(waited >= silent && waited < silent + minutes(1), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_ends_in_its_time_whatever_the_model_does_in_it() {
    let talks = (0..100).fold(Script::new(), |script, _| script.text("…").wait(Duration::from_secs(30)));
    let hangs = Script::new().wait(Duration::MAX);
    for (script, played) in [(talks, 1), (hangs, 3)] {
        let model = ScriptedModel::from_fn(move |_| script.clone());
        let (given, begun) = (model.clone(), Instant::now());
        let failure = failure(reason(move || asking(&given)).await);
        assert_eq!((failure.code, model.played().len()), (FailureCode::ProviderTransportError, played));
        assert!(begun.elapsed() <= Duration::from_mins(15) + Duration::from_secs(1), "{:?}", begun.elapsed());
    }
    let slow = ScriptedModel::new([Script::new().wait(Duration::from_hours(9)).text("Done.")]);
    let result = reason(move || asking(&slow).silence_timeout(Duration::MAX).pass_timeout(Duration::MAX)).await;
    assert_eq!(data(result)["text"], "Done.");
}

#[tokio::test]
async fn an_answer_without_end_is_refused_before_it_fills_the_memory() {
    let model = ScriptedModel::new([Script::new().text("word ".repeat(4 << 20)).split(1 << 20)]);
    let given = model.clone();
    let failure = failure(reason(move || asking(&given)).await);
    assert_eq!(failure.code, FailureCode::ProviderInvalidResponse);
    assert_eq!(model.played().len(), 1);
}
