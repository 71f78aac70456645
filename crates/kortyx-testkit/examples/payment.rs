//! A payment that a person approves, put to the test on SQLite: `cargo run -p kortyx-testkit --example payment`.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use kortyx::{
    Agent, AgentBuilder, ExecuteOptions, NodeContext, NodeOutput, NodeResult, OrchestratorError, Text, Workflow,
    protocol::{ExecutionResult, RawJson, SessionId},
    sqlite::{SqliteConfig, SqliteStore},
    store::{Scalar, Scope, Store},
};
use kortyx_testkit::{BoxError, EndedRun, Kit, Log, Race, Storm, Subject, Sweep, member};

/// The workflow, on a store in a file.
struct Payment;

async fn approve(ctx: NodeContext, log: &Log) -> NodeResult {
    log.effect(&ctx, "reserve", "reserve").await?;
    let reason = ctx.interrupt("reason", Text::new("Why is it to be paid?")).await?;
    // Where a payment would be made. `log.effect` is a step, as the payment is.
    log.effect(&ctx, "pay", "pay").await?;
    Ok(NodeOutput::new().data("reason", &reason))
}

#[async_trait]
impl Subject for Payment {
    fn place(&self, directory: &Path) -> Result<String, BoxError> {
        Ok(directory.join("payments.db").display().to_string())
    }

    async fn open(&self, place: &str, _: Duration) -> Result<Arc<dyn Store>, BoxError> {
        Ok(Arc::new(SqliteStore::open(SqliteConfig::new(place)).await?))
    }

    fn agent(&self, builder: AgentBuilder, log: &Log) -> Result<AgentBuilder, BoxError> {
        let log = Arc::new(log.clone());
        let node = move |ctx| {
            let log = log.clone();
            async move { approve(ctx, &log).await }
        };
        Ok(builder.workflow(&Workflow::builder("payment").node("approve", node).build()?))
    }

    async fn begin(&self, agent: &Agent, number: u64) -> Result<ExecutionResult, OrchestratorError> {
        let session = SessionId::new(format!("customer-{}", number % 10));
        let session = session.map_err(|error| OrchestratorError::InvalidRequest(error.to_string()))?;
        let options = ExecuteOptions::new().session(session).context("app", "payments");
        agent.execute_by_id("payment", None, RawJson::default(), options).await
    }

    fn scope(&self) -> Scope {
        Scope::default().with("app", Scalar::Text("payments".into()))
    }

    fn verify(&self, run: &EndedRun) -> Result<(), String> {
        let wanted: BTreeSet<String> = ["reserve", "pay"].map(str::to_owned).into();
        if run.effects != wanted {
            return Err(format!("{:?} happened", run.effects));
        }
        let answer = run.questions.first().and_then(|question| question.answer.as_ref());
        let answer: serde_json::Value =
            answer.and_then(|answer| serde_json::from_slice(answer).ok()).unwrap_or_default();
        if run.data.get("reason") == answer.get("text") { Ok(()) } else { Err(format!("it was given {answer}")) }
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let payment = Arc::new(Payment);
    // The harness starts this program again and again: those processes do their work here, and do not return.
    member(payment.clone()).await;

    let kit = Kit::new(payment)?;
    println!("killed before each durable point: {:?}", Sweep::before().run(&kit).await?);
    println!("killed after each durable point: {:?}", Sweep::after().run(&kit).await?);
    println!("raced for: {:?}", Race::for_questions(20).run(&kit).await?);
    let storm = Storm::lasting(Duration::from_secs(5)).kills_every(Duration::from_millis(300));
    println!("killed at random: {:?}", storm.run(&kit).await?);
    Ok(())
}
