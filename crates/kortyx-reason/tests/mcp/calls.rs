//! Calls: what a server returns, and what becomes of a call when the server fails.

use std::time::Duration;

use kortyx_protocol::ExecutionResult;
use kortyx_reason::{McpCommand, McpError, McpHandshake, McpServer, McpToolInfo};
use serde_json::json;

use crate::world::{Diary, agent, answer, calling, ended, reasoning, results, run, text, until};

/// Little time for this tool, and much for all others.
fn patience(tool: &McpToolInfo, brief: &str) -> Duration {
    if tool.name == brief { Duration::from_millis(300) } else { Duration::from_mins(1) }
}

#[tokio::test]
async fn texts_structures_failures_and_pictures_reach_the_model() {
    let diary = Diary::new();
    let server = diary.command().build();
    let calls = [
        ("echo", text("hello")),
        ("sum", text("7")),
        ("sum", text("seven")),
        ("fail", text("")),
        ("picture", text("")),
        ("files_read", text("paper")),
        ("echo", json!({"text": 7})),
    ];
    let results = results(&server, calls).await;
    assert_eq!(results[0], json!(["echo", "completed", "hello", "hello"]));
    assert_eq!(results[1], json!(["sum", "completed", {"sum": 7}, r#"{"sum":7}"#]));
    let unfit = results[2][3].as_str().unwrap();
    assert!(
        results[2][1] == "failed" && unfit.starts_with("the server's result does not fit its schema: /sum"),
        "{unfit}"
    );
    assert_eq!(results[3], json!(["fail", "failed", null, "it is broken"]));
    assert_eq!(results[4][3], "Here:\n[an image, image/png, 5 bytes]");
    assert_eq!(results[5][2], "paper", "the server knows the tool by its own name");
    assert_eq!(results[6][1], "invalid", "the server's schema is kept before the server is asked");
    assert_eq!(diary.processes().len(), 1, "all calls share one process");
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_told_to_the_model_and_started_again_for_the_next() {
    let diary = Diary::new();
    let server = diary.command().build();
    let results = results(&server, [("die", text("")), ("echo", text("back"))]).await;
    assert_eq!(results[0][3], "the server went away during the call; it may have done it or not");
    assert_eq!(results[1][2], "back");
}

#[tokio::test]
async fn a_server_that_died_between_two_calls_is_started_again_and_nobody_notices() {
    let diary = Diary::new();
    let server = diary.command().build();
    assert_eq!(results(&server, [("echo", text("one"))]).await[0][2], "one");
    let id = diary.processes()[0];
    let process = rustix::process::Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    // The first thread of a process that is killed may be gone before the others, and with them what it holds open.
    let (stat, threads) = (format!("/proc/{id}/stat"), format!("/proc/{id}/task"));
    let is_gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    until(|| is_gone() && std::fs::read_dir(&threads).map_or(true, |threads| threads.count() == 1)).await;
    let again = results(&server, [("echo", text("two"))]).await;
    assert_eq!(again[0][2], "two", "{again:?}");
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_given_up_and_the_server_is_told() {
    let diary = Diary::new();
    let server = diary.command().policy(|tool, policy| policy.timeout(patience(tool, "hang"))).build();
    server.list().await.unwrap();
    let results = results(&server, [("hang", text("")), ("echo", text("on"))]).await;
    assert_eq!(results[0][3], "the tool took longer than 300ms");
    assert_eq!(results[1][2], "on");
    diary.wait_for("hanging").await;
    diary.wait_for("cancelled").await;
}

#[tokio::test]
async fn a_result_that_is_too_long_does_not_reach_the_model() {
    let diary = Diary::new();
    let server = diary.command().policy(|_, policy| policy.max_result_bytes(10)).build();
    let results = results(&server, [("echo", text("0123456789A"))]).await;
    assert_eq!(results[0][3], "the result has 11 bytes, more than 10: ask for less at once");
}

#[tokio::test]
async fn a_call_that_needs_approval_reaches_the_server_only_with_it() {
    let diary = Diary::new();
    let server = diary.bare().approve_when(|tool, given| tool.name != "echo" || given["text"] == "rm").build();
    let workflow = reasoning(&calling([("echo", text("ls")), ("echo", text("rm"))]), &server);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let request = paused.interrupts()[0].input.request.clone().unwrap();
    assert_eq!((&request["arguments"], &request["description"]), (&text("rm"), &json!("Does echo")));
    let done = ended(answer(&agent, &paused, json!({"decision": "reject"})).await);
    assert_eq!((&done[0][2], &done[1][1]), (&json!("ls"), &json!("rejected")));
}

#[tokio::test]
async fn a_process_is_spoken_to_by_either_handshake() {
    for handshake in [McpHandshake::Auto, McpHandshake::Discover] {
        let diary = Diary::new();
        let server = diary.command().handshake(handshake).build();
        let results = results(&server, [("echo", text("hello")), ("gone", text("")), ("sum", text("3"))]).await;
        assert_eq!((&results[0][2], &results[2][2]), (&json!("hello"), &json!({"sum": 3})), "{handshake:?}");
        server.close().await;
    }
}

#[tokio::test]
async fn as_many_calls_are_made_at_once_as_there_may_be_connections_and_others_wait_in_line() {
    for (connections, brief, status) in [(1, "echo", "failed"), (2, "none", "completed")] {
        let diary = Diary::new();
        let server = diary.command().policy(move |tool, policy| policy.timeout(patience(tool, brief)));
        let server = server.connections(connections).build();
        server.list().await.unwrap();
        let hanging = server.clone();
        let hanging = tokio::spawn(async move { results(&hanging, [("hang", text(""))]).await });
        diary.wait_for("hanging").await;
        assert_eq!(results(&server, [("echo", text("hello"))]).await[0][1], status);
        assert_eq!(diary.processes().len(), connections);
        hanging.abort();
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_that_names_it_after_all_attempts() {
    let missing = McpServer::command("files", McpCommand::new("/nowhere/kortyx-mcp")).build();
    let error = missing.list().await.err().unwrap().to_string();
    assert!(error.starts_with("the MCP server `files` cannot be reached: No such file"), "{error}");
    let silent = McpServer::command("files", McpCommand::new("sleep").args(["60"]));
    let silent = silent.connect_timeout(Duration::from_millis(50)).connect_attempts(2).build();
    let error = silent.list().await.err().unwrap().to_string();
    assert_eq!(error, "the MCP server `files` cannot be reached: no answer in 50ms");
    let workflow = reasoning(&calling([]), &missing);
    let failed = run(&agent(&workflow).await, &workflow).await;
    assert!(matches!(failed, ExecutionResult::Failed { .. }), "{failed:?}");
    missing.close().await;
    assert_eq!(missing.list().await.err().unwrap(), McpError::Closed { server: "files".into() });
}
