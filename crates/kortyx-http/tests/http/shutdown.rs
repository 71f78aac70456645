//! A clean end while clients are there.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::{
    client::Call,
    world::{Plan, Site},
};

fn silent(session: &str) -> Value {
    json!({"sessionId": session, "workflowId": "silent", "messages": [{"role": "user", "content": "x"}]})
}

#[tokio::test]
async fn streams_end_with_a_status_and_nothing_new_is_taken() {
    let mut site = Site::start().await;
    let address = site.address;
    let mut open = Call::post(address, "/chat", &silent("s1")).open().await;
    let _idle = TcpStream::connect(address).await.unwrap();
    for _ in 0..2 {
        open.frame().await.unwrap();
    }
    site.signal();
    let rest = open.rest().await;
    let [status, done, last] = rest.as_slice() else { panic!("{rest:?}") };
    let status: Value = serde_json::from_str(status.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(
        (&status["type"], done.as_str(), last.as_str()),
        (&json!("status"), r#"data: {"type":"done"}"#, "data: [DONE]")
    );
    let agent = site.agent().clone();
    site.ended().await;
    assert_eq!(agent.driven_runs(), 0);
    assert!(TcpStream::connect(address).await.is_err(), "it still listens");
}

#[tokio::test]
async fn a_turn_that_ends_in_time_is_streamed_to_its_end() {
    let mut plan = Plan::new();
    plan.ending.drain = Duration::from_secs(10);
    let mut site = plan.start().await;
    let body = json!({"sessionId": "s1", "messages": [{"role": "user", "content": "x"}]});
    let mut open = Call::post(site.address, "/chat", &body).open().await;
    site.signal();
    let rest = open.rest().await;
    assert!(rest.iter().any(|frame| frame.contains(r#""type":"interrupt""#)), "{rest:?}");
    assert_eq!(rest.last().unwrap(), "data: [DONE]");
    drop(open);
    site.ended().await;
}

#[tokio::test]
async fn a_request_on_an_open_connection_is_told_to_go_elsewhere() {
    let mut plan = Plan::new();
    plan.ending.drain = Duration::from_secs(1);
    let agent = plan.agent().build().await.unwrap();
    agent.shutdown(Duration::ZERO).await;
    let site = plan.start_with(agent).await;
    let refused = Call::post(site.address, "/chat", &silent("s1")).send().await;
    assert_eq!(refused.refusal(), (503, "CONFLICT".to_owned()));
    assert_eq!(refused.headers["retry-after"], "1");
}

#[tokio::test]
async fn a_run_under_way_is_left_to_another_process_at_once() {
    let plan = Plan::new();
    let other = plan.agent().build().await.unwrap();
    let mut site = plan.start().await;
    let mut body = silent("s1");
    body["workflowId"] = "durable".into();
    let mut open = Call::post(site.address, "/chat", &body).open().await;
    while !open.frame().await.unwrap().contains("Begun") {}
    assert_eq!(other.worker().pass().await.unwrap().recovered, 0, "it is driven here");
    site.signal();
    assert!(open.rest().await.iter().any(|frame| frame.contains(r#""type":"status""#)));
    site.ended().await;
    assert_eq!(
        other.worker().pass().await.unwrap().recovered,
        1,
        "its lease was given up, and the run was not cancelled"
    );
    other.shutdown(Duration::ZERO).await;
}
