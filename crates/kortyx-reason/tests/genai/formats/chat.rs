//! OpenAI's chat completions.

use serde_json::{Value, json};

use super::data;
use crate::format::{End, Said};

fn reason(said: &Said) -> &'static str {
    match said.end {
        End::Cut => "length",
        End::Done if !said.calls.is_empty() => "tool_calls",
        End::Done | End::Refused => "stop",
    }
}

fn usage() -> Value {
    json!({
        "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 3},
    })
}

pub(crate) fn frames(said: &Said) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        data(&json!({
            "id": "answer-1", "object": "chat.completion.chunk", "model": "gpt-4o-mini-2024-07-18",
            "system_fingerprint": "fp_1", "choices": choices, "usage": usage,
        }))
    };
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null);
    let mut frames = vec![": OPENROUTER PROCESSING\n\n".to_owned(), delta(json!({"role": "assistant", "content": ""}))];
    let field = if said.end == End::Refused { "refusal" } else { "content" };
    frames.extend(said.text.iter().map(|text| delta(json!({field: text}))));
    for (index, (tool, pieces)) in said.calls.iter().enumerate() {
        let function = json!({"name": tool, "arguments": ""});
        let call = json!({"index": index, "id": format!("call_{index}x"), "type": "function", "function": function});
        frames.push(delta(json!({"tool_calls": [call]})));
        frames.extend(
            pieces
                .iter()
                .map(|piece| delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))),
        );
    }
    frames.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason(said)}]), Value::Null));
    frames.push(chunk(json!([]), usage()));
    frames.push("data: [DONE]\n\n".into());
    frames
}

pub(crate) fn whole(said: &Said) -> Value {
    let call = |(index, (tool, pieces)): (usize, &(&str, Vec<&str>))| {
        let function = json!({"name": tool, "arguments": pieces.concat()});
        json!({"id": format!("call_{index}x"), "type": "function", "function": function})
    };
    let text = said.text.concat();
    let (content, refusal) =
        if said.end == End::Refused { (Value::Null, json!(text)) } else { (json!(text), Value::Null) };
    let mut message = json!({"role": "assistant", "content": content, "refusal": refusal});
    if !said.calls.is_empty() {
        message["tool_calls"] = said.calls.iter().enumerate().map(call).collect();
    }
    json!({
        "id": "answer-1", "object": "chat.completion", "model": "gpt-4o-mini-2024-07-18", "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "message": message, "finish_reason": reason(said)}], "usage": usage(),
    })
}
