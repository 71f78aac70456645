//! What providers are sent: the same bytes each time, in their own form.

use kortyx_protocol::RawJson;
use kortyx_reason::{GenaiModel, Message, ModelRequest, ModelSettings, ToolCall, ToolDeclaration};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    format::{ALL, Format, KEY, Said, hear, hear_request},
    provider::{Provider, Received},
};

/// The conversation of a request, byte for byte.
pub(crate) fn conversation(received: &Received) -> String {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(alias = "input", alias = "contents", borrow)]
        messages: &'a RawValue,
    }
    serde_json::from_str::<Body<'_>>(&received.text).unwrap().messages.get().to_owned()
}

/// Whether a conversation begins with another, byte for byte, and then goes on.
pub(crate) fn goes_on(longer: &str, shorter: &str) -> bool {
    longer.len() > shorter.len() && longer.starts_with(shorter.strip_suffix(']').unwrap())
}

pub(crate) fn tools() -> Vec<ToolDeclaration> {
    let schema = RawJson::parse(r#"{"type":"object","properties":{"what":{"type":"string"}}}"#).unwrap();
    vec![ToolDeclaration::new("order", "Orders something.", schema)]
}

fn turn(content: &str, calls: &[ToolCall]) -> Message {
    serde_json::from_value(json!({"role": "assistant", "content": content, "toolCalls": calls})).unwrap()
}

fn result(id: &str, tool: &str, content: &str, is_error: bool) -> Message {
    let fields = json!({"role": "tool", "toolCallId": id, "tool": tool, "content": content, "isError": is_error});
    serde_json::from_value(fields).unwrap()
}

pub(crate) fn messages() -> Vec<Message> {
    let calls = vec![ToolCall::new("call_0_0", "order", r#"{"what":"tea"}"#), ToolCall::new("call_0_1", "note", "")];
    vec![
        Message::system("Be brief."),
        Message::user("Tea?"),
        turn("Well.", &calls),
        result("call_0_0", "order", "ordered", false),
        result("call_0_1", "note", "no paper", true),
        Message::system("Go on."),
    ]
}

async fn sent(format: Format, buffered: bool, messages: &[Message], tools: &[ToolDeclaration]) -> Received {
    let provider = Provider::start([format.reply(&Said::text("Done."), buffered)]).await;
    hear(&format.at(&provider, buffered), messages, tools).await.unwrap();
    provider.received().remove(0)
}

fn expected(format: Format) -> Value {
    let schema = json!({"type": "object", "properties": {"what": {"type": "string"}}});
    let (name, description) = ("order", "Orders something.");
    match format {
        Format::Chat => json!({
            "model": "gpt-4o-mini", "stream": true, "stream_options": {"include_usage": true},
            "tools": [{"type": "function", "function": {
                "name": name, "description": description, "parameters": schema, "strict": false,
            }}],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Tea?"},
                {"role": "assistant", "content": "Well.", "tool_calls": [
                    {"type": "function", "id": "call_0_0", "function": {"name": "order", "arguments": "{\"what\":\"tea\"}"}},
                    {"type": "function", "id": "call_0_1", "function": {"name": "note", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "call_0_0", "content": "ordered"},
                {"role": "tool", "tool_call_id": "call_0_1", "content": "Error: no paper"},
                {"role": "system", "content": "Go on."},
            ],
        }),
        Format::Responses => json!({
            "model": "gpt-5-mini", "stream": true, "store": false, "instructions": "Be brief.",
            "tools": [{"type": "function", "name": name, "description": description, "parameters": schema, "strict": false}],
            "input": [
                {"role": "user", "content": "Tea?"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Well."}]},
                {"type": "function_call", "call_id": "call_0_0", "name": "order", "arguments": "{\"what\":\"tea\"}"},
                {"type": "function_call", "call_id": "call_0_1", "name": "note", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_0_0", "output": "ordered"},
                {"type": "function_call_output", "call_id": "call_0_1", "output": "Error: no paper"},
                {"role": "system", "content": "Go on."},
            ],
        }),
        Format::Anthropic => json!({
            "model": "claude-sonnet-4-5", "stream": true, "system": "Be brief.", "max_tokens": 64000,
            "tools": [{"name": name, "description": description, "input_schema": schema}],
            "messages": [
                {"role": "user", "content": "Tea?"},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "Well."},
                    {"type": "tool_use", "id": "call_0_0", "name": "order", "input": {"what": "tea"}},
                    {"type": "tool_use", "id": "call_0_1", "name": "note", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "call_0_0", "content": "ordered"},
                    {"type": "tool_result", "tool_use_id": "call_0_1", "content": "no paper", "is_error": true},
                ]},
                {"role": "user", "content": "Go on."},
            ],
        }),
        Format::Gemini => {
            let response = |id: &str, name: &str, content: &str| json!({"functionResponse": {"id": id, "name": name, "response": {"name": name, "content": content}}});
            let call =
                |id: &str, name: &str, args: Value| json!({"functionCall": {"id": id, "name": name, "args": args}});
            let mut first = call("call_0_0", "order", json!({"what": "tea"}));
            first["thoughtSignature"] = json!("skip_thought_signature_validator");
            json!({
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "tools": [{"functionDeclarations": [
                    {"name": name, "description": description, "parametersJsonSchema": schema},
                ]}],
                "contents": [
                    {"role": "user", "parts": [{"text": "Tea?"}]},
                    {"role": "model", "parts": [{"text": "Well."}, first, call("call_0_1", "note", json!({}))]},
                    {"role": "user", "parts": [
                        response("call_0_0", "order", "ordered"), response("call_0_1", "note", "Error: no paper"),
                    ]},
                    {"role": "user", "parts": [{"text": "Go on."}]},
                ],
            })
        }
    }
}

#[tokio::test]
async fn a_conversation_with_tools_is_sent_in_the_providers_own_form_with_the_key_in_its_header() {
    for format in ALL {
        let received = sent(format, false, &messages(), &tools()).await;
        assert_eq!(received.body(), expected(format), "{format:?}: {}", received.text);
        let (path, header, key) = match format {
            Format::Chat => ("/v1/chat/completions", "authorization", format!("Bearer {KEY}")),
            Format::Responses => ("/v1/responses", "authorization", format!("Bearer {KEY}")),
            Format::Anthropic => ("/v1/messages", "x-api-key", KEY.to_owned()),
            Format::Gemini => {
                ("/v1/models/gemini-3-flash:streamGenerateContent?alt=sse", "x-goog-api-key", KEY.to_owned())
            }
        };
        assert_eq!((received.path.as_str(), &received.headers[header]), (path, &key), "{format:?}");
        assert!(!received.path.contains(KEY) && !received.text.contains(KEY), "{format:?}");
    }
}

#[tokio::test]
async fn an_answer_as_a_whole_is_asked_for_with_the_same_conversation() {
    for format in ALL {
        let streamed = sent(format, false, &messages(), &tools()).await;
        let buffered = sent(format, true, &messages(), &tools()).await;
        assert_eq!(conversation(&streamed), conversation(&buffered), "{format:?}");
        assert_ne!(buffered.body()["stream"], json!(true), "{format:?}");
        assert!(!buffered.path.contains("stream"), "{format:?}");
    }
}

#[tokio::test]
async fn a_longer_conversation_begins_with_the_bytes_of_the_shorter_one() {
    for format in ALL {
        let all = messages();
        let again = conversation(&sent(format, false, &all, &tools()).await);
        assert_eq!(conversation(&sent(format, false, &all, &tools()).await), again, "{format:?}");
        for count in [2, 5] {
            let shorter = conversation(&sent(format, false, &all[..count], &tools()).await);
            assert!(goes_on(&again, &shorter), "{format:?}: {again} does not begin with {shorter}");
        }
    }
}

#[tokio::test]
async fn what_a_model_wrote_by_mistake_is_sent_as_something_that_can_be_read() {
    let calls = vec![ToolCall::new("call_0_0", "order", "{\"what\": \"te"), ToolCall::new("call_0_1", "order", "[1]")];
    let results = ["call_0_0", "call_0_1"].map(|id| result(id, "order", "not JSON", true));
    let [first, second] = results;
    let messages = [Message::user("Tea?"), turn("", &calls), first, second, turn("  ", &[]), Message::system("Again.")];
    let wrapped = json!([{"arguments": "{\"what\": \"te"}, {"arguments": [1]}]);
    for format in ALL {
        let body = sent(format, false, &messages, &tools()).await.body();
        let text = |value: &Value| serde_json::from_str(value.as_str().unwrap()).unwrap();
        let (sent, count): ([Value; 2], _) = match format {
            Format::Chat => {
                let calls = &body["messages"][1]["tool_calls"];
                ([0, 1].map(|place| text(&calls[place]["function"]["arguments"])), body["messages"].as_array())
            }
            Format::Responses => {
                ([1, 2].map(|place| text(&body["input"][place]["arguments"])), body["input"].as_array())
            }
            Format::Anthropic => {
                let content = &body["messages"][1]["content"];
                ([0, 1].map(|place| content[place]["input"].clone()), body["messages"].as_array())
            }
            Format::Gemini => {
                let parts = &body["contents"][1]["parts"];
                ([0, 1].map(|place| parts[place]["functionCall"]["args"].clone()), body["contents"].as_array())
            }
        };
        assert_eq!(json!(sent), wrapped, "{format:?}");
        // The turn that said nothing is not there.
        let expected = if matches!(format, Format::Chat | Format::Responses) { 5 } else { 4 };
        let expected = if format == Format::Responses { 6 } else { expected };
        assert_eq!(count.unwrap().len(), expected, "{format:?}: {body}");
    }
}

#[tokio::test]
async fn somebody_speaks_after_the_instructions_where_a_format_insists() {
    for format in [Format::Anthropic, Format::Gemini] {
        let alone = [Message::system("Be brief."), Message::system("Greet me.")];
        let body = sent(format, false, &alone, &[]).await.body();
        let (system, first) = match format {
            Format::Anthropic => (&body["system"], &body["messages"][0]["content"]),
            _ => (&body["systemInstruction"]["parts"][0]["text"], &body["contents"][0]["parts"][0]["text"]),
        };
        assert_eq!((system, first), (&json!("Be brief."), &json!("Greet me.")), "{format:?}");
    }
}

#[tokio::test]
async fn tools_that_were_withdrawn_are_still_known_where_a_format_insists() {
    let body = sent(Format::Anthropic, false, &messages(), &[]).await.body();
    let names: Vec<&str> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!((names, &body["tool_choice"]), (vec!["note", "order"], &json!({"type": "none"})));
    for format in [Format::Chat, Format::Responses, Format::Gemini] {
        assert_eq!(sent(format, false, &messages(), &[]).await.body().get("tools"), None, "{format:?}");
    }
}

async fn sent_with_schema(format: Format, schema: &str) -> Value {
    let provider = Provider::start([format.reply(&Said::text("{}"), false)]).await;
    let mut settings = ModelSettings::default();
    (settings.temperature, settings.max_output_tokens) = (Some(0.5), Some(99));
    let schema = RawJson::parse(schema).unwrap();
    let messages = [Message::user("Tea?")];
    let mut request = ModelRequest::new(&messages, &settings);
    request.json_schema = Some(&schema);
    hear_request(&format.at(&provider, false), request).await.unwrap();
    provider.received()[0].body()
}

#[tokio::test]
async fn an_answer_is_held_to_a_schema_and_to_settings() {
    let schema =
        r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#;
    for format in ALL {
        let body = sent_with_schema(format, schema).await;
        let (sent, temperature, tokens) = match format {
            Format::Chat => {
                (&body["response_format"]["json_schema"]["schema"], &body["temperature"], &body["max_tokens"])
            }
            Format::Responses => (&body["text"]["format"]["schema"], &body["temperature"], &body["max_output_tokens"]),
            Format::Anthropic => {
                (&body["output_config"]["format"]["schema"], &body["temperature"], &body["max_tokens"])
            }
            Format::Gemini => {
                let config = &body["generationConfig"];
                (&config["responseJsonSchema"], &config["temperature"], &config["maxOutputTokens"])
            }
        };
        assert_eq!(*sent, serde_json::from_str::<Value>(schema).unwrap(), "{format:?}: {body}");
        assert_eq!((temperature, tokens), (&json!(0.5), &json!(99)), "{format:?}: {body}");
    }
}

#[tokio::test]
async fn a_schema_that_a_provider_does_not_take_is_asked_for_in_words() {
    let list = r#"{"type":"array","items":{"type":"string"}}"#;
    let map = r#"{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}"#;
    for schema in [list, map] {
        for format in [Format::Chat, Format::Responses, Format::Anthropic] {
            let body = sent_with_schema(format, schema).await;
            let system = match format {
                Format::Chat => &body["messages"][0]["content"],
                Format::Responses => &body["instructions"],
                _ => &body["system"],
            };
            assert!(system.as_str().unwrap().ends_with(schema), "{format:?}: {body}");
            let formats = ["response_format", "text", "output_config"].map(|key| body.get(key).is_some());
            assert_eq!(formats, [false; 3], "{format:?}: {body}");
        }
    }
}

#[tokio::test]
async fn ids_of_calls_have_the_form_that_a_provider_insists_on() {
    let provider = Provider::start([Format::Chat.reply(&Said::text("Done."), false)]).await;
    let model = GenaiModel::new("mistral::mistral-large-latest").unwrap().endpoint(provider.url()).api_key(KEY);
    hear(&model, &messages(), &tools()).await.unwrap();
    let body = provider.received()[0].body();
    let calls = [0, 1].map(|place| body["messages"][2]["tool_calls"][place]["id"].as_str().unwrap().to_owned());
    let results = [3, 4].map(|place| body["messages"][place]["tool_call_id"].as_str().unwrap().to_owned());
    assert_eq!(calls, results);
    assert!(
        calls[0] != calls[1]
            && calls.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    );
}
