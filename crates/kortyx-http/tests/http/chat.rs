//! Chat turns, streamed and buffered.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    client::{Call, Reply, kinds},
    world::{Plan, Site, eventually},
};

fn hello() -> Value {
    json!({"sessionId": "s1", "messages": [{"role": "user", "content": "Hello"}]})
}

fn answer(question: &Value, choice: &str) -> Value {
    let resume = json!({"token": question["resumeToken"], "requestId": question["requestId"], "selected": [choice]});
    json!({"sessionId": "s1", "messages": [{"role": "user", "content": choice, "metadata": {"resume": resume}}]})
}

async fn chat(site: &Site, body: &Value) -> Reply {
    Call::post(site.address, "/chat", body).send().await
}

fn with(mut body: Value, field: &str, value: impl Into<Value>) -> Value {
    body[field] = value.into();
    body
}

#[tokio::test]
async fn a_turn_streams_with_its_headers_and_ends_with_done() {
    let site = Site::start().await;
    let asked = chat(&site, &hello()).await;
    assert_eq!(asked.status, 200);
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("connection", "keep-alive"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(asked.headers[name], value);
    }
    let chunks = asked.chunks();
    assert_eq!(kinds(&chunks)[..2], ["session", "interrupt"]);
    assert_eq!((&chunks[0]["sessionId"], kinds(&chunks).last()), (&json!("s1"), Some(&"done")));

    let done = chat(&site, &answer(&chunks[1], "approve")).await.chunks();
    assert_eq!(kinds(&done)[..2], ["session", "message"]);
    assert_eq!(done.last().unwrap()["data"]["data"], json!({"decision": "approve"}));
}

#[tokio::test]
async fn a_turn_that_is_not_streamed_is_one_object() {
    let site = Site::start().await;
    let asked = chat(&site, &with(hello(), "stream", false)).await;
    assert_eq!((asked.status, asked.headers["content-type"].to_str().unwrap()), (200, "application/json"));
    let question = asked.json()["chunks"][1].clone();
    let done = chat(&site, &with(answer(&question, "revise"), "stream", false)).await.json();
    assert_eq!((&done["text"], &done["structured"]), (&json!("You chose revise."), &json!([])));
}

#[tokio::test]
async fn a_turn_without_a_session_gets_one() {
    let site = Site::start().await;
    let chunks = chat(&site, &with(hello(), "sessionId", " ")).await.chunks();
    assert!(chunks[0]["sessionId"].as_str().unwrap().starts_with("session-"));
}

#[tokio::test]
async fn a_response_ends_before_the_work_and_what_is_asked_later_is_answered_by_id() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    let plan = Plan::new();
    let agent = plan.agent().on_response_finalized(move |response| {
        log.lock().unwrap().push((response.client_turn_id, response.text));
        async { Ok::<_, io::Error>(()) }
    });
    let site = plan.start_with(agent.build().await.unwrap()).await;
    let body = with(with(hello(), "workflowId", "order"), "clientTurnId", " turn-1 ");
    let chunks = chat(&site, &body).await.chunks();
    assert_eq!(kinds(&chunks), ["session", "message", "checkpoint", "done"]);
    assert_eq!(chunks.last().unwrap()["data"]["status"], "running");
    assert_eq!(*heard.lock().unwrap(), [(Some("turn-1".to_owned()), "Thanks.".to_owned())]);

    eventually(|| site.agent().driven_runs() == 0).await;
    let listed = Call::get(site.address, "/interrupts?afterResponseCompleted=true").send().await.json();
    let [question] = listed["interrupts"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((&question["sessionId"], &question["afterResponseCompleted"]), (&json!("s1"), &json!(true)));
    let path = format!("/interrupts/{}/answer", question["id"].as_str().unwrap());
    let answer = json!({"response": {"type": "text", "text": "Shelf 7"}});
    let done = Call::post(site.address, &path, &answer).send().await.json();
    assert_eq!((&done["status"], &done["data"]), (&json!("completed"), &json!({"shelf": "Shelf 7"})));
}

#[tokio::test]
async fn what_an_answer_does_wrong_is_said_in_the_stream() {
    let site = Site::start().await;
    let question = chat(&site, &hello()).await.chunks()[1].clone();
    let invalid = chat(&site, &answer(&question, "banana")).await;
    assert_eq!((invalid.status, kinds(&invalid.chunks())), (200, vec!["session", "error", "interrupt", "done"]));
    let elsewhere = chat(&site, &with(answer(&question, "approve"), "sessionId", "s2")).await.chunks();
    assert_eq!(elsewhere[1]["failure"]["code"], "INTERRUPT_MISMATCH");
}

#[tokio::test]
async fn silence_is_broken_by_comments_and_a_client_that_leaves_ends_its_fresh_turn() {
    let mut plan = Plan::new();
    plan.limits.keep_alive = Duration::from_millis(20);
    let site = plan.start().await;
    let mut open = Call::post(site.address, "/chat", &with(hello(), "workflowId", "silent")).open().await;
    assert_eq!(open.status, 200);
    let frames = [open.frame().await.unwrap(), open.frame().await.unwrap()];
    assert!(frames.iter().all(|frame| frame.starts_with("data: ")), "{frames:?}");
    assert_eq!((open.frame().await.unwrap(), open.frame().await.unwrap()), (": ".to_owned(), ": ".to_owned()));
    assert_eq!(site.agent().driven_runs(), 1);
    drop(open);
    eventually(|| site.agent().driven_runs() == 0).await;
}

#[tokio::test]
async fn a_client_that_leaves_a_buffered_turn_ends_it() {
    let site = Site::start().await;
    let body = with(with(hello(), "workflowId", "silent"), "stream", false);
    let call = tokio::spawn(Call::post(site.address, "/chat", &body).send());
    eventually(|| site.agent().driven_runs() == 1).await;
    call.abort();
    eventually(|| site.agent().driven_runs() == 0).await;
}

#[tokio::test]
async fn a_session_has_only_so_many_streams_open() {
    let mut plan = Plan::new();
    plan.limits.streams_per_session = 2;
    let site = plan.start().await;
    let silent = || Call::post(site.address, "/chat", &with(hello(), "workflowId", "silent"));
    let (first, _second) = (silent().open().await, silent().open().await);
    let refused = silent().send().await;
    assert_eq!(refused.refusal(), (429, "LIMIT_REACHED".to_owned()));
    assert_eq!(refused.headers["retry-after"], "1");
    let other = Call::post(site.address, "/chat", &with(hello(), "sessionId", "s2")).send().await;
    assert_eq!(other.status, 200, "another session is not held up");
    drop(first);
    eventually(|| site.agent().driven_runs() == 1).await;
    assert_eq!(silent().open().await.status, 200);
}
