//! A server asks: the run pauses, and the answer goes back to the server.

use std::sync::Arc;

use kortyx_memory::MemoryStore;
use kortyx_protocol::{ExecutionResult, Failure, FailureCode, ResumeResponse};
use kortyx_reason::ToolPolicy;
use serde_json::{Value, json};

use crate::world::{Diary, agent, agent_on, answer, calling, ended, reasoning, run, text};

fn accept(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// What the first open question says.
fn asked(paused: &ExecutionResult) -> Value {
    assert_eq!(paused.status(), "suspended", "{paused:?}");
    paused.interrupts()[0].input.request.clone().unwrap()["message"].clone()
}

#[tokio::test]
async fn a_question_of_a_server_is_answered_in_another_process_with_another_server() {
    let (diary, store) = (Diary::new(), Arc::new(MemoryStore::new()));
    let model = calling([("ask", text(""))]);
    // Each life has its agent and its server, as after a restart.
    let life = || async {
        let server = diary.command().build();
        let workflow = reasoning(&model, &server);
        (agent_on(&store, &workflow).await, workflow)
    };
    let (first, workflow) = life().await;
    let mut paused = run(&first, &workflow).await;
    drop((first, workflow));
    diary.wait_for_end().await;
    let input = &paused.interrupts()[0].input;
    assert_eq!(
        (input.contract.as_deref(), input.schema_id.as_deref()),
        (Some("mcp_elicitation"), Some("kortyx.mcp-elicitation"))
    );
    let request = input.request.clone().unwrap();
    assert_eq!(request, json!({"server": "test", "tool": "ask", "toolCallId": "call_0_0", "message": "Whose name?"}));
    let form = &input.response_schema.clone().unwrap()["properties"]["content"];
    assert_eq!(form["properties"]["name"]["minLength"], 2);
    for (message, name) in [("Whose name?", "Ann"), ("Whose name?", "Bob"), ("And the other?", "Cy")] {
        assert_eq!(asked(&paused), message);
        let (agent, _) = life().await;
        paused = answer(&agent, &paused, accept(name)).await;
        drop(agent);
    }
    assert_eq!(ended(paused)[0][2], "Ann, Bob, Cy");
    let keys: std::collections::BTreeSet<_> =
        diary.lines().into_iter().filter(|line| line.starts_with("asking")).collect();
    assert_eq!((diary.count("asking"), keys.len(), diary.count("done")), (4, 1, 1), "one key for all four calls");
    assert_eq!(model.played().len(), 2);
    diary.wait_for_end().await;
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_form_is_refused_and_the_question_stays() {
    let diary = Diary::new();
    let server = diary.command().build();
    let workflow = reasoning(&calling([("ask", text(""))]), &server);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    for (wrong, path) in [
        (json!({}), ""),
        (json!({"action": "accept"}), ""),
        (json!({"action": "maybe"}), "/action"),
        (accept("A"), "/content/name"),
        (json!({"action": "accept", "content": {}}), "/content"),
        (json!({"action": "decline", "content": {"name": "Ann"}}), "/content"),
        (json!({"name": "Ann"}), ""),
    ] {
        let handle = &paused.interrupts()[0].resume;
        let refused = agent.resume(handle, ResumeResponse::value(wrong.clone())).await.unwrap_err();
        let failure = Failure::from(refused);
        assert_eq!(failure.code, FailureCode::InvalidResponse, "{wrong}");
        assert!(failure.issues.iter().flatten().any(|issue| issue.path.starts_with(path)), "{wrong}: {failure:?}");
    }
    assert_eq!(diary.count("asking"), 1, "a wrong answer reaches no server");
    let paused = answer(&agent, &paused, accept("Ann")).await;
    assert_eq!(asked(&paused), "Whose name?");
}

#[tokio::test]
async fn the_server_is_told_that_a_person_declined_or_cancelled() {
    let diary = Diary::new();
    let server = diary.command().build();
    let workflow = reasoning(&calling([("ask", text(""))]), &server);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let paused = answer(&agent, &paused, json!({"action": "decline"})).await;
    let paused = answer(&agent, &paused, json!({"action": "cancel"})).await;
    let done = agent.resume(&paused.interrupts()[0].resume, ResumeResponse::Cancel).await.unwrap();
    assert_eq!(ended(done)[0][2], "declined, cancelled, cancelled");
}

#[tokio::test]
async fn a_server_that_asks_too_often_is_not_asked_for() {
    let diary = Diary::new();
    let server = diary.command().policy(|_, policy: ToolPolicy| policy.max_questions(1)).build();
    let workflow = reasoning(&calling([("ask", text(""))]), &server);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let done = ended(answer(&agent, &paused, accept("Ann")).await);
    assert_eq!(done[0][3], "the tool asks more than 1 questions");
}

#[tokio::test]
async fn a_call_that_asks_waits_for_its_own_answer_and_a_call_of_another_run_is_not_held() {
    let diary = Diary::new();
    let server = diary.command().build();
    let (asking, echoing) = (calling([("ask", text(""))]), calling([("echo", text("hello"))]));
    let (asking, echoing) = (reasoning(&asking, &server), reasoning(&echoing, &server));
    let (one, other) = (agent(&asking).await, agent(&echoing).await);
    let paused = run(&one, &asking).await;
    assert_eq!(ended(run(&other, &echoing).await)[0][2], "hello");
    assert_eq!(asked(&answer(&one, &paused, accept("Ann")).await), "Whose name?");
}
