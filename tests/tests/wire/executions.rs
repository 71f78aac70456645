//! Executions, answers with a handle, and open questions.

use serde_json::{Value, json};

use crate::cases::{Case, Step, get, post, send, turn};

pub(crate) fn cases() -> Vec<Case> {
    [executions(), resumptions(), batches(), questions()].into_iter().flatten().collect()
}

fn execute(workflow: &str) -> Step {
    post("/execute", &json!({"workflow": workflow, "input": {"input": "Hello"}, "sessionId": "s"}))
}

fn handle() -> Value {
    json!({"token": "token-1", "requestId": "human-1", "sessionId": "s", "runId": "run-1"})
}

fn resume_with(field: &str, value: &str) -> Step {
    let mut handle = handle();
    handle[field] = value.into();
    post("/resume", &json!({"resume": handle, "response": select("approve")}))
}

fn resume(response: &Value) -> Step {
    post("/resume", &json!({"resume": handle(), "response": response}))
}

fn select(id: &str) -> Value {
    json!({"type": "select", "ids": [id]})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn executions() -> Vec<Case> {
    let mut cases: Vec<Case> =
        ["choice", "multi", "text", "picker", "contract", "pair", "writer", "domain", "broken", "order"]
            .map(|workflow| Case::new(format!("execute-{workflow}"), [execute(workflow)]))
            .into();
    let execution = |fields: Value| post("/execute", &fields);
    cases.extend([
        Case::new("execute-unknown-workflow", [execution(json!({"workflow": "no-such", "input": 1}))]),
        Case::new("execute-unknown-version", [execution(json!({"workflow": "text", "version": "9", "input": 1}))]),
        Case::new("execute-without-input", [execution(json!({"workflow": "text"}))]),
        Case::new("execute-blank-workflow", [execution(json!({"workflow": " ", "input": 1}))]),
        Case::new("execute-not-json", [send("POST", "/execute", "{")]),
    ]);
    cases
}

fn resumptions() -> Vec<Case> {
    let approve = || resume(&select("approve"));
    vec![
        Case::new("handle-select", [execute("choice"), approve()]),
        Case::new("handle-text", [execute("text"), resume(&text("Ann"))]),
        Case::new(
            "handle-value",
            [execute("contract"), resume(&json!({"type": "value", "value": {"accepted": false}}))],
        ),
        Case::new("handle-cancel", [execute("choice"), resume(&json!({"type": "cancel"})), approve()]),
        Case::new("handle-invalid", [execute("choice"), resume(&select("banana")), resume(&text("approve"))]),
        Case::new("handle-repeated", [execute("choice"), approve(), approve()]),
        Case::new("handle-conflict", [execute("choice"), approve(), resume(&select("revise"))]),
        Case::new("handle-expired", [execute("choice"), Step::Minutes(16), approve()]),
        Case::new("handle-unknown", [execute("choice"), resume_with("token", "forged")]),
        Case::new("handle-other-request", [execute("choice"), execute("choice"), resume_with("requestId", "human-2")]),
        Case::new("handle-other-run", [execute("choice"), execute("choice"), resume_with("runId", "run-2")]),
        Case::new(
            "handle-other-workflow",
            [
                execute("choice"),
                post("/resume", &json!({"workflow": "text", "resume": handle(), "response": select("approve")})),
                post("/resume", &json!({"workflow": "choice", "resume": handle(), "response": select("approve")})),
            ],
        ),
        Case::new("handle-other-session", [execute("choice"), resume_with("sessionId", "t")]),
        Case::new("handle-other-tenant", [execute("choice"), approve().with("x-tenant", "spy"), approve()]),
        Case::new("handle-malformed", [post("/resume", &json!({"resume": {"token": "x"}, "response": select("a")}))]),
        Case::new("handle-without-response", [post("/resume", &json!({"resume": handle()}))]),
        Case::new("handle-not-json", [send("POST", "/resume", "resume")]),
    ]
}

fn batches() -> Vec<Case> {
    let batch = |answers: &[(&str, Value)]| {
        let answer = |(id, response): &(&str, Value)| json!({"requestId": id, "response": response});
        let answers: Vec<Value> = answers.iter().map(answer).collect();
        post("/resume", &json!({"resume": handle(), "responses": answers}))
    };
    let whole = || batch(&[("human-2", text("two")), ("human-1", text("one"))]);
    vec![
        Case::new("batch", [execute("pair"), whole(), whole()]),
        Case::new(
            "batch-invalid",
            [execute("pair"), batch(&[("human-1", text("one")), ("human-2", text(""))]), whole()],
        ),
        Case::new("batch-twice", [execute("pair"), batch(&[("human-1", text("1")), ("human-1", text("2"))])]),
        Case::new("batch-empty", [execute("pair"), batch(&[])]),
        Case::new(
            "batch-other-run",
            [execute("pair"), execute("pair"), batch(&[("human-1", text("one")), ("human-3", text("three"))])],
        ),
        Case::new("batch-conflict", [execute("pair"), resume(&text("other")), whole()]),
    ]
}

fn questions() -> Vec<Case> {
    let answer = |response: Value| post("/interrupts/human-1/answer", &json!({"response": response}));
    let approve = || answer(select("approve"));
    vec![
        Case::new("interrupts", [execute("choice"), execute("pair"), get("/interrupts"), get("/interrupts?limit=2")]),
        Case::new("interrupts-none", [get("/interrupts")]),
        Case::new("interrupts-of-a-run", [execute("choice"), execute("text"), get("/interrupts?runId=run-2")]),
        Case::new(
            "interrupts-malformed",
            [get("/interrupts?limit=0"), get("/interrupts?cursor=x"), get("/interrupts?runId=")],
        ),
        Case::new("interrupts-other-tenant", [execute("choice"), get("/interrupts").with("x-tenant", "spy")]),
        Case::new("interrupt", [execute("contract"), get("/interrupts/human-1")]),
        Case::new(
            "interrupt-other-tenant",
            [execute("choice"), get("/interrupts/human-1").with("x-tenant", "spy"), get("/interrupts/human-x")],
        ),
        Case::new("answer-by-id", [execute("choice"), approve(), approve(), answer(select("revise"))]),
        Case::new("answer-by-id-invalid", [execute("choice"), answer(select("banana")), answer(json!("approve"))]),
        Case::new(
            "answer-by-id-expired",
            [execute("choice"), Step::Minutes(16), approve(), get("/interrupts/human-1")],
        ),
        Case::new("answer-by-id-other-tenant", [execute("choice"), approve().with("x-tenant", "spy"), approve()]),
        Case::new("answer-by-id-unknown", [approve()]),
        Case::new(
            "answer-after-the-response",
            [
                turn("order"),
                Step::Settled,
                get("/interrupts?sessionId=s&afterResponseCompleted=false"),
                get("/interrupts?sessionId=s&afterResponseCompleted=true"),
                answer(text("Two")),
                answer(text("Two")),
            ],
        ),
    ]
}
