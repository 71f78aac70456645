//! OpenAI's responses.

use serde_json::{Value, json};

use super::event;
use crate::format::{End, Said};

fn message(said: &Said) -> Option<Value> {
    let text = said.text.concat();
    let part = match said.end {
        End::Refused => json!({"type": "refusal", "refusal": text}),
        End::Done | End::Cut => json!({"type": "output_text", "text": text, "annotations": []}),
    };
    let message =
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]});
    (!said.text.is_empty()).then_some(message)
}

fn call(index: usize, tool: &str, arguments: &str) -> Value {
    json!({
        "type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_{index}x"), "name": tool,
        "arguments": arguments, "status": "completed",
    })
}

fn response(status: &str, output: &[Value], usage: &Value, cut: bool) -> Value {
    let details = if cut { json!({"reason": "max_output_tokens"}) } else { Value::Null };
    json!({
        "id": "answer-1", "object": "response", "status": status, "model": "gpt-5-mini-2025-08-07", "error": null,
        "incomplete_details": details, "output": output, "usage": usage,
    })
}

pub(crate) fn whole(said: &Said) -> Value {
    let calls = said.calls.iter().enumerate().map(|(index, (tool, pieces))| call(index, tool, &pieces.concat()));
    let output: Vec<Value> = message(said).into_iter().chain(calls).collect();
    let usage = json!({
        "input_tokens": 11, "output_tokens": 7, "total_tokens": 18,
        "input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 3},
    });
    let cut = said.end == End::Cut;
    response(if cut { "incomplete" } else { "completed" }, &output, &usage, cut)
}

pub(crate) fn frames(said: &Said) -> Vec<String> {
    let begun = response("in_progress", &[], &Value::Null, false);
    let mut frames = vec![event(&json!({"type": "response.created", "sequence_number": 0, "response": begun}))];
    let mut place = 0;
    if let Some(message) = message(said) {
        let mut empty = message.clone();
        empty["content"] = json!([]);
        frames.push(event(&json!({"type": "response.output_item.added", "output_index": 0, "item": empty})));
        let kind = if said.end == End::Refused { "response.refusal.delta" } else { "response.output_text.delta" };
        frames.extend(said.text.iter().map(|text| {
            event(&json!({"type": kind, "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": text}))
        }));
        frames.push(event(&json!({"type": "response.output_item.done", "output_index": 0, "item": message})));
        place = 1;
    }
    for (index, (tool, pieces)) in said.calls.iter().enumerate() {
        let output_index = place + index;
        let item = call(index, tool, "");
        frames.push(event(&json!({"type": "response.output_item.added", "output_index": output_index, "item": item})));
        frames.extend(pieces.iter().map(|delta| {
            let kind = "response.function_call_arguments.delta";
            event(
                &json!({"type": kind, "item_id": format!("fc_{index}"), "output_index": output_index, "delta": delta}),
            )
        }));
        let item = call(index, tool, &pieces.concat());
        frames.push(event(&json!({"type": "response.output_item.done", "output_index": output_index, "item": item})));
    }
    let end = if said.end == End::Cut { "response.incomplete" } else { "response.completed" };
    frames.push(event(&json!({"type": end, "response": whole(said)})));
    frames
}
