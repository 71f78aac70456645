//! Requests that are no requests, of every kind.

use serde_json::json;

use crate::cases::{Case, get, post, send, turn, turn_body};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = chat_bodies()
        .into_iter()
        .map(|(name, body)| Case::new(format!("malformed-{name}"), [send("POST", "/chat", body)]))
        .collect();
    cases.extend(addresses());
    cases
}

fn chat_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let message = r#"{"role":"user","content":"x"}"#;
    let with = |fields: &str| format!(r#"{{"messages":[{message}],{fields}}}"#).into_bytes();
    let messages = |messages: &str| format!(r#"{{"messages":[{messages}]}}"#).into_bytes();
    let deep = format!(r#"{{"role":"user","content":"x","metadata":{{"a":{}{}}}}}"#, "[".repeat(40), "]".repeat(40));
    vec![
        ("nothing", Vec::new()),
        ("not-json", b"Hello".to_vec()),
        ("cut-off", br#"{"messages":[{"role":"#.to_vec()),
        ("trailing", format!("{} {{}}", String::from_utf8_lossy(&messages(message))).into_bytes()),
        ("not-an-object", b"[]".to_vec()),
        ("not-utf-8", b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}".to_vec()),
        ("no-messages", b"{}".to_vec()),
        ("empty-messages", messages("")),
        ("messages-of-another-type", br#"{"messages":"Hello"}"#.to_vec()),
        ("role", messages(r#"{"role":"robot","content":"x"}"#)),
        ("content", messages(r#"{"role":"user","content":["x"]}"#)),
        ("no-content", messages(r#"{"role":"user"}"#)),
        ("extra-key-in-a-message", messages(r#"{"role":"user","content":"x","name":"Ann"}"#)),
        ("metadata", messages(r#"{"role":"user","content":"x","metadata":[]}"#)),
        ("large-integer", messages(r#"{"role":"user","content":"x","metadata":{"n":18446744073709551616}}"#)),
        ("deep-metadata", messages(&deep)),
        ("session", with(r#""sessionId":7"#)),
        ("session-with-control-characters", with(r#""sessionId":"a\u0000b""#)),
        ("stream", with(r#""stream":"yes""#)),
        ("context", with(r#""context":[]"#)),
        ("client-turn-id", with(&format!(r#""clientTurnId":"{}""#, "x".repeat(129)))),
        ("unknown-field-is-ignored", with(r#""workflowId":"domain","other":1"#)),
        ("too-many-messages", messages(&vec![message; 1_001].join(","))),
        ("too-large", vec![b' '; 1024 * 1024 + 1]),
    ]
}

fn addresses() -> Vec<Case> {
    vec![
        Case::new("address-unknown", [get("/nowhere")]),
        Case::new("method-not-allowed", [get("/chat"), send("DELETE", "/interrupts", "")]),
        Case::new("method-options", [send("OPTIONS", "/chat", ""), send("OPTIONS", "/interrupts", "")]),
        Case::new("body-compressed", [turn("text").with("content-encoding", "gzip")]),
        Case::new("body-of-another-type", [turn("domain").with("content-type", "text/plain")]),
        Case::new("caller-unknown", [turn("text").with("x-tenant", "stranger")]),
        Case::new("caller-refused", [post("/execute", &turn_body("text")).with("x-tenant", "banned")]),
        Case::new("health", [get("/health/live"), get("/health/ready")]),
        Case::new(
            "scope-missing",
            [
                get("/interrupts?sessionId=s").with("x-tenant", "nobody"),
                get("/interrupts/human-x").with("x-tenant", "nobody"),
                post("/interrupts/human-x/answer", &json!({"response": {"type": "cancel"}})).with("x-tenant", "nobody"),
            ],
        ),
    ]
}
