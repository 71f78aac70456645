//! A file with runs in it, and the program that looks into it.

use std::{path::PathBuf, process::Command, sync::Arc, time::Duration};

use kortyx_contracts::{Choice, Text};
use kortyx_orchestrator::{Agent, ExecuteOptions};
use kortyx_protocol::{PendingQuestion, RunId};
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow};
use kortyx_sqlite::{SqliteConfig, SqliteStore};
use kortyx_store::Store;
use serde_json::Value;
use tempfile::TempDir;

/// A text that no list may show: it is asked and answered.
pub(crate) const SECRET_TEXT: &str = "Fire the canary?";

pub(crate) struct World {
    directory: TempDir,
    pub(crate) agent: Agent,
    pub(crate) store: Arc<dyn Store>,
    workflow: Workflow,
}

/// What the program said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

async fn draft(ctx: NodeContext) -> NodeResult {
    let text = ctx.step("write", || async { Ok::<_, std::io::Error>("a draft".to_owned()) }).await?;
    Ok(NodeOutput::new().data("draft", &text))
}

async fn review(ctx: NodeContext) -> NodeResult {
    ctx.step("notify", || async { Ok::<_, std::io::Error>(1) }).await?;
    let choice = Choice::new(SECRET_TEXT).option("approve", "Approve").option("revise", "Revise");
    let decision = ctx.interrupt("approval", choice).await?;
    let name = ctx.interrupt("name", Text::new("Who signs?").min_length(2)).await?;
    Ok(NodeOutput::new().data("decision", &decision).data("name", &name))
}

/// It drafts, and asks twice whether that may be signed.
pub(crate) fn workflow() -> Workflow {
    let workflow = Workflow::builder("review").version("3").node("draft", draft).node("review", review);
    workflow.edge("draft", "review").build().unwrap()
}

impl World {
    /// An agent over a new file. It drives, and has no worker: what the program accepts stays to be taken.
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kortyx.db");
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(SqliteConfig::new(path)).await.unwrap());
        let workflow = workflow();
        let agent = Agent::builder().workflow(&workflow).shared_store(store.clone()).without_worker();
        let agent = agent.question_ttl(Duration::from_hours(1)).build().await.unwrap();
        Self { directory, agent, store, workflow }
    }

    /// A run that waits, of the tenant `acme`, and its question.
    pub(crate) async fn waiting(&self) -> PendingQuestion {
        let options = ExecuteOptions::new().context("tenant", "acme");
        let result = self.agent.execute(&self.workflow, Value::Null, options).await.unwrap();
        result.interrupts()[0].clone()
    }

    pub(crate) async fn run_of(&self, question: &PendingQuestion) -> RunId {
        self.store.interrupt(&question.request_id).await.unwrap().unwrap().run_id
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("kortyx.db")
    }

    /// Runs the program over the file. Whatever it says, no token is in it.
    pub(crate) async fn kortyx(&self, arguments: &[&str]) -> Said {
        let mut all = vec!["--store".to_owned(), format!("sqlite:{}", self.path().display())];
        all.extend(arguments.iter().map(|&argument| argument.to_owned()));
        let said = kortyx(&all).await;
        for token in self.tokens().await {
            assert!(!said.out.contains(&token) && !said.err.contains(&token), "a token is shown by {arguments:?}");
        }
        said
    }

    /// As [`kortyx`](Self::kortyx) with `--json`: what it says, read.
    pub(crate) async fn json(&self, arguments: &[&str]) -> Value {
        let said = self.kortyx(&[arguments, &["--json"]].concat()).await;
        assert_eq!(said.code, 0, "{said:?}");
        let value: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(value["v"], 1);
        value["data"].clone()
    }

    /// Every token of every question that is open.
    async fn tokens(&self) -> Vec<String> {
        let scope = kortyx_store::Scope::default().with("tenant", kortyx_store::Scalar::Text("acme".into()));
        let query = kortyx_store::InterruptQuery { scope, limit: 200, ..kortyx_store::InterruptQuery::default() };
        let open = self.store.list_interrupts(query).await.unwrap().interrupts;
        open.iter().map(|question| question.token.expose().to_owned()).collect()
    }
}

/// Runs the program, in an environment that names no store.
pub(crate) async fn kortyx(arguments: &[String]) -> Said {
    let arguments = arguments.to_vec();
    let run = move || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kortyx"));
        for name in ["KORTYX_POSTGRES_URL", "KORTYX_REDIS_URL", "REDIS_URL", "KORTYX_FRAMEWORK_REDIS_URL"] {
            command.env_remove(name);
        }
        command.env_remove("KORTYX_SQLITE_PATH").env_remove("KORTYX_ACTOR").args(&arguments).output().unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}
