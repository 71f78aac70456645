//! Every shape of an answer, at both places, streamed and buffered.

use serde_json::{Value, json};

use crate::cases::{Case, answer, answer_body, buffered, turn};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, workflow, fields) in shapes() {
        cases.push(Case::new(format!("answer-{name}"), [turn(workflow), answer(&fields)]));
        cases.push(Case::new(format!("answer-{name}-buffered"), [turn(workflow), buffered(answer_body(&fields))]));
    }
    cases
}

fn shapes() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("selected-string", "choice", json!({"selected": "approve"})),
        ("selected-array", "choice", json!({"selected": ["approve"]})),
        ("selected-array-number", "choice", json!({"selected": [7]})),
        ("selected-array-boolean", "choice", json!({"selected": [true]})),
        ("selected-array-object", "choice", json!({"selected": [{"id": "revise", "label": "Revise"}]})),
        ("selected-array-mixed", "multi", json!({"selected": ["red", 7, true, null, [], {"id": 1}, {"x": 1}]})),
        ("selected-choice", "choice", json!({"selected": {"choice": {"id": "approve"}}})),
        ("selected-choices", "multi", json!({"selected": {"choices": [{"id": "red"}, {"id": "7"}]}})),
        ("choice", "choice", json!({"choice": {"id": "approve"}})),
        ("choices", "multi", json!({"choices": [{"id": "red"}, {"id": "true"}]})),
        ("selected-nothing-then-choice", "choice", json!({"selected": [null], "choice": {"id": "approve"}})),
        ("selected-null", "choice", json!({"selected": null})),
        ("selected-number", "choice", json!({"selected": 7})),
        ("selected-two-for-one", "choice", json!({"selected": ["approve", "revise"]})),
        ("selected-twice", "multi", json!({"selected": ["red", "red"]})),
        ("selected-none-of-many", "multi", json!({"selected": []})),
        ("text", "text", json!({"text": "Ann"})),
        ("text-from-selected", "text", json!({"selected": "Ann"})),
        ("text-empty", "text", json!({"text": ""})),
        ("text-of-another-type", "text", json!({"text": 7})),
        ("picker", "picker", json!({"selected": "job-123"})),
        ("picker-empty", "picker", json!({"selected": ""})),
        ("value", "contract", json!({"value": {"accepted": true}})),
        ("value-invalid", "contract", json!({"value": {"accepted": "perhaps"}})),
        ("value-null", "contract", json!({"value": null})),
        ("value-missing", "contract", json!({"selected": "accepted"})),
    ]
}
