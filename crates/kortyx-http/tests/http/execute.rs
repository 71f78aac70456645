//! Executions and answers with a handle.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    client::{Call, Reply},
    world::Site,
};

pub(crate) async fn execute(site: &Site, workflow: &str) -> Value {
    let body = json!({"workflow": workflow, "input": {}, "sessionId": "s1"});
    let reply = Call::post(site.address, "/execute", &body).send().await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

async fn resume(site: &Site, body: Value) -> Reply {
    Call::post(site.address, "/resume", &body).send().await
}

fn text(value: &str) -> Value {
    json!({"type": "text", "text": value})
}

#[tokio::test]
async fn a_workflow_is_executed_and_resumed_with_its_handle() {
    let site = Site::start().await;
    let asked = execute(&site, "review").await;
    assert_eq!((&asked["status"], &asked["sessionId"]), (&json!("suspended"), &json!("s1")));
    assert_eq!(asked["interrupt"], asked["interrupts"][0]);
    let select = |id: &str| json!({"resume": asked["resume"], "response": {"type": "select", "ids": [id]}});

    assert_eq!(resume(&site, select("banana")).await.refusal(), (422, "INVALID_RESPONSE".to_owned()));
    for _ in 0..2 {
        let done = resume(&site, select("approve")).await.json();
        assert_eq!((&done["status"], &done["data"]), (&json!("completed"), &json!({"decision": "approve"})));
    }
    assert_eq!(resume(&site, select("revise")).await.refusal(), (409, "INTERRUPT_ALREADY_RESOLVED".to_owned()));
}

#[tokio::test]
async fn a_handle_that_is_not_right_is_refused() {
    let site = Site::start().await;
    let (asked, other) = (execute(&site, "review").await, execute(&site, "review").await);
    let with = |field: &str, value: &Value| {
        let mut handle = asked["resume"].clone();
        handle[field] = value.clone();
        json!({"resume": handle, "response": {"type": "select", "ids": ["approve"]}})
    };
    for (body, refusal) in [
        (with("token", &json!("forged")), (404, "NOT_FOUND")),
        (with("requestId", &other["resume"]["requestId"]), (409, "INTERRUPT_MISMATCH")),
        (with("runId", &other["resume"]["runId"]), (409, "INTERRUPT_MISMATCH")),
        (with("sessionId", &json!("s2")), (409, "INTERRUPT_MISMATCH")),
        (with("token", &json!("")), (400, "INVALID_REQUEST")),
        (json!({"resume": asked["resume"]}), (400, "INVALID_REQUEST")),
    ] {
        assert_eq!(resume(&site, body.clone()).await.refusal(), (refusal.0, refusal.1.to_owned()), "{body}");
    }
    site.clock.advance(Duration::from_mins(16));
    assert_eq!(resume(&site, with("x", &json!(1))).await.refusal(), (410, "INTERRUPT_EXPIRED".to_owned()));
}

#[tokio::test]
async fn a_workflow_that_is_named_must_be_the_questions() {
    let site = Site::start().await;
    let asked = execute(&site, "review").await;
    let answer = json!({"type": "select", "ids": ["approve"]});
    let named = |workflow: &str| json!({"workflow": workflow, "resume": asked["resume"], "response": answer});
    assert_eq!(resume(&site, named("pair")).await.refusal(), (409, "INTERRUPT_MISMATCH".to_owned()));
    let mut forged = named("pair");
    forged["resume"]["token"] = "forged".into();
    assert_eq!(resume(&site, forged).await.refusal(), (404, "NOT_FOUND".to_owned()), "only who may answer is told");
    let spy = Call::post(site.address, "/resume", &named("pair")).header("x-tenant", "spy").send().await;
    assert_eq!(spy.refusal(), (404, "NOT_FOUND".to_owned()), "only who may answer is told");
    assert_eq!(resume(&site, named("review")).await.json()["status"], "completed");
    assert_eq!(resume(&site, named("pair")).await.refusal().1, "INTERRUPT_MISMATCH");
    assert_eq!(resume(&site, named(" ")).await.json()["status"], "completed", "a blank name is none");
}

#[tokio::test]
async fn a_batch_needs_one_handle_of_its_run() {
    let site = Site::start().await;
    let (asked, other) = (execute(&site, "pair").await, execute(&site, "pair").await);
    let batch = |questions: [&Value; 2]| {
        let answers = questions.map(|question| json!({"requestId": question["requestId"], "response": text("x")}));
        json!({"resume": asked["resume"], "responses": answers})
    };
    let (own, foreign) = (&asked["interrupts"], &other["interrupts"]);
    assert_eq!(resume(&site, batch([&own[0], &foreign[1]])).await.refusal(), (404, "NOT_FOUND".to_owned()));
    let done = resume(&site, batch([&own[1], &own[0]])).await.json();
    assert_eq!(done["data"], json!({"a": "x", "b": "x"}));
}

#[tokio::test]
async fn a_cancellation_ends_the_run_and_an_unknown_workflow_starts_none() {
    let site = Site::start().await;
    let asked = execute(&site, "review").await;
    let cancelled = resume(&site, json!({"resume": asked["resume"], "response": {"type": "cancel"}})).await.json();
    assert_eq!(cancelled["status"], "cancelled");
    let late = json!({"resume": asked["resume"], "response": {"type": "select", "ids": ["approve"]}});
    assert_eq!(resume(&site, late).await.refusal(), (410, "INTERRUPT_CANCELLED".to_owned()));
    for body in [json!({"workflow": "no-such", "input": 1}), json!({"workflow": "review", "version": "9", "input": 1})]
    {
        let reply = Call::post(site.address, "/execute", &body).send().await;
        assert_eq!(reply.refusal(), (404, "UNKNOWN_WORKFLOW".to_owned()));
    }
}
