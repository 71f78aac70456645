//! The worker: expiry, recovery within bounds, retention, and how it is woken and stopped.

use std::time::Duration;

use kortyx_orchestrator::{Answer, Fact, WorkerConfig};
use kortyx_protocol::{FailureCode, ResumeResponse};
use kortyx_store::RunStatus;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::{Gate, World, ask, code, data, handle, lenient, pair, review, scope, settle, slow};
use kortyx_testkit::{Faulty, Op, When};

#[tokio::test]
async fn a_question_past_its_time_goes_on_with_its_default() {
    let (world, workflow) = (World::new(), lenient());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "name");
    let mut worker = agent.worker();
    assert_eq!(worker.pass().await.unwrap().expired, 0);
    world.clock.advance(Duration::from_mins(1));
    let pass = worker.pass().await.unwrap();
    assert_eq!((pass.expired, pass.defaulted, pass.ended), (1, 1, 0));
    settle(&agent).await;
    let run = agent.get_run(&asked.run_id, &scope()).await.unwrap().unwrap();
    assert_eq!(run.data.unwrap().get(), r#"{"name":"nobody"}"#);
    assert_eq!(code(agent.resume(&asked, ResumeResponse::text("Ann")).await), FailureCode::InterruptExpired);
    let facts = world.facts.all();
    assert!(facts.iter().any(|fact| matches!(fact, Fact::InterruptExpired { by_default: true, .. })), "{facts:?}");
}

#[tokio::test]
async fn a_run_ends_as_expired_once_none_of_its_questions_is_open() {
    let (world, workflow) = (World::new(), pair());
    let agent = world.agent(&workflow).await;
    let asked = ask(&agent, &workflow).await;
    world.clock.advance(Duration::from_mins(15));
    world.facts.take();
    let pass = agent.worker().pass().await.unwrap();
    assert_eq!((pass.expired, pass.ended), (2, 1));
    let run = agent.get_run(asked.run_id(), &scope()).await.unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Expired);
    assert_eq!(world.facts.take(), ["InterruptExpired", "InterruptExpired", "RunFinished"]);
}

#[tokio::test(start_paused = true)]
async fn the_agents_own_worker_fires_expiries_and_ends_with_the_agent() {
    let (world, workflow) = (World::new(), lenient());
    let store: std::sync::Arc<dyn kortyx_store::Store> = world.store.clone();
    let builder = kortyx_orchestrator::Agent::builder().shared_store(store).workflow(&workflow);
    let agent = builder.telemetry(world.facts.clone()).build().await.unwrap();
    ask(&agent, &workflow).await;
    world.clock.advance(Duration::from_mins(1));
    tokio::time::sleep(Duration::from_secs(2)).await;
    settle(&agent).await;
    assert_eq!(world.facts.take(), ["InterruptCreated", "InterruptExpired", "RunFinished"]);
    ask(&agent, &workflow).await;
    drop(agent);
    world.clock.advance(Duration::from_mins(1));
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.facts.take(), ["InterruptCreated"]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_woken_when_a_run_is_left_to_it() {
    let (world, workflow) = (World::new(), review());
    let mut config = WorkerConfig::default();
    config.poll = Duration::from_hours(10);
    let driving = world.builder().workflow(&workflow).worker(config).build().await.unwrap();
    let accepting = world.builder().accept_only().build().await.unwrap();
    let asked = handle(&ask(&driving, &workflow).await, "approval");
    let until = CancellationToken::new();
    let working = tokio::spawn(driving.worker().run(until.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = tokio::time::Instant::now();
    let result = accepting.resume(&asked, ResumeResponse::select(["approve"])).await.unwrap();
    assert_eq!(data(result), json!({"decision": "approve"}));
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    until.cancel();
    working.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_worker_drives_no_more_runs_at_once_than_it_should() {
    let (world, gate) = (World::new(), Gate::new());
    let workflow = slow(&gate);
    let mut config = WorkerConfig::default();
    config.concurrency = 2;
    let agent = world.builder().workflow(&workflow).worker(config).build().await.unwrap();
    orphans(&world, &workflow, &gate, 5).await;
    let working = tokio::spawn(agent.worker().run(CancellationToken::new()));
    for left in (0..5).rev() {
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(agent.driven_runs(), 2.min(left + 1));
        gate.open();
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((agent.driven_runs(), gate.passed()), (0, 5));
    working.abort();
}

/// Leaves runs whose driver is gone.
async fn orphans(world: &World, workflow: &kortyx_runtime::Workflow, gate: &Gate, count: usize) {
    let dying = world.agent(workflow).await;
    for _ in 0..count {
        let (dying, workflow) = (dying.clone(), workflow.clone());
        tokio::spawn(async move { dying.execute(&workflow, json!({}), crate::world::in_session()).await });
    }
    for _ in 0..count {
        gate.begun().await;
    }
    dying.shutdown(Duration::ZERO).await;
    assert_eq!(dying.driven_runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_worker_goes_on_after_the_store_failed() {
    let (world, workflow) = (World::new(), review());
    let store = Faulty::over(world.store.clone());
    let agent = world.builder().shared_store(store.clone()).workflow(&workflow).build().await.unwrap();
    let accepting = world.builder().accept_only().build().await.unwrap();
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    for operation in [Op::Now, Op::ExpireDue, Op::ExpireDue, Op::ClaimOrphans, Op::Prune] {
        store.fail(operation, When::Before, 1);
    }
    let working = tokio::spawn(agent.worker().run(CancellationToken::new()));
    accepting.submit(vec![Answer::with_handle(&asked, ResumeResponse::select(["approve"]))]).await.unwrap();
    let result = accepting.resume(&asked, ResumeResponse::select(["approve"])).await;
    let result = match result {
        Ok(result) => result,
        Err(_) => accepting.resume(&asked, ResumeResponse::select(["approve"])).await.unwrap(),
    };
    assert_eq!(data(result), json!({"decision": "approve"}));
    working.abort();
}

#[tokio::test]
async fn a_finished_run_is_kept_for_a_while_and_then_removed() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    agent.resume(&asked, ResumeResponse::select(["approve"])).await.unwrap();
    world.clock.advance(Duration::from_hours(23));
    assert_eq!(agent.worker().pass().await.unwrap().pruned, 0);
    assert_eq!(agent.resume(&asked, ResumeResponse::select(["approve"])).await.unwrap().status(), "completed");
    world.clock.advance(Duration::from_hours(2));
    assert!(agent.worker().pass().await.unwrap().pruned > 0);
    assert_eq!(code(agent.resume(&asked, ResumeResponse::select(["approve"])).await), FailureCode::NotFound);
}

#[tokio::test]
async fn settings_out_of_range_are_named() {
    let mut config = WorkerConfig::default();
    config.concurrency = 0;
    let error = World::new().builder().worker(config).build().await.unwrap_err();
    assert!(error.to_string().contains("concurrency"), "{error}");
    let error = World::new().builder().chat_buffer(0).build().await.unwrap_err();
    assert!(error.to_string().contains("chat buffer"), "{error}");
    let error = World::new().builder().lease_ttl(Duration::ZERO).build().await.unwrap_err();
    assert!(error.to_string().contains("lease"), "{error}");
}
