//! No process outlives what it was started for.

use std::time::Duration;

use kortyx_orchestrator::ExecuteOptions;
use kortyx_protocol::SessionId;
use kortyx_reason::{McpServer, Reason, ReasonExt as _};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use kortyx_store::{CancelTarget, Scope};
use serde_json::json;

use crate::world::{Diary, agent, calling, reasoning, results, run, text};

/// A started server.
async fn started(diary: &Diary) -> McpServer {
    let server = diary.command().build();
    server.list().await.unwrap();
    assert_eq!(diary.processes().len(), 1);
    server
}

#[tokio::test]
async fn a_handle_that_is_dropped_leaves_no_process() {
    let diary = Diary::new();
    let server = started(&diary).await;
    let tools = server.list().await.unwrap();
    drop(server);
    assert_eq!(diary.processes().len(), 1, "a tool is still there");
    drop(tools);
    diary.wait_for_end().await;
}

#[test]
fn a_handle_that_is_dropped_outside_of_any_runtime_leaves_no_process() {
    let diary = Diary::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(started(&diary));
    drop(runtime);
    drop(server);
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while !diary.processes().is_empty() {
        assert!(std::time::Instant::now() < until, "it is still there");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_panic_leaves_no_process() {
    let diary = Diary::new();
    let server = started(&diary).await;
    let panicked = tokio::spawn(async move {
        let _server = server;
        tokio::task::yield_now().await;
        panic!("it goes wrong");
    });
    assert!(panicked.await.is_err());
    diary.wait_for_end().await;
}

#[tokio::test]
async fn a_pause_leaves_no_process_where_the_node_owns_the_server() {
    let diary = Diary::new();
    let (model, bare) = (calling([("ask", text(""))]), diary.command());
    let node = move |ctx: NodeContext| {
        let (model, server) = (model.clone(), bare.clone().build());
        async move {
            let reason = Reason::new(model).input("Go.").tools(server.tools(&ctx).await?);
            let done = ctx.reason("mcp", reason).await?;
            Ok(NodeOutput::new().data("text", &done.text))
        }
    };
    let workflow = Workflow::builder("mcp").node("mcp", node).build().unwrap();
    let agent = agent(&workflow).await;
    assert_eq!(run(&agent, &workflow).await.status(), "suspended");
    diary.wait_for_end().await;
}

#[tokio::test]
async fn a_run_that_is_cancelled_gives_up_its_call_and_the_server_is_told() {
    let diary = Diary::new();
    let server = started(&diary).await;
    let workflow = reasoning(&calling([("hang", text(""))]), &server);
    let agent = agent(&workflow).await;
    let session = SessionId::new("session-1").unwrap();
    let running = tokio::spawn({
        let (agent, options) = (agent.clone(), ExecuteOptions::new().session(session.clone()));
        async move { agent.execute(&workflow, json!({}), options).await.unwrap() }
    });
    diary.wait_for("hanging").await;
    let scope = Scope::session(session.clone());
    agent.cancel(CancelTarget::Session(session), scope, None).await.unwrap();
    assert_eq!(running.await.unwrap().status(), "cancelled");
    diary.wait_for("cancelled").await;
    diary.wait_for_end().await;
    assert_eq!(results(&server, [("echo", text("on"))]).await[0][2], "on", "the next call starts another");
}
