//! Drivers that die, stores that fail, code that does not fit: no answer is lost.

use std::time::Duration;

use kortyx_contracts::Text;
use kortyx_orchestrator::{Agent, Answer, OrchestratorError};
use kortyx_protocol::{ExecutionResult, Failure, FailureCode, ResumeResponse};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Workflow};
use serde_json::json;

use crate::world::{Gate, World, ask, code, data, handle, in_session, review, scope, settle, slow};
use kortyx_testkit::{Faulty, Op, When};

fn approve() -> ResumeResponse {
    ResumeResponse::select(["approve"])
}

async fn status(agent: &Agent, asked: &kortyx_protocol::ResumeHandle) -> &'static str {
    agent.get_run(&asked.run_id, &scope()).await.unwrap().unwrap().status.as_str()
}

/// Asks, does one thing that is counted, then one that takes time.
fn two_steps(first: &Gate, second: &Gate) -> Workflow {
    let (first, second) = (first.clone(), second.clone());
    let node = move |ctx: NodeContext| {
        let (first, second) = (first.clone(), second.clone());
        async move {
            let name = ctx.interrupt("name", Text::new("Name?")).await?;
            ctx.step("first", || async move { first.pass().await }).await?;
            ctx.step("second", || async move { second.pass().await }).await?;
            Ok(NodeOutput::new().data("name", &name))
        }
    };
    Workflow::builder("steps").node("both", node).build().unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_run_whose_process_dies_goes_on_elsewhere_with_its_answer_and_without_repeating_steps() {
    let (world, first, second) = (World::new(), Gate::new(), Gate::new());
    let workflow = two_steps(&first, &second);
    let process = runtime();
    let asked = process.block_on(async {
        let agent = world.agent(&workflow).await;
        let asked = handle(&ask(&agent, &workflow).await, "name");
        agent.submit(vec![Answer::with_handle(&asked, ResumeResponse::text("Ann"))]).await.unwrap();
        first.open();
        second.begun().await;
        asked
    });
    drop(process);

    runtime().block_on(async {
        let agent = world.agent(&workflow).await;
        let mut worker = agent.worker();
        assert_eq!(worker.pass().await.unwrap().recovered, 0, "the lease still holds");
        world.clock.advance(Duration::from_secs(31));
        assert_eq!(worker.pass().await.unwrap().recovered, 1);
        second.open();
        let result = agent.resume(&asked, ResumeResponse::text("Ann")).await.unwrap();
        assert_eq!(data(result), json!({"name": "Ann"}));
        assert_eq!((first.passed(), second.passed()), (1, 1));
        assert!(world.facts.take().contains(&"RunRecovered".to_owned()));
    });
}

#[tokio::test(start_paused = true)]
async fn a_run_that_another_process_took_over_is_left_to_it() {
    let (world, gate) = (World::new(), Gate::new());
    let workflow = slow(&gate);
    let (one, two) = (world.agent(&workflow).await, world.agent(&workflow).await);
    let run = tokio::spawn({
        let (one, workflow) = (one.clone(), workflow.clone());
        async move { one.execute(&workflow, json!({}), in_session()).await }
    });
    gate.begun().await;
    world.clock.advance(Duration::from_secs(31));
    assert_eq!(two.worker().pass().await.unwrap().recovered, 1);
    gate.begun().await;
    while one.driven_runs() > 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    gate.open();
    assert_eq!(data(run.await.unwrap().unwrap()), json!({"count": 1}), "the caller still gets the outcome");
}

#[tokio::test]
async fn nothing_is_announced_that_was_not_stored() {
    let (world, workflow) = (World::new(), review());
    let store = Faulty::over(world.store.clone());
    let agent = world.builder().shared_store(store.clone()).workflow(&workflow).build().await.unwrap();
    store.fail(Op::Suspend, When::Before, 1);
    let failure: Failure = agent.execute(&workflow, json!({}), in_session()).await.unwrap_err().into();
    assert_eq!((failure.code, failure.retryable), (FailureCode::PersistenceError, Some(true)));
    assert!(!failure.message.contains("hunter2"), "{failure}");
    assert!(world.facts.take().is_empty());
    let query = kortyx_store::InterruptQuery { scope: scope(), ..Default::default() };
    assert!(agent.list_interrupts(query).await.unwrap().interrupts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_accepted_answer_survives_a_store_that_fails_afterwards() {
    let (world, workflow) = (World::new(), review());
    let store = Faulty::over(world.store.clone());
    let agent = world.builder().shared_store(store.clone()).workflow(&workflow).build().await.unwrap();
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    store.fail(Op::Finish, When::Before, 1);
    assert_eq!(code(agent.resume(&asked, approve()).await), FailureCode::PersistenceError);
    let mut worker = agent.worker();
    assert_eq!(worker.pass().await.unwrap().recovered, 0, "it is held back for a moment");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(worker.pass().await.unwrap().recovered, 1);
    assert_eq!(data(agent.resume(&asked, approve()).await.unwrap()), json!({"decision": "approve"}));
}

#[tokio::test]
async fn a_step_that_cannot_be_stored_does_not_begin() {
    let (world, gate) = (World::new(), Gate::new());
    let workflow = slow(&gate);
    let store = Faulty::over(world.store.clone());
    let agent = world.builder().shared_store(store.clone()).workflow(&workflow).build().await.unwrap();
    store.fail(Op::Open, When::Before, 1);
    gate.open();
    assert_eq!(code(agent.execute(&workflow, json!({}), in_session()).await), FailureCode::PersistenceError);
    assert_eq!(gate.passed(), 0);
}

#[tokio::test]
async fn a_cycle_takes_four_calls_to_the_store() {
    let (world, workflow) = (World::new(), review());
    let store = Faulty::over(world.store.clone());
    let agent = world.builder().shared_store(store.clone()).workflow(&workflow).build().await.unwrap();
    store.take_calls();
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    agent.resume(&asked, approve()).await.unwrap();
    assert_eq!(store.take_calls(), [Op::Suspend, Op::Interrupt, Op::Answer, Op::Finish]);
}

#[tokio::test]
async fn the_ids_of_a_run_say_where_its_session_lives_if_the_store_does() {
    let workflow = review();
    for part in [kortyx_store::Placement::new(0x2af), kortyx_store::Placement::new(0), None] {
        let world = World::new();
        let store = Faulty::living_in(world.store.clone(), part);
        let agent = world.builder().shared_store(store).workflow(&workflow).build().await.unwrap();
        let mut parts = std::collections::HashSet::new();
        for _ in 0..20 {
            let asked = handle(&ask(&agent, &workflow).await, "approval");
            assert_eq!(asked.token.request_id().as_ref(), Some(&asked.request_id));
            for id in [asked.run_id.as_str(), asked.request_id.as_str()] {
                parts.insert(id[id.len() - 3..].to_owned());
            }
        }
        match part {
            Some(part) => assert_eq!(parts.into_iter().collect::<Vec<_>>(), [format!("{:03x}", part.number())]),
            None => assert!(parts.len() > 10, "{parts:?}"),
        }
    }
}

#[tokio::test]
async fn a_state_that_the_store_does_not_take_fails_the_run() {
    let mut world = World::new();
    world.store = std::sync::Arc::new(kortyx_memory::MemoryStore::builder().with_payload_limit(4096).build());
    let node = |ctx: NodeContext| async move {
        ctx.step("big", || async { Ok::<_, NodeError>("x".repeat(10_000)) }).await?;
        Ok(NodeOutput::new())
    };
    let workflow = Workflow::builder("big").node("big", node).build().unwrap();
    let agent = world.agent(&workflow).await;
    let result = agent.execute(&workflow, json!({}), in_session()).await.unwrap();
    let ExecutionResult::Failed { error, .. } = result else { panic!("{result:?}") };
    assert_eq!(error.code, FailureCode::PayloadTooLarge);
    assert_eq!(agent.worker().pass().await.unwrap().recovered, 0);
}

fn version(version: &str) -> Workflow {
    let node = |ctx: NodeContext| async move {
        let name = ctx.interrupt("name", Text::new("Name?")).await?;
        Ok(NodeOutput::new().data("name", &name))
    };
    Workflow::builder("greet").version(version).node("ask", node).build().unwrap()
}

#[tokio::test]
async fn b163_a_process_without_the_runs_version_leaves_it_to_one_that_has_it() {
    let world = World::new();
    let (old, new) = (world.agent(&version("1")).await, world.agent(&version("2")).await);
    let asked = handle(&ask(&old, &version("1")).await, "name");
    let failure: Failure = new.resume(&asked, ResumeResponse::text("Ann")).await.unwrap_err().into();
    assert_eq!(failure.code, FailureCode::WorkflowChanged);
    assert!(failure.message.contains("version `1` of the workflow `greet`"), "{failure}");
    assert_eq!(status(&old, &asked).await, "running");
    settle(&new).await;
    assert_eq!(new.worker().pass().await.unwrap().recovered, 0);
    assert_eq!(old.worker().pass().await.unwrap().recovered, 1);
    let result = old.resume(&asked, ResumeResponse::text("Ann")).await.unwrap();
    assert_eq!(data(result), json!({"name": "Ann"}));
}

#[tokio::test]
async fn b163_versions_side_by_side_go_on_with_their_own() {
    let world = World::new();
    let old = world.agent(&version("1")).await;
    let asked = handle(&ask(&old, &version("1")).await, "name");
    let both = world.builder().workflow(&version("1")).workflow(&version("2")).build().await.unwrap();
    assert_eq!(data(both.resume(&asked, ResumeResponse::text("Ann")).await.unwrap()), json!({"name": "Ann"}));
}

#[tokio::test]
async fn b162_a_changed_definition_sets_the_run_aside_and_keeps_the_answer() {
    let world = World::new();
    let first = world.agent(&version("1")).await;
    let asked = handle(&ask(&first, &version("1")).await, "name");
    let node = |_: NodeContext| async move { Ok(NodeOutput::new()) };
    let changed = Workflow::builder("greet").node("other", node).build().unwrap();
    let second = world.agent(&changed).await;
    world.facts.take();
    assert_eq!(code(second.resume(&asked, ResumeResponse::text("Ann")).await), FailureCode::WorkflowChanged);
    assert_eq!(world.facts.take(), ["InterruptResolved", "RunParked"]);
    assert_eq!(status(&first, &asked).await, "parked");

    world.clock.advance(Duration::from_secs(1));
    let third = world.agent(&version("1")).await;
    let mut worker = third.worker();
    assert_eq!(worker.pass().await.unwrap().recovered, 1);
    let result = third.resume(&asked, ResumeResponse::text("Ann")).await.unwrap();
    assert_eq!(data(result), json!({"name": "Ann"}));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_another_driver_has_by_then_is_not_set_aside() {
    let world = World::new();
    let first = world.agent(&version("1")).await;
    let asked = handle(&ask(&first, &version("1")).await, "name");
    let node = |_: NodeContext| async move { Ok(NodeOutput::new()) };
    let changed = Workflow::builder("greet").node("other", node).build().unwrap();
    let store = Faulty::over(world.store.clone());
    let second = world.builder().shared_store(store.clone()).workflow(&changed).build().await.unwrap();
    let parking = store.hold(Op::Park, When::Before);
    let resumed = tokio::spawn({
        let (second, asked) = (second.clone(), asked.clone());
        async move { second.resume(&asked, ResumeResponse::text("Ann")).await }
    });
    while store.calls(Op::Park) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.clock.advance(Duration::from_secs(31));
    assert_eq!(first.worker().pass().await.unwrap().recovered, 1);
    settle(&first).await;
    world.facts.take();

    parking.open();

    assert_eq!(data(resumed.await.unwrap().unwrap()), json!({"name": "Ann"}));
    assert_eq!(world.facts.take(), ["LeaseLost"]);
}

#[tokio::test]
async fn code_that_takes_another_way_sets_the_run_aside_once() {
    let world = World::new();
    let first = world.agent(&version("1")).await;
    let asked = handle(&ask(&first, &version("1")).await, "name");
    let node = |ctx: NodeContext| async move {
        ctx.interrupt("nickname", Text::new("Nickname?")).await?;
        Ok(NodeOutput::new())
    };
    let changed = Workflow::builder("greet").node("ask", node).build().unwrap();
    let second = world.agent(&changed).await;
    assert_eq!(code(second.resume(&asked, ResumeResponse::text("Ann")).await), FailureCode::ReplayDiverged);
    assert_eq!(
        code(second.resume(&asked, ResumeResponse::text("Ann")).await),
        FailureCode::ReplayDiverged,
        "as it stands"
    );
    world.clock.advance(Duration::from_secs(1));
    let mut worker = second.worker();
    assert_eq!(worker.pass().await.unwrap().recovered, 1, "once for each process that starts");
    settle(&second).await;
    assert_eq!(worker.pass().await.unwrap().recovered, 0);
    assert_eq!(status(&first, &asked).await, "parked");
}

#[tokio::test]
async fn an_agent_that_only_accepts_leaves_the_run_to_a_worker() {
    let (world, workflow) = (World::new(), review());
    let driving = world.agent(&workflow).await;
    let asked = handle(&ask(&driving, &workflow).await, "approval");
    let accepting = world.builder().accept_only().build().await.unwrap();
    let answer = || vec![Answer::with_handle(&asked, approve()).by("ann")];
    let wrong = Answer::with_handle(&asked, ResumeResponse::select(["banana"]));
    assert_eq!(code(accepting.submit(vec![wrong]).await), FailureCode::InvalidResponse, "it needs no code to judge");
    let accepted = accepting.submit(answer()).await.unwrap();
    assert!(!accepted.is_duplicate);
    assert_eq!(accepting.submit(answer()).await.unwrap().receipts, accepted.receipts);
    assert_eq!(status(&driving, &asked).await, "running");
    assert_eq!(accepting.worker().pass().await.unwrap().recovered, 0);
    assert_eq!(driving.worker().pass().await.unwrap().recovered, 1);
    let result = accepting.resume(&asked, approve()).await.unwrap();
    assert_eq!(data(result), json!({"decision": "approve"}), "it waits for whoever drives");
}

#[tokio::test(start_paused = true)]
async fn a_call_to_an_agent_that_only_accepts_waits_within_bounds() {
    let (world, workflow) = (World::new(), review());
    let driving = world.agent(&workflow).await;
    let asked = handle(&ask(&driving, &workflow).await, "approval");
    let accepting = world.builder().accept_only().build().await.unwrap();
    let error = accepting.resume(&asked, approve()).await.unwrap_err();
    assert!(matches!(&error, OrchestratorError::StillRunning(run_id) if *run_id == asked.run_id), "{error:?}");
    let failure: Failure = error.into();
    assert_eq!((failure.code, failure.retryable), (FailureCode::Conflict, Some(true)));
}
