//! Chat turns: what each kind of question and output looks like, streamed and buffered, and every row of the resume table.

use serde_json::json;

use crate::cases::{Case, Step, answer, answer_body, buffered, get, post, turn, turn_body};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for workflow in
        ["choice", "multi", "text", "picker", "contract", "pair", "optional", "writer", "domain", "broken", "order"]
    {
        cases.push(Case::new(format!("chat-{workflow}"), [turn(workflow)]));
        cases.push(Case::new(format!("chat-{workflow}-buffered"), [buffered(turn_body(workflow))]));
    }
    cases.extend(rows());
    cases
}

/// The resume table, and what surrounds it.
fn rows() -> Vec<Case> {
    let approve = json!({"selected": "approve"});
    let elsewhere = |mut body: serde_json::Value, field: &str| {
        body["sessionId"] = field.into();
        post("/chat", &body)
    };
    vec![
        Case::new("resume-valid", [turn("choice"), answer(&approve)]),
        Case::new("resume-invalid", [turn("choice"), answer(&json!({"selected": "banana"})), answer(&approve)]),
        Case::new(
            "resume-cancel",
            [turn("choice"), answer(&json!({"cancel": true})), answer(&json!({"cancel": true}))],
        ),
        Case::new("resume-cancel-optional", [turn("optional"), answer(&json!({"cancel": true}))]),
        Case::new("resume-cancel-not-exactly-true", [turn("choice"), answer(&json!({"cancel": "true"}))]),
        Case::new("resume-expired", [turn("choice"), Step::Minutes(16), answer(&approve)]),
        Case::new("resume-unknown-token", [turn("choice"), answer(&json!({"token": "forged", "selected": "approve"}))]),
        Case::new("resume-repeated", [turn("choice"), answer(&approve), answer(&approve)]),
        Case::new(
            "resume-repeated-while-waiting",
            [turn("pair"), answer(&json!({"text": "one"})), answer(&json!({"text": "one"}))],
        ),
        Case::new("resume-conflict", [turn("choice"), answer(&approve), answer(&json!({"selected": "revise"}))]),
        Case::new("resume-other-session", [turn("choice"), elsewhere(answer_body(&approve), "t"), answer(&approve)]),
        Case::new(
            "resume-other-request",
            [turn("choice"), turn("choice"), answer(&json!({"requestId": "human-2", "selected": "approve"}))],
        ),
        Case::new("resume-other-tenant", [turn("choice"), answer(&approve).with("x-tenant", "spy"), answer(&approve)]),
        Case::new("resume-not-well-formed", [turn("choice"), answer(&json!({"token": 7, "selected": "approve"}))]),
        Case::new("resume-blank-session", [turn("choice"), elsewhere(answer_body(&approve), " ")]),
        Case::new("chat-new-session", [elsewhere(turn_body("text"), "")]),
        Case::new("chat-unknown-workflow", [turn("no-such")]),
        Case::new("chat-beside-an-open-question", [turn("choice"), turn("text"), get("/interrupts?sessionId=s")]),
    ]
}
