//! Runs a workflow with a question and reports it to the receiver that the four `KORTYX_TELEMETRY_*` variables name.
//!
//! ```text
//! KORTYX_TELEMETRY_API_URL=http://localhost:4000 KORTYX_TELEMETRY_API_KEY=key KORTYX_TELEMETRY_ENVIRONMENT=dev \
//!     KORTYX_TELEMETRY_SERVICE_NAME=desk cargo run -p kortyx-telemetry --example report
//! ```

use std::{error::Error, time::Duration};

use kortyx_contracts::Choice;
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ExecuteOptions};
use kortyx_protocol::{ExecutionResult, ResumeResponse};
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow};
use kortyx_telemetry::{StudioConfig, StudioReporter};
use serde_json::json;

async fn review(ctx: NodeContext) -> NodeResult {
    let verdict = Choice::new("Publish?").option("yes", "Publish it").option("no", "Bin it");
    let verdict = ctx.interrupt("verdict", verdict).await?;
    Ok(NodeOutput::new().data("verdict", &verdict))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let workflow = Workflow::builder("review").node("review", review).build()?;
    let Some(config) = StudioConfig::from_env()? else {
        return Err("no KORTYX_TELEMETRY_* variable is set: there is nobody to report to".into());
    };
    let reporter = StudioReporter::start(&config.workflow(&workflow))?;
    let agent = Agent::builder().workflow(&workflow).store(MemoryStore::new()).telemetry(reporter.clone());
    let agent = agent.build().await?;

    let result = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await?;
    if let ExecutionResult::Suspended { .. } = &result
        && let [question] = result.interrupts()
    {
        agent.resume(&question.resume, ResumeResponse::select(["yes"])).await?;
    }

    agent.shutdown(Duration::from_secs(10)).await;
    let in_time = reporter.flush(Duration::from_secs(10)).await;
    println!("{} in time: {in_time}", json!({"sent": reporter.counts().sent, "refused": reporter.counts().refused}));
    Ok(())
}
