//! An agent that reports, and a workflow in which everything that people and code say is planted.

use std::time::Duration;

use kortyx_contracts::{Choice, ChoiceOption, Text};
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ExecuteOptions, TelemetrySink};
use kortyx_protocol::{ExecutionResult, PendingQuestion, ResumeResponse};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use kortyx_telemetry::{StudioConfig, StudioReporter};
use serde_json::{Value, json};

use crate::receiver::{KEY, Receiver};

/// Long enough for anything here.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) fn config(url: &str) -> StudioConfig {
    StudioConfig::new(url, KEY, "test", "desk")
        .unwrap()
        .batch(1000, Duration::from_millis(20))
        .timeout(Duration::from_millis(300))
        .retries(5, Duration::from_millis(5), Duration::from_millis(20))
}

pub(crate) fn workflow() -> Workflow {
    let workflow = Workflow::builder("review").version("3").node("ask", ask).node("publish", publish);
    workflow.start("ask").edge_if("ask", "publish", "yes").otherwise("ask", "publish").build().unwrap()
}

/// Asks twice; what the second answer says is the node's condition.
async fn ask(ctx: NodeContext) -> NodeResult {
    let facts = || async { Ok::<_, NodeError>(json!({"fact": "planted-step", "api_key": "planted-secret"})) };
    let facts: Value = ctx.step("look up", facts).await?;
    let value = json!("planted-value");
    let option = ChoiceOption::new("planted-option", "planted-label").value(value);
    let choice = Choice::new("planted-question").option_with(option);
    ctx.interrupt("choice", choice).await?;
    let said = ctx.interrupt("text", Text::new("why?")).await?;
    Ok(NodeOutput::new().data("facts", &facts).condition(&said))
}

async fn publish(_: NodeContext) -> NodeResult {
    Ok(NodeOutput::new().data("published", &true))
}

pub(crate) async fn agent(sink: impl TelemetrySink) -> Agent {
    let agent = Agent::builder().workflow(&workflow()).store(MemoryStore::new()).telemetry(sink);
    agent.without_worker().build().await.unwrap()
}

/// Runs the workflow from its start through both answers to its end. Gives back the tokens of its questions.
pub(crate) async fn run_through(agent: &Agent) -> Vec<String> {
    let input = json!({"text": "planted-input", "password": "planted-secret"});
    let mut result = agent.execute(&workflow(), input, ExecuteOptions::new()).await.unwrap();
    let mut tokens = Vec::new();
    for answer in [ResumeResponse::select(["planted-option"]), ResumeResponse::text("planted-answer")] {
        let question: &PendingQuestion = &result.interrupts()[0];
        tokens.push(question.resume.token.expose().to_owned());
        result = agent.resume(&question.resume, answer).await.unwrap();
    }
    assert!(matches!(result, ExecutionResult::Completed { .. }), "{result:?}");
    tokens
}

/// A receiver that has been sent one run.
pub(crate) async fn reported(receiver: &Receiver, config: &StudioConfig) -> (StudioReporter, Vec<String>) {
    let reporter = StudioReporter::start(config).unwrap();
    let tokens = run_through(&agent(reporter.clone()).await).await;
    assert!(reporter.flush(LONG).await);
    drop(receiver.seen());
    (reporter, tokens)
}
