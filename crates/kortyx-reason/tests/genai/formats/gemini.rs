//! Gemini's generated content.

use serde_json::{Value, json};

use super::{arguments, data};
use crate::format::{End, Said};

fn reason(said: &Said) -> &'static str {
    match said.end {
        End::Done => "STOP",
        End::Cut => "MAX_TOKENS",
        End::Refused => "SAFETY",
    }
}

fn answer(parts: &[Value], reason: Option<&str>) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(reason) = reason {
        candidate["finishReason"] = json!(reason);
    }
    json!({
        "candidates": [candidate], "modelVersion": "gemini-3-flash-001", "responseId": "answer-1",
        "usageMetadata": {
            "promptTokenCount": 11, "cachedContentTokenCount": 4, "candidatesTokenCount": 4, "thoughtsTokenCount": 3,
            "totalTokenCount": 18,
        },
    })
}

fn call((tool, pieces): &(&str, Vec<&str>)) -> Value {
    json!({"functionCall": {"name": tool, "args": arguments(pieces)}})
}

/// Gemini gives calls whole, and the end with the last of its content.
pub(crate) fn frames(said: &Said) -> Vec<String> {
    let mut frames: Vec<String> = said.text.iter().map(|text| data(&answer(&[json!({"text": text})], None))).collect();
    if !said.calls.is_empty() {
        frames.push(data(&answer(&said.calls.iter().map(call).collect::<Vec<_>>(), None)));
    }
    frames.push(data(&answer(&[json!({"text": ""})], Some(reason(said)))));
    frames
}

pub(crate) fn whole(said: &Said) -> Value {
    let text = (!said.text.is_empty()).then(|| json!({"text": said.text.concat()}));
    answer(&text.into_iter().chain(said.calls.iter().map(call)).collect::<Vec<_>>(), Some(reason(said)))
}
