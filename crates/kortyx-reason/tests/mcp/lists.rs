//! What a server has, and what of it a model is given.

use std::{sync::Arc, time::Duration};

use kortyx_memory::MemoryStore;
use kortyx_reason::{Approval, McpCommand, McpError, McpServer, McpTools, Reason, ReasonExt as _};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use serde_json::json;

use crate::server::SILENT;
use crate::world::{Diary, agent_on, answer, calling, ended, results, run, serves, text};

fn names(tools: &McpTools) -> Vec<String> {
    tools.as_slice().iter().map(|tool| tool.name().to_owned()).collect()
}

#[tokio::test]
async fn every_page_is_read_and_names_are_made_to_fit() {
    if std::thread::spawn(serves).join().unwrap() {
        return;
    }
    let diary = Diary::new();
    let server = diary.command().prefix("t_").build();
    let tools = server.list().await.unwrap();
    let expected = "t_echo t_sum t_files_read t_fail t_hang t_die t_ask t_picture t_wants t_grow";
    assert_eq!(names(&tools).join(" "), expected);
    let excluded = tools.excluded();
    assert_eq!((excluded.len(), excluded[0].name.as_str()), (1, "bad"));
    assert!(excluded[0].why.starts_with("the schema of its arguments: the schema is not valid"), "{excluded:?}");
    assert_eq!(diary.count("listed"), 3);
    server.close().await;
    assert_eq!(diary.processes(), [0; 0]);
}

#[tokio::test]
async fn the_application_says_which_tools_are_taken() {
    let diary = Diary::new();
    let only = diary.command().only(["echo", "sum", "bad", "gone"]).without(["sum"]).build();
    let tools = only.list().await.unwrap();
    assert_eq!(names(&tools), ["echo"]);
    let excluded: Vec<_> = tools.excluded().iter().map(|tool| (tool.name.as_str(), tool.why.as_str())).collect();
    assert_eq!((excluded[0].0, excluded[1]), ("bad", ("gone", "the server has no such tool")));
    let read_only = diary.command().filter(|tool| tool.read_only == Some(false)).build();
    assert_eq!(names(&read_only.list().await.unwrap()), ["files_read", "ask", "wants"]);
}

#[tokio::test]
async fn two_tools_of_one_name_and_too_many_are_errors_that_say_what_to_do() {
    let diary = Diary::new();
    let alike = diary.command().rename(|tool| tool.name.chars().take(1).collect()).build();
    let McpError::SameName { name, first, second, .. } = alike.list().await.err().unwrap() else { panic!("no clash") };
    assert_eq!([name, first, second], ["f", "files/read", "fail"]);
    let many = diary.command().max_tools(9).build().list().await.err().unwrap();
    assert_eq!(many.to_string(), "the tools of the MCP server `test` cannot be listed: it has more than 9 tools");
}

#[tokio::test]
async fn a_list_that_does_not_come_or_is_too_long_is_an_error_and_holds_nobody() {
    let diary = Diary::new();
    let long = diary.command().max_message_bytes(1_500).build().list().await.err().unwrap();
    assert_eq!(long.to_string(), "the tools of the MCP server `test` cannot be listed: it is longer than 1500 bytes");
    std::fs::write(diary.path(), SILENT).unwrap();
    let silent = diary.command().list_timeout(Duration::from_secs(1)).build();
    let error = silent.list().await.err().unwrap();
    assert_eq!(error.to_string(), "the tools of the MCP server `test` cannot be listed: it took longer than 1s");
    diary.wait_for_end().await;
}

#[tokio::test]
async fn every_tool_needs_approval_unless_the_application_says_otherwise_and_never_because_the_server_says_so() {
    let gates = |server: McpServer| async move {
        let tools = server.list().await.unwrap();
        let gates = tools.as_slice().iter().map(|tool| tool.policy().clone());
        gates.collect::<Vec<_>>()
    };
    let policy = |approval| kortyx_reason::ToolPolicy::new().approval(approval);
    let diary = Diary::new();
    let plain = diary.bare().only(["echo", "ask"]);
    assert_eq!(gates(plain.clone().build()).await, [policy(Approval::Always), policy(Approval::Always)]);
    let trusting = plain.trust_read_only().build();
    assert_eq!(gates(trusting).await, [policy(Approval::Never), policy(Approval::Always)]);
}

#[tokio::test]
async fn a_list_is_read_again_when_the_server_says_that_it_changed() {
    let diary = Diary::new();
    let server = diary.command().build();
    for _ in 0..2 {
        assert_eq!(server.list().await.unwrap().as_slice().len(), 10);
    }
    assert_eq!(diary.count("listed"), 3, "a list that did not change is not read again");
    assert_eq!(results(&server, [("grow", text(""))]).await[0][2], "grown");
    while server.list().await.unwrap().as_slice().len() == 10 {
        tokio::task::yield_now().await; // the notice comes when it comes
    }
}

#[tokio::test]
async fn a_list_that_was_recorded_needs_no_server_when_the_answer_comes() {
    let (diary, store, model) = (Diary::new(), Arc::new(MemoryStore::new()), calling([("echo", text("hello"))]));
    let workflow = |server: McpServer| {
        let model = model.clone();
        let node = move |ctx: NodeContext| {
            let (model, server) = (model.clone(), server.clone());
            async move {
                let reason = Reason::new(model).input("Go.").tools(server.tools(&ctx).await?);
                let done = ctx.reason("mcp", reason).await?;
                let results = done.tool_results.iter().map(|end| json!([end.tool, end.status, end.content]));
                Ok(NodeOutput::new().data("results", &results.collect::<Vec<_>>()))
            }
        };
        Workflow::builder("mcp").node("mcp", node).build().unwrap()
    };
    let there = workflow(diary.bare().build());
    let paused = run(&agent_on(&store, &there).await, &there).await;
    assert_eq!((paused.status(), diary.count("listed")), ("suspended", 3));
    let gone = workflow(McpServer::command("test", McpCommand::new("/nowhere/kortyx-mcp")).build());
    let done = ended(answer(&agent_on(&store, &gone).await, &paused, json!({"decision": "approve"})).await);
    let told = done[0][2].as_str().unwrap();
    assert!(done[0][1] == "failed" && told.starts_with("the MCP server `test` cannot be reached"), "{done:?}");
}
