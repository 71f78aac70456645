//! A clean end of the agent.

use std::time::Duration;

use kortyx_orchestrator::{Agent, ChatOptions, OrchestratorError};
use kortyx_protocol::{ChatMessage, Failure, FailureCode, ResumeResponse, StreamChunk};
use kortyx_store::StoreErrorKind;
use serde_json::json;

use crate::world::{Gate, World, ask, code, data, handle, in_session, review, slow};

#[tokio::test(start_paused = true)]
async fn runs_under_way_may_end_before_the_deadline() {
    let (world, gate) = (World::new(), Gate::new());
    let workflow = slow(&gate);
    let agent = world.agent(&workflow).await;
    let run = tokio::spawn({
        let (agent, workflow) = (agent.clone(), workflow.clone());
        async move { agent.execute(&workflow, json!({}), in_session()).await }
    });
    gate.begun().await;
    let release = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        gate.open();
    };
    tokio::join!(agent.shutdown(Duration::from_secs(10)), release);
    assert_eq!(data(run.await.unwrap().unwrap()), json!({"count": 1}));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_end_in_time_goes_on_elsewhere_at_once() {
    let (world, gate) = (World::new(), Gate::new());
    let workflow = slow(&gate);
    let (one, two) = (world.agent(&workflow).await, world.agent(&workflow).await);
    let run = tokio::spawn({
        let (one, workflow) = (one.clone(), workflow.clone());
        async move { one.execute(&workflow, json!({}), in_session()).await }
    });
    gate.begun().await;
    one.shutdown(Duration::from_secs(1)).await;
    assert!(matches!(run.await.unwrap(), Err(OrchestratorError::ShuttingDown)));
    assert_eq!(two.worker().pass().await.unwrap().recovered, 1, "its lease was given up");
    gate.open();
    crate::world::settle(&two).await;
    assert_eq!(gate.passed(), 1);
}

#[tokio::test]
async fn an_agent_that_shuts_down_takes_nothing_new_and_leaves_a_given_store_open() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    agent.shutdown(Duration::from_secs(1)).await;
    agent.shutdown(Duration::from_secs(1)).await;
    let failure: Failure = agent.execute(&workflow, json!({}), in_session()).await.unwrap_err().into();
    assert_eq!((failure.code, failure.status, failure.retryable), (FailureCode::Conflict, Some(503), Some(true)));
    assert_eq!(code(agent.resume(&asked, ResumeResponse::select(["approve"])).await), FailureCode::Conflict);
    let chunks = agent.stream_chat(vec![ChatMessage::user("Hello")], ChatOptions::new()).collect().await;
    let kinds: Vec<_> = chunks.iter().map(StreamChunk::kind).collect();
    assert_eq!(kinds, ["session", "error", "done"]);

    let next = world.agent(&workflow).await;
    assert_eq!(next.resume(&asked, ResumeResponse::select(["approve"])).await.unwrap().status(), "completed");
}

#[tokio::test]
async fn a_store_that_the_agent_made_is_closed_with_it() {
    let agent = Agent::builder().workflow(&review()).from_variables(|_| None).build().await.unwrap();
    ask(&agent, &review()).await;
    agent.shutdown(Duration::from_secs(1)).await;
    assert_eq!(agent.store().now().await.unwrap_err().kind(), StoreErrorKind::Closed);
}

#[tokio::test]
async fn the_environment_sets_how_long_questions_live_unless_the_code_does() {
    let lookup = |name: &str| (name == "KORTYX_TTL_MS").then(|| "60000".into());
    let builder = || Agent::builder().workflow(&review()).without_worker().from_variables(lookup);
    let lives = |agent: Agent| async move {
        let asked = ask(&agent, &review()).await;
        let query = kortyx_store::InterruptQuery { run_id: Some(asked.run_id().clone()), ..Default::default() };
        let interrupt = agent.list_interrupts(query).await.unwrap().interrupts.remove(0);
        interrupt.expires_at.since(interrupt.created_at)
    };
    assert_eq!(lives(builder().build().await.unwrap()).await, Duration::from_mins(1));
    let in_code = builder().question_ttl(Duration::from_hours(1)).build().await.unwrap();
    assert_eq!(lives(in_code).await, Duration::from_hours(1));
}

#[tokio::test]
async fn a_variable_that_cannot_be_used_fails_the_build() {
    let lookup = |name: &str| (name == "KORTYX_POSTGRES_URL").then(|| "mysql://user:hunter2@host/db".into());
    let error = Agent::builder().from_variables(lookup).build().await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("`KORTYX_POSTGRES_URL`") && source.contains("`postgres`"), "{source}");
    assert!(!format!("{error:?}").contains("hunter2"));
}
