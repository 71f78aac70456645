//! K11: what is kept grows with what happened, and goes when it may.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kortyx::{
    Agent, ExecuteOptions, NodeError, NodeOutput, Text, WorkerConfig, Workflow,
    protocol::{ResumeHandle, ResumeResponse},
    store::{AnswerOutcome, AnswerRequest, Drive, Driver, NewAnswer, Proof, Retention, RunStatus, Scope},
};
use kortyx_tests::{World, eventually, one_node, only, with};
use serde_json::json;

/// A turn of ten kilobytes, for ever.
fn talking() -> Workflow {
    Workflow::builder("talking")
        .unlimited_node_executions()
        .node("turn", |ctx| async move {
            let turns = ctx.workflow_state("turns", 0_u64);
            let draft = ctx.step("draft", || async { Ok::<_, NodeError>("x".repeat(10_000)) }).await?;
            ctx.interrupt("next", Text::new("And?")).await?;
            turns.set(&(turns.get()? + 1))?;
            Ok(NodeOutput::new().data("draft", &draft))
        })
        .edge("turn", "turn")
        .build()
        .unwrap()
}

/// The size of a waiting run's snapshot, as a driver is given it; the run is given up again.
async fn snapshot_size(world: &World, gate: &ResumeHandle) -> usize {
    let store = world.store().await;
    let answer = NewAnswer {
        request_id: gate.request_id.clone(),
        proof: Proof::Token(gate.token.clone()),
        session_id: None,
        run_id: None,
        answer: r#"{"text":"looking","type":"text"}"#.into(),
        cancel: false,
        actor: None,
    };
    let driver = Driver { id: "scales".into(), ttl: Duration::from_secs(30) };
    let request = AnswerRequest { answers: vec![answer], driver: Some(driver) };
    let AnswerOutcome::Accepted(_, Drive::Granted(claimed)) = store.answer(request).await.unwrap() else {
        panic!("it was not granted")
    };
    store.release(&claimed.lease).await.unwrap();
    claimed.snapshot.len()
}

/// Deltas would be finer; what counts is that a turn's journal goes with the turn, so nothing is copied from turn to turn.
#[tokio::test]
async fn b154_a_run_of_many_turns_keeps_one_turn_not_all() {
    let world = World::new();
    let workflow = talking();
    let agent = world.agent(&workflow).await;
    let mut sizes = Vec::new();
    for turns in [3, 100] {
        let mut result = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        for _ in 0..turns {
            result = agent.resume(&only(&result).resume, ResumeResponse::text("more")).await.unwrap();
        }
        sizes.push(snapshot_size(&world, &only(&result).resume).await);
    }
    assert!(sizes[0] < 40_000 && sizes[1] < sizes[0] + 1_000, "{sizes:?}");
}

fn retained(for_seconds: u64) -> WorkerConfig {
    let mut config = WorkerConfig::default();
    config.prune_every = Duration::ZERO;
    config.retention = Retention { finished_runs: Duration::from_secs(for_seconds), ..Retention::default() };
    config
}

#[tokio::test]
async fn b154_pruning_takes_what_is_over_and_leaves_what_waits() {
    let world = World::new();
    let workflow = one_node("ask", |ctx| async move {
        let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let builder = world.builder().await.workflow(&workflow).worker(retained(60));
    let agent = builder.question_ttl(Duration::from_hours(1_000)).build().await.unwrap();
    let pause = async || only(&agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap()).resume;
    let (waiting, over) = (pause().await, pause().await);
    agent.resume(&over, ResumeResponse::text("x")).await.unwrap();
    let status = async |gate: &ResumeHandle| {
        let run = agent.get_run(&gate.run_id, &Scope::session(gate.session_id.clone())).await.unwrap();
        run.map(|run| run.status)
    };

    let mut worker = agent.worker();
    assert_eq!(worker.pass().await.unwrap().pruned, 0);
    assert_eq!(status(&over).await, Some(RunStatus::Completed), "kept to serve those who repeat their answer");
    world.advance(Duration::from_hours(500));
    assert!(worker.pass().await.unwrap().pruned >= 1);
    assert_eq!((status(&over).await, status(&waiting).await), (None, Some(RunStatus::Suspended)));
    let store = world.store().await;
    assert!(store.interrupt(&over.request_id).await.unwrap().is_none(), "its question is gone with it");
    let result = agent.resume(&waiting, ResumeResponse::text("late but in time")).await.unwrap();
    assert_eq!(result.status(), "completed");
}

/// Counts the futures of nodes that are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn alive(count: &Arc<AtomicUsize>) -> Workflow {
    one_node(
        "alive",
        with(count.clone(), |ctx, count| async move {
            let _alive = Alive::new(&count);
            let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
            Ok(NodeOutput::new().data("answer", &answer))
        }),
    )
}

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

async fn settled(agent: &Agent, tasks_before: usize) {
    eventually("every task ends", || async { agent.driven_runs() == 0 && tasks() <= tasks_before }).await;
}

#[tokio::test]
async fn b155_a_paused_run_holds_no_task_and_no_future() {
    let world = World::new();
    let count = Arc::new(AtomicUsize::new(0));
    let workflow = alive(&count);
    let agent = world.agent(&workflow).await;
    agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    settled(&agent, usize::MAX).await;
    let before = tasks();
    for _ in 0..300 {
        agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    }
    settled(&agent, before).await;
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn b155_runs_that_ended_by_an_answer_leave_nothing_in_the_agent() {
    let world = World::new();
    let count = Arc::new(AtomicUsize::new(0));
    let workflow = alive(&count);
    let agent = world.agent(&workflow).await;
    settled(&agent, usize::MAX).await;
    let before = tasks();
    for round in 0..300 {
        let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        let gate = only(&paused).resume;
        match round % 3 {
            0 => drop(agent.resume(&gate, ResumeResponse::text("x")).await.unwrap()),
            1 => drop(agent.resume(&gate, ResumeResponse::Cancel).await.unwrap()),
            _ => drop(agent.resume(&gate, ResumeResponse::value(json!(1))).await.unwrap_err()),
        }
    }
    settled(&agent, before).await;
    assert_eq!(count.load(Ordering::SeqCst), 0);
}
