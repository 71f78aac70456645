//! Running workflows from code.

use kortyx_orchestrator::{Agent, ExecuteOptions};
use kortyx_protocol::{ExecutionResult, FailureCode, RawJson, ResumeResponse};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::world::{Gate, World, ask, code, data, handle, in_session, open, review, session, settle, slow};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Order {
    amount: u32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Total {
    total: u64,
}

fn order() -> Workflow<Order, Total> {
    let node = |ctx: NodeContext| async move {
        let order: Order = ctx.input()?;
        Ok(NodeOutput::new().data("total", &(u64::from(order.amount) * 2)))
    };
    Workflow::builder("order").input::<Order>().output::<Total>().node("sum", node).build().unwrap()
}

#[tokio::test]
async fn a_run_asks_takes_the_answer_and_ends() {
    let workflow = review();
    let agent = World::new().agent(&workflow).await;
    let result = ask(&agent, &workflow).await;
    let question = &open(&result)[0];
    assert_eq!((question.workflow.as_str(), question.node.as_str()), ("review", "approval"));
    assert_eq!(question.input.id.as_deref(), Some("approval"));
    assert_eq!(question.expires_at.to_string(), "2026-01-01T00:15:00.000Z");
    assert_eq!(*result.session_id(), session());

    let result = agent.resume(&question.resume, ResumeResponse::select(["approve"])).await.unwrap();
    assert_eq!(data(result), json!({"decision": "approve"}));
    assert_eq!(agent.driven_runs(), 0);
}

#[tokio::test]
async fn input_and_output_have_the_workflows_types() {
    let workflow = order();
    let agent = World::new().agent(&workflow).await;
    let result = agent.execute(&workflow, Order { amount: 21 }, ExecuteOptions::new()).await.unwrap();
    let ExecutionResult::Completed { data, session_id, .. } = result else { panic!("{result:?}") };
    assert_eq!(data, Total { total: 42 });
    assert!(session_id.as_str().starts_with("session-"));
}

#[tokio::test]
async fn a_resumed_run_has_the_workflows_output_type_when_asked() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Decision {
        decision: String,
    }
    let workflow = review();
    let agent = World::new().agent(&workflow).await;
    let result = ask(&agent, &workflow).await;
    let typed: Workflow<serde_json::Value, serde_json::Value> = workflow.clone();
    let result =
        agent.resume_as(&typed, &handle(&result, "approval"), ResumeResponse::select(["revise"])).await.unwrap();
    let decision: Decision = serde_json::from_value(data(result)).unwrap();
    assert_eq!(decision.decision, "revise");
}

#[tokio::test]
async fn an_input_that_does_not_fit_starts_nothing() {
    let workflow = order();
    let world = World::new();
    let agent = world.agent(&workflow).await;
    let input = RawJson::parse(r#"{"amount":"many"}"#).unwrap();
    let error = agent.execute_by_id("order", None, input, in_session()).await.unwrap_err();
    let failure: kortyx_protocol::Failure = error.into();
    assert_eq!(failure.code, FailureCode::InvalidInput);
    assert_eq!(failure.issues.unwrap()[0].path, "/amount");
    assert_eq!((agent.driven_runs(), world.facts.all().len()), (0, 0));
}

#[tokio::test]
async fn a_workflow_that_is_not_registered_is_refused() {
    let agent = World::new().agent(&order()).await;
    let null = || RawJson::null();
    assert_eq!(code(agent.execute(&review(), json!({}), in_session()).await), FailureCode::UnknownWorkflow);
    assert_eq!(code(agent.execute_by_id("nothing", None, null(), in_session()).await), FailureCode::UnknownWorkflow);
    assert_eq!(code(agent.execute_by_id("order", Some("9"), null(), in_session()).await), FailureCode::UnknownWorkflow);
}

#[tokio::test]
async fn another_definition_of_a_registered_version_is_refused() {
    let agent = World::new().agent(&review()).await;
    let node = |_: NodeContext| async move { Ok(NodeOutput::new()) };
    let other = Workflow::builder("review").node("other", node).build().unwrap();
    assert_eq!(code(agent.execute(&other, json!({}), in_session()).await), FailureCode::UnknownWorkflow);
}

#[tokio::test]
async fn a_node_that_fails_is_a_result_with_a_failure() {
    let node = |_: NodeContext| async move { Err::<NodeOutput, _>(NodeError::public("sold-out", "no seats are left")) };
    let workflow = Workflow::builder("book").node("seat", node).build().unwrap();
    let agent = World::new().agent(&workflow).await;
    let result = agent.execute(&workflow, json!({}), in_session()).await.unwrap();
    let ExecutionResult::Failed { error, .. } = result else { panic!("{result:?}") };
    assert_eq!((error.code, error.message.as_str()), (FailureCode::DomainError, "no seats are left"));
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_stop_its_run() {
    let gate = Gate::new();
    let workflow = slow(&gate);
    let world = World::new();
    let agent = world.agent(&workflow).await;
    let mut call = Box::pin(agent.execute(&workflow, json!({}), in_session()));
    assert!(futures_util::poll!(call.as_mut()).is_pending());
    gate.begun().await;
    drop(call);
    gate.open();
    settle(&agent).await;
    assert_eq!(world.facts.take(), ["RunFinished"]);
}

#[tokio::test]
async fn an_agent_needs_a_registered_default_workflow() {
    let error = Agent::builder().workflow(&review()).default_workflow("other").build().await.unwrap_err();
    assert_eq!(error.to_string(), "the default workflow `other` is not registered: add it with `workflow(…)`");
}
