//! Anthropic's messages.

use serde_json::{Value, json};

use super::{arguments, event};
use crate::format::{End, Said};

fn reason(said: &Said) -> &'static str {
    match said.end {
        End::Cut => "max_tokens",
        End::Refused => "refusal",
        End::Done if said.calls.is_empty() => "end_turn",
        End::Done => "tool_use",
    }
}

pub(crate) fn frames(said: &Said) -> Vec<String> {
    let usage = json!({"input_tokens": 7, "cache_read_input_tokens": 4, "output_tokens": 1});
    let message = json!({
        "id": "answer-1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929", "content": [],
        "stop_reason": null, "usage": usage,
    });
    let mut frames =
        vec![event(&json!({"type": "message_start", "message": message})), event(&json!({"type": "ping"}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        frames.push(event(&json!({"type": "content_block_start", "index": index, "content_block": start})));
        frames.extend(
            deltas.iter().map(|delta| event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))),
        );
        frames.push(event(&json!({"type": "content_block_stop", "index": index})));
        index += 1;
    };
    if !said.text.is_empty() {
        let delta = |text: &&str| json!({"type": "text_delta", "text": text});
        block(json!({"type": "text", "text": ""}), said.text.iter().map(delta).collect());
    }
    for (place, (tool, pieces)) in said.calls.iter().enumerate() {
        let delta = |piece: &&str| json!({"type": "input_json_delta", "partial_json": piece});
        let start = json!({"type": "tool_use", "id": format!("toolu_{place}"), "name": tool, "input": {}});
        block(start, pieces.iter().map(delta).collect());
    }
    let delta = json!({"stop_reason": reason(said), "stop_sequence": null});
    frames.push(event(&json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}})));
    frames.push(event(&json!({"type": "message_stop"})));
    frames
}

pub(crate) fn whole(said: &Said) -> Value {
    let text = (!said.text.is_empty()).then(|| json!({"type": "text", "text": said.text.concat()}));
    let calls = said.calls.iter().enumerate().map(|(place, (tool, pieces))| {
        json!({"type": "tool_use", "id": format!("toolu_{place}"), "name": tool, "input": arguments(pieces)})
    });
    json!({
        "id": "answer-1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
        "content": text.into_iter().chain(calls).collect::<Vec<_>>(), "stop_reason": reason(said),
        "usage": {"input_tokens": 7, "cache_read_input_tokens": 4, "output_tokens": 7},
    })
}
