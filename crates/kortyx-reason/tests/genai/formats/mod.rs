//! What a provider sends.

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod gemini;
pub(crate) mod responses;

use serde_json::Value;

/// An event without a name.
fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// An event with the name that its data has too.
fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap())
}

/// Arguments as a value, or nothing where they are cut.
fn arguments(pieces: &[&str]) -> Value {
    serde_json::from_str(&pieces.concat()).unwrap_or_default()
}
