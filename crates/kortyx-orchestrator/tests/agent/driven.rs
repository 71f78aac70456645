//! Runs that are being driven while something happens to them.

use kortyx_protocol::{ExecutionResult, FailureCode, ResumeResponse};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use kortyx_store::{CancelOutcome, CancelTarget, Scope};
use serde_json::json;

use crate::world::{Gate, World, busy, code, data, in_session, scope, slow};

fn begun(agent: &kortyx_orchestrator::Agent, workflow: &Workflow) -> tokio::task::JoinHandle<ExecutionResult> {
    let (agent, workflow) = (agent.clone(), workflow.clone());
    tokio::spawn(async move { agent.execute(&workflow, json!({}), in_session()).await.unwrap() })
}

/// Waits for the question that is published while the run goes on.
async fn published(agent: &kortyx_orchestrator::Agent) -> kortyx_orchestrator::Interrupt {
    loop {
        let query = kortyx_store::InterruptQuery { scope: scope(), ..Default::default() };
        if let Some(interrupt) = agent.list_interrupts(query).await.unwrap().interrupts.pop() {
            return interrupt;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn b048_a_question_is_answered_while_a_long_step_runs_once() {
    let gate = Gate::new();
    let workflow = busy(&gate);
    let agent = World::new().agent(&workflow).await;
    let run = begun(&agent, &workflow);
    gate.begun().await;
    let question = published(&agent).await;
    let answer = agent.resume(question.handle(), ResumeResponse::text("Ann"));
    let release = async {
        // The answer is accepted while the step is under way.
        while agent.get_interrupt(&question.id, &scope()).await.unwrap().unwrap().status.as_str() == "pending" {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        gate.open();
    };
    let (result, ()) = tokio::join!(answer, release);
    assert_eq!(data(result.unwrap()), json!({"name": "Ann", "count": 1}));
    assert_eq!(data(run.await.unwrap()), json!({"name": "Ann", "count": 1}));
    assert_eq!(gate.passed(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_through_another_agent_reaches_the_driver() {
    let (gate, world) = (Gate::new(), World::new());
    let workflow = busy(&gate);
    let (driver, other) = (world.agent(&workflow).await, world.agent(&workflow).await);
    let run = begun(&driver, &workflow);
    gate.begun().await;
    let question = published(&other).await;
    gate.open();
    let answered = other.resume(question.handle(), ResumeResponse::text("Ann")).await.unwrap();
    assert_eq!(data(answered), json!({"name": "Ann", "count": 1}));
    let first = run.await.unwrap();
    assert!(["completed", "suspended"].contains(&first.status()), "{first:?}");
    assert_eq!(gate.passed(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_too_long_is_reported_as_under_way() {
    let (gate, world) = (Gate::new(), World::new());
    let workflow = busy(&gate);
    let agent = world.agent(&workflow).await;
    let run = begun(&agent, &workflow);
    gate.begun().await;
    let question = published(&agent).await;
    let error = agent.resume(question.handle(), ResumeResponse::text("Ann")).await.unwrap_err();
    assert!(matches!(error, kortyx_orchestrator::OrchestratorError::StillRunning(_)), "{error:?}");
    gate.open();
    assert_eq!(data(run.await.unwrap()), json!({"name": "Ann", "count": 1}), "the answer was kept");
}

#[tokio::test(start_paused = true)]
async fn a_driven_run_is_asked_to_stop_and_keeps_the_reason() {
    let (gate, world) = (Gate::new(), World::new());
    let workflow = slow(&gate);
    let agent = world.agent(&workflow).await;
    let run = begun(&agent, &workflow);
    gate.begun().await;
    let outcomes = agent.cancel(CancelTarget::Session(crate::world::session()), scope(), Some("enough".into())).await;
    assert!(matches!(outcomes.unwrap()[..], [CancelOutcome::Requested(_)]));
    let ExecutionResult::Cancelled { reason, .. } = run.await.unwrap() else { panic!("not cancelled") };
    assert_eq!(reason.as_deref(), Some("enough"));
    assert_eq!(gate.passed(), 0);
}

#[tokio::test]
async fn b167_a_waiting_run_is_cancelled_at_once_with_its_questions() {
    let (world, workflow) = (World::new(), crate::world::pair());
    let agent = world.agent(&workflow).await;
    let asked = crate::world::ask(&agent, &workflow).await;
    world.facts.take();
    let outcomes = agent.cancel(CancelTarget::Run(asked.run_id().clone()), scope(), None).await.unwrap();
    assert!(matches!(outcomes[..], [CancelOutcome::Cancelled(_)]));
    let run = agent.get_run(asked.run_id(), &scope()).await.unwrap().unwrap();
    assert_eq!(run.status.as_str(), "cancelled");
    assert_eq!(world.facts.take(), ["InterruptCancelled", "InterruptCancelled", "RunFinished"]);
    let again = agent.cancel(CancelTarget::Run(asked.run_id().clone()), scope(), None).await.unwrap();
    assert!(matches!(again[..], [CancelOutcome::Ended(..)]));
    assert_eq!(
        code(agent.cancel(CancelTarget::Run(asked.run_id().clone()), Scope::default(), None).await),
        FailureCode::ScopeRequired
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_run_keeps_its_lease() {
    let (gate, world) = (Gate::new(), World::new());
    let workflow = slow(&gate);
    let agent = world.agent(&workflow).await;
    let run = begun(&agent, &workflow);
    gate.begun().await;
    let mut thief = world.agent(&workflow).await.worker();
    for _ in 0..20 {
        world.clock.advance(std::time::Duration::from_secs(8));
        tokio::time::sleep(std::time::Duration::from_secs(11)).await;
        assert_eq!(thief.pass().await.unwrap().recovered, 0);
    }
    gate.open();
    assert_eq!(data(run.await.unwrap()), json!({"count": 1}));
}

#[tokio::test(start_paused = true)]
async fn b168_a_session_is_cancelled_with_runs_that_the_store_does_not_know_yet() {
    let world = World::new();
    let node = |ctx: NodeContext| async move {
        ctx.cancelled().cancelled().await;
        Ok(NodeOutput::new())
    };
    let workflow = Workflow::builder("idle").node("idle", node).build().unwrap();
    let agent = world.agent(&workflow).await;
    let run = begun(&agent, &workflow);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let elsewhere = Scope::session("session-2".parse().unwrap());
    let target = || CancelTarget::Session(crate::world::session());
    assert!(agent.cancel(target(), elsewhere, None).await.unwrap().is_empty());
    let outcomes = agent.cancel(target(), scope(), Some("enough".into())).await.unwrap();
    assert!(matches!(outcomes[..], [CancelOutcome::Requested(_)]), "{outcomes:?}");
    let ExecutionResult::Cancelled { reason, .. } = run.await.unwrap() else { panic!("not cancelled") };
    assert_eq!(reason.as_deref(), Some("enough"));
}

#[tokio::test]
async fn a_caller_that_goes_away_while_it_answers_leaves_a_run_that_goes_on() {
    let node = |ctx: NodeContext| async move {
        let decision = ctx.interrupt("approval", crate::world::decision()).await?;
        // The caller goes away here.
        tokio::task::yield_now().await;
        Ok(NodeOutput::new().data("decision", &decision))
    };
    let (world, workflow) = (World::new(), Workflow::builder("review").node("approval", node).build().unwrap());
    let agent = world.agent(&workflow).await;
    let asked = crate::world::handle(&crate::world::ask(&agent, &workflow).await, "approval");
    let mut call = Box::pin(agent.resume(&asked, ResumeResponse::select(["approve"])));
    assert!(futures_util::poll!(call.as_mut()).is_pending());
    drop(call);
    while agent.get_run(&asked.run_id, &scope()).await.unwrap().unwrap().status.as_str() != "completed" {
        tokio::task::yield_now().await;
    }
}
