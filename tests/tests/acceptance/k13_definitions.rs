//! K13: code that changed while a run waits is told so, or left alone.

use std::time::Duration;

use kortyx::{
    Agent, ExecuteOptions, NodeOutput, OrchestratorError, Text, WorkerConfig, Workflow,
    protocol::{Failure, FailureCode, RawJson, ResumeHandle, ResumeResponse},
    store::{RunStatus, Scope},
};
use kortyx_tests::{Counter, World, approve_or_decline, data, eventually, one_node, only, with};
use serde_json::{Value, json};

/// A gate before an action; `extra` puts another node between them.
fn gated(version: &str, acts: &Counter, extra: bool) -> Workflow {
    let version_of = version.to_owned();
    let builder = Workflow::builder("gated")
        .version(version)
        .node("gate", |ctx: kortyx::NodeContext| async move {
            let decision = ctx.interrupt("gate", approve_or_decline("Act?")).await?;
            Ok(NodeOutput::new().data("decision", &decision))
        })
        .node(
            "act",
            with((acts.clone(), version_of), |_, (acts, version)| async move {
                acts.hit();
                Ok(NodeOutput::new().data("version", &version))
            }),
        );
    let builder = if extra {
        builder.node("extra", |_| async { Ok(NodeOutput::new()) }).edge("gate", "extra").edge("extra", "act")
    } else {
        builder.edge("gate", "act")
    };
    builder.build().unwrap()
}

async fn paused_on(world: &World, workflow: &Workflow) -> ResumeHandle {
    let agent = world.agent(workflow).await;
    only(&agent.execute(workflow, json!({}), ExecuteOptions::new()).await.unwrap()).resume
}

async fn status(agent: &Agent, gate: &ResumeHandle) -> RunStatus {
    let scope = Scope::session(gate.session_id.clone());
    agent.get_run(&gate.run_id, &scope).await.unwrap().unwrap().status
}

fn set_aside(outcome: Result<kortyx::protocol::ExecutionResult, OrchestratorError>) -> Failure {
    match outcome {
        Err(OrchestratorError::SetAside(failure)) => failure,
        other => panic!("it was not set aside: {other:?}"),
    }
}

#[tokio::test]
async fn b162_an_approval_is_not_used_for_a_definition_that_was_rewritten() {
    let world = World::new();
    let acts = Counter::new();
    let (old, rewritten) = (gated("1", &acts, false), gated("1", &acts, true));
    let gate = paused_on(&world, &old).await;
    let approve = ResumeResponse::select(["approve"]);

    let newer = world.agent(&rewritten).await;
    let why = set_aside(newer.resume(&gate, approve.clone()).await);
    assert_eq!(why.code, FailureCode::WorkflowChanged);
    assert!(why.message.contains("`gated`") && why.message.contains("another definition"), "{}", why.message);
    assert_eq!((acts.count(), status(&newer, &gate).await), (0, RunStatus::Parked));
    let again = set_aside(newer.resume(&gate, approve.clone()).await);
    assert_eq!((again.code, acts.count()), (FailureCode::WorkflowChanged, 0), "the answer is kept, and still unused");

    // The way on: the definition that was approved.
    world.advance(Duration::from_millis(1));
    let older = Agent::builder().shared_store(world.store().await).workflow(&old).worker(WorkerConfig::default());
    let older = older.build().await.unwrap();
    eventually("the run goes on", || async { status(&older, &gate).await == RunStatus::Completed }).await;
    assert_eq!(acts.count(), 1);
    older.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn b163_a_paused_run_ends_on_its_own_version_beside_a_newer_one() {
    let world = World::new();
    let acts = Counter::new();
    let (one, two) = (gated("1", &acts, false), gated("2", &acts, true));
    let gate = paused_on(&world, &one).await;
    let both = world.builder().await.workflow(&one).workflow(&two).build().await.unwrap();
    let result = both.resume(&gate, ResumeResponse::select(["approve"])).await.unwrap();
    assert_eq!(data(result)["version"], "1");
    let fresh = both.execute_by_id("gated", None, RawJson::null(), ExecuteOptions::new()).await.unwrap();
    let result = both.resume(&only(&fresh).resume, ResumeResponse::select(["approve"])).await.unwrap();
    assert_eq!(data(result)["version"], "2");
}

#[tokio::test]
async fn b163_without_its_version_a_run_is_left_alone_with_its_answer() {
    let world = World::new();
    let acts = Counter::new();
    let (one, two) = (gated("1", &acts, false), gated("2", &acts, true));
    let gate = paused_on(&world, &one).await;
    let approve = ResumeResponse::select(["approve"]);

    let only_new = world.agent(&two).await;
    let why = set_aside(only_new.resume(&gate, approve.clone()).await);
    assert_eq!(why.code, FailureCode::WorkflowChanged);
    assert!(why.message.contains("version `1`"), "{}", why.message);
    assert_eq!(acts.count(), 0);
    let kept = world.store().await.interrupt(&gate.request_id).await.unwrap().unwrap();
    assert!(kept.answer.is_some());

    let old = world.agent(&one).await;
    world.advance(Duration::from_millis(1));
    old.worker().pass().await.unwrap();
    eventually("the old version goes on", || async { status(&old, &gate).await == RunStatus::Completed }).await;
    let result = old.resume(&gate, approve).await.unwrap();
    assert_eq!((data(result)["version"].as_str(), acts.count()), (Some("1"), 1));
}

/// A parent that calls a child, with a step before it that must not run twice.
fn calling(child: &Workflow, began: &Counter) -> Workflow {
    one_node(
        "parent",
        with((child.clone(), began.clone()), |ctx, (child, began)| async move {
            began.hit();
            let output: Value = ctx.call("child", &child, json!({})).await?;
            Ok(NodeOutput::new().data("child", &output))
        }),
    )
}

#[tokio::test]
async fn b166_a_child_that_is_gone_at_resume_is_noticed_before_any_code_runs() {
    let world = World::new();
    let began = Counter::new();
    let child = one_node("child", |ctx| async move {
        let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let parent = calling(&child, &began);
    let complete = world.builder().await.workflow(&child).workflow(&parent).build().await.unwrap();
    let paused = complete.execute(&parent, json!({}), ExecuteOptions::new()).await.unwrap();
    let gate = only(&paused).resume;
    let entered = began.count();

    let without = world.agent(&parent).await;
    let why = set_aside(without.resume(&gate, ResumeResponse::text("yes")).await);
    assert_eq!(why.code, FailureCode::WorkflowChanged);
    assert!(why.message.contains("`child`"), "{}", why.message);
    assert_eq!(began.count(), entered, "early, not in mid-run");

    world.advance(Duration::from_millis(1));
    complete.worker().pass().await.unwrap();
    eventually("a complete process goes on", || async { status(&complete, &gate).await == RunStatus::Completed }).await;
    let result = complete.resume(&gate, ResumeResponse::text("yes")).await.unwrap();
    assert_eq!(data(result)["child"]["answer"], "yes");
}

#[tokio::test]
async fn b166_code_that_was_never_registered_is_refused_before_it_runs() {
    let world = World::new();
    let began = Counter::new();
    let child = one_node("child", |_| async { Ok(NodeOutput::new()) });
    let parent = calling(&child, &began);
    let agent = world.agent(&child).await;
    let refused = agent.execute(&parent, json!({}), ExecuteOptions::new()).await;
    assert_eq!(kortyx_tests::code(refused), FailureCode::UnknownWorkflow);
    assert_eq!(began.count(), 0);
}
