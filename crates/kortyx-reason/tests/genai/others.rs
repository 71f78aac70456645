//! Providers that speak a format of another, and Ollama, which has its own.

use kortyx_reason::{FinishReason, GenaiModel, Message, ModelErrorKind, Usage};
use serde_json::{Value, json};

use crate::{
    asked::{messages, tools},
    format::{Format, KEY, Said, hear},
    provider::{Provider, Reply},
};

#[tokio::test]
async fn providers_that_speak_the_format_of_another_are_found_by_name() {
    for (name, model) in [
        ("groq::llama-3.3-70b-versatile", "llama-3.3-70b-versatile"),
        ("deepseek-chat", "deepseek-chat"),
        ("open_router::meta-llama/llama-4", "meta-llama/llama-4"),
        ("grok-4", "grok-4"),
        ("openai::qwen3:8b", "qwen3:8b"),
    ] {
        let provider = Provider::start([Format::Chat.reply(&Said::much(), false)]).await;
        let by_name = GenaiModel::new(name).unwrap().endpoint(provider.url()).api_key(KEY);
        let heard = hear(&by_name, &[Message::user("Tea?")], &tools()).await.unwrap();
        assert_eq!((heard.text.as_str(), heard.calls.len()), ("Ein Tässchen 🫖", 2), "{name}");
        let received = &provider.received()[0];
        assert_eq!(received.path, "/v1/chat/completions", "{name}");
        assert_eq!(
            (&received.body()["model"], &received.headers["authorization"]),
            (&json!(model), &format!("Bearer {KEY}"))
        );
    }
}

fn lines() -> Vec<String> {
    let said = |message: Value| format!("{}\n", json!({"model": "qwen3", "message": message, "done": false}));
    let call = |tool: &str, arguments: Value| json!({"function": {"name": tool, "arguments": arguments}});
    let calls = [call("order", json!({"what": "thé"})), call("order", json!({"what": "thé"}))];
    let message = json!({"role": "assistant", "content": ""});
    let end = json!({
        "model": "qwen3", "message": message, "done": true, "done_reason": "stop", "prompt_eval_count": 11, "eval_count": 7,
    });
    vec![
        said(json!({"role": "assistant", "content": "Ein "})),
        said(json!({"role": "assistant", "content": "Tässchen"})),
        said(json!({"role": "assistant", "content": "", "tool_calls": calls})),
        format!("{end}\n"),
    ]
}

fn ollama(provider: &Provider) -> GenaiModel {
    GenaiModel::new("ollama::qwen3").unwrap().endpoint(provider.url())
}

#[tokio::test]
async fn ollama_needs_no_key_and_is_told_each_result_on_its_own() {
    for size in [1, usize::MAX] {
        let provider = Provider::start([Reply::stream(&lines()).split(size)]).await;
        let heard = hear(&ollama(&provider), &messages(), &tools()).await.unwrap();
        let call = ("order".to_owned(), json!({"what": "thé"}));
        assert_eq!((heard.text.as_str(), &heard.calls), ("Ein Tässchen", &vec![call.clone(), call]));
        assert_eq!(
            (heard.finish, heard.usage),
            (Some(FinishReason::ToolCalls), Usage { input: 11, output: 7, total: 18 })
        );
        let received = &provider.received()[0];
        assert_eq!(received.path, "/v1/api/chat");
        let body = received.body();
        let sent = body["messages"].as_array().unwrap();
        let tools: Vec<&Value> =
            sent.iter().filter(|message| message["role"] == "tool").map(|message| &message["content"]).collect();
        assert_eq!(tools, [&json!("ordered"), &json!("Error: no paper")], "{sent:?}");
    }
}

#[tokio::test]
async fn a_stream_of_ollama_that_breaks_is_no_answer() {
    let all = lines();
    for count in 0..all.len() {
        let provider = Provider::start([Reply::stream(&all[..count])]).await;
        let error = hear(&ollama(&provider), &messages(), &tools()).await.unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::Transport, "after {count}: {error}");
        let mut lines = all.clone();
        lines[count] = "{\"message\": {\"conte\n".into();
        let provider = Provider::start([Reply::stream(&lines)]).await;
        let error = hear(&ollama(&provider), &messages(), &tools()).await.unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::InvalidResponse, "at {count}: {error}");
    }
    let error = json!({"error": "model 'qwen3' not found"});
    let provider = Provider::start([Reply::json(404, &error)]).await;
    let error = hear(&ollama(&provider), &messages(), &tools()).await.unwrap_err();
    assert!(error.kind() == ModelErrorKind::Http(404) && error.to_string().contains("not found"), "{error}");
}
