//! What the tests share: the server as a child process, a node that calls its tools, and what is left of processes.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ExecuteOptions};
use kortyx_protocol::{ExecutionResult, ResumeResponse};
use kortyx_reason::{
    Approval, McpCommand, McpHandshake, McpServer, McpServerBuilder, Reason, ReasonExt as _, Script, ScriptedModel,
};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use rmcp::{ServiceExt as _, transport::async_rw::AsyncRwTransport};
use serde_json::{Value, json};

use crate::server::Server;

/// By this variable a process knows that it is a server, and where its diary is.
const DIARY: &str = "KORTYX_TEST_MCP_DIARY";

/// The test that serves when its process is told to.
const SERVING: &str = "lists::every_page_is_read_and_names_are_made_to_fit";

/// Serves, in a process that is to. What the test harness prints goes elsewhere: the shell moved the pipe to descriptor 3.
pub(crate) fn serves() -> bool {
    let Some(diary) = std::env::var_os(DIARY) else { return false };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let output = tokio::fs::OpenOptions::new().write(true).open("/dev/fd/3").await.unwrap();
        let transport = AsyncRwTransport::new_server(tokio::io::stdin(), output);
        let serving = Server::new(diary).serve(transport).await.unwrap();
        let _ = serving.waiting().await;
    });
    // A read of the standard input that never returns must not hold the process.
    std::process::exit(0);
}

static WORLDS: AtomicUsize = AtomicUsize::new(0);

/// A server's diary, which ends with its test.
pub(crate) struct Diary(PathBuf);

impl Diary {
    pub(crate) fn new() -> Self {
        let number = WORLDS.fetch_add(1, Ordering::SeqCst);
        Self(std::env::temp_dir().join(format!("kortyx-mcp-{}-{number}", std::process::id())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }

    /// How many lines begin so.
    pub(crate) fn count(&self, start: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(start)).count()
    }

    /// Waits until a line is there.
    pub(crate) async fn wait_for(&self, line: &str) {
        until(|| self.lines().iter().any(|there| there == line)).await;
    }

    /// The processes of servers with this diary.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mine = [DIARY.as_bytes(), b"=", self.0.as_os_str().as_encoded_bytes()].concat();
        let all =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let is_mine = |id: &u32| {
            let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mine)
        };
        all.filter(is_mine).collect()
    }

    /// Waits until no process is left.
    pub(crate) async fn wait_for_end(&self) {
        until(|| self.processes().is_empty()).await;
    }

    /// The server as a child process, of which nothing needs approval.
    pub(crate) fn command(&self) -> McpServerBuilder {
        self.bare().approval(|_| Approval::Never)
    }

    /// The server as a child process.
    pub(crate) fn bare(&self) -> McpServerBuilder {
        let exe = std::env::current_exe().unwrap();
        // Some servers greet people first.
        let script = "echo Starting.; exec \"$0\" \"$@\" 3>&1 1>/dev/null";
        let command = McpCommand::new("sh")
            .args(["-c", script])
            .args([exe.as_os_str()])
            .args(["--exact", SERVING, "--nocapture"])
            .env(DIARY, &self.0);
        McpServer::command("test", command).handshake(McpHandshake::Initialize)
    }
}

impl Drop for Diary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Waits for what other processes do.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never happened");
}

/// A model that makes one call after the other, each in a turn of its own.
pub(crate) fn calling(calls: impl IntoIterator<Item = (&'static str, Value)>) -> ScriptedModel {
    let calls = calls.into_iter().map(|(tool, arguments)| Script::new().call(tool, arguments));
    ScriptedModel::new(calls.chain([Script::new().text("Done.")]).collect::<Vec<_>>())
}

pub(crate) fn text(text: &str) -> Value {
    json!({ "text": text })
}

/// A workflow that reasons with this model and the tools of this server, and ends with tool, status, output and what the model was
/// told of each call.
pub(crate) fn reasoning(model: &ScriptedModel, server: &McpServer) -> Workflow {
    let (model, server) = (model.clone(), server.clone());
    let node = move |ctx: NodeContext| {
        let (model, server) = (model.clone(), server.clone());
        async move {
            let reason = Reason::new(model).input("Go.").tools(server.tools(&ctx).await?);
            let done = ctx.reason("mcp", reason).await?;
            let results = done.tool_results.iter();
            let results = results.map(|end| json!([end.tool, end.status, end.output, end.content]));
            Ok(NodeOutput::new().data("results", &results.collect::<Vec<_>>()))
        }
    };
    Workflow::builder("mcp").node("mcp", node).build().unwrap()
}

pub(crate) async fn agent_on(store: &Arc<MemoryStore>, workflow: &Workflow) -> Agent {
    Agent::builder().workflow(workflow).shared_store(store.clone()).without_worker().build().await.unwrap()
}

pub(crate) async fn agent(workflow: &Workflow) -> Agent {
    agent_on(&Arc::new(MemoryStore::new()), workflow).await
}

pub(crate) async fn run(agent: &Agent, workflow: &Workflow) -> ExecutionResult {
    agent.execute(workflow, json!({}), ExecuteOptions::new()).await.unwrap()
}

/// What came of the calls of a server's tools that nobody is asked about.
pub(crate) async fn results(server: &McpServer, calls: impl IntoIterator<Item = (&'static str, Value)>) -> Vec<Value> {
    let workflow = reasoning(&calling(calls), server);
    ended(run(&agent(&workflow).await, &workflow).await)
}

/// The results of a completed run.
pub(crate) fn ended(result: ExecutionResult) -> Vec<Value> {
    match result {
        ExecutionResult::Completed { data, .. } => data["results"].as_array().unwrap().clone(),
        other => panic!("not completed: {other:?}"),
    }
}

/// Answers the first open question.
pub(crate) async fn answer(agent: &Agent, paused: &ExecutionResult, value: Value) -> ExecutionResult {
    assert_eq!(paused.status(), "suspended", "{paused:?}");
    agent.resume(&paused.interrupts()[0].resume, ResumeResponse::value(value)).await.unwrap()
}
