//! What the tests share: an agent, its store, its clock, its facts, and small workflows.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kortyx_contracts::{AskExt, Choice, Text};
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, AgentBuilder, ExecuteOptions, Fact, TelemetrySink};
use kortyx_protocol::{ExecutionResult, Failure, FailureCode, PendingQuestion, ResumeHandle, SessionId, Timestamp};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use kortyx_store::{ManualClock, Scope, Store};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

pub(crate) const SESSION: &str = "session-1";

/// The facts that an agent told.
#[derive(Clone, Default)]
pub(crate) struct Facts(Arc<Mutex<Vec<Fact>>>);

impl TelemetrySink for Facts {
    fn record(&self, fact: &Fact) {
        self.0.lock().unwrap().push(fact.clone());
    }
}

impl Facts {
    pub(crate) fn all(&self) -> Vec<Fact> {
        self.0.lock().unwrap().clone()
    }

    /// The names of the facts so far, which are then forgotten. Without those of every drive, its beginning and its pause.
    pub(crate) fn take(&self) -> Vec<String> {
        let facts = std::mem::take(&mut *self.0.lock().unwrap());
        let names = facts.iter().map(|fact| format!("{fact:?}").split(' ').next().unwrap_or_default().to_owned());
        names.filter(|name| !["RunStarted", "RunResumed", "RunSuspended", "RunResponded"].contains(&&**name)).collect()
    }
}

/// A store in memory with a clock of its own.
pub(crate) struct World {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) facts: Facts,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_767_225_600_000)));
        let store = Arc::new(MemoryStore::builder().with_clock(clock.clone()).build());
        Self { store, clock, facts: Facts::default() }
    }

    /// An agent without a worker, on this store.
    pub(crate) fn builder(&self) -> AgentBuilder {
        let store: Arc<dyn Store> = self.store.clone();
        Agent::builder().shared_store(store).telemetry(self.facts.clone()).without_worker()
    }

    pub(crate) async fn agent<I, O>(&self, workflow: &Workflow<I, O>) -> Agent {
        self.builder().workflow(workflow).build().await.unwrap()
    }
}

pub(crate) fn session() -> SessionId {
    SessionId::new(SESSION).unwrap()
}

pub(crate) fn scope() -> Scope {
    Scope::session(session())
}

pub(crate) fn in_session() -> ExecuteOptions {
    ExecuteOptions::new().session(session())
}

/// Asks for a decision and ends with it.
pub(crate) fn review() -> Workflow {
    Workflow::builder("review").node("approval", approval).build().unwrap()
}

async fn approval(ctx: NodeContext) -> NodeResult {
    let decision = ctx.interrupt("approval", decision()).await?;
    ctx.message(format!("You chose {decision}.")).await;
    Ok(NodeOutput::new().data("decision", &decision))
}

pub(crate) fn decision() -> Choice {
    Choice::new("Approve this draft?").option("approve", "Approve").option("revise", "Revise")
}

/// Asks `a` and `b` at once and ends with both answers.
pub(crate) fn pair() -> Workflow {
    let node = |ctx: NodeContext| async move {
        let (a, b) = tokio::join!(ctx.interrupt("a", Text::new("A?")), ctx.interrupt("b", Text::new("B?")));
        Ok(NodeOutput::new().data("a", &a?).data("b", &b?))
    };
    Workflow::builder("pair").node("both", node).build().unwrap()
}

/// Asks for a text that may be cancelled, for a minute, with a default.
pub(crate) fn lenient() -> Workflow {
    let node = |ctx: NodeContext| async move {
        let ask = Text::new("Name?").default_on_expiry("nobody".to_owned()).expires_in(Duration::from_mins(1));
        let name = ctx.interrupt("name", ask.optional_cancel()).await?;
        Ok(NodeOutput::new().data("name", &name))
    };
    Workflow::builder("lenient").node("name", node).build().unwrap()
}

/// The open questions of a suspended run.
pub(crate) fn open(result: &ExecutionResult) -> &[PendingQuestion] {
    assert_eq!(result.status(), "suspended", "{result:?}");
    result.interrupts()
}

/// What answers the question that the author named so.
pub(crate) fn handle(result: &ExecutionResult, id: &str) -> ResumeHandle {
    let named = open(result).iter().find(|question| question.input.id.as_deref() == Some(id));
    named.unwrap_or_else(|| panic!("no open question `{id}`: {result:?}")).resume.clone()
}

/// The output of a completed run.
pub(crate) fn data(result: ExecutionResult) -> Value {
    match result {
        ExecutionResult::Completed { data, .. } => data,
        other => panic!("not completed: {other:?}"),
    }
}

/// Runs a workflow up to its first question.
pub(crate) async fn ask(agent: &Agent, workflow: &Workflow) -> ExecutionResult {
    agent.execute(workflow, json!({}), in_session()).await.unwrap()
}

/// The code of a refusal.
pub(crate) fn code<T: std::fmt::Debug, E: Into<Failure>>(outcome: Result<T, E>) -> FailureCode {
    match outcome {
        Err(error) => error.into().code,
        Ok(value) => panic!("not refused: {value:?}"),
    }
}

/// A step that takes as long as the test wants, and counts how often it ran.
#[derive(Clone)]
pub(crate) struct Gate(Arc<(Semaphore, Semaphore, AtomicUsize)>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new((Semaphore::new(0), Semaphore::new(0), AtomicUsize::new(0))))
    }

    /// What the step does.
    pub(crate) async fn pass(&self) -> Result<usize, NodeError> {
        self.0.1.add_permits(1);
        self.0.0.acquire().await.unwrap().forget();
        Ok(self.0.2.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Waits until the step has begun once more.
    pub(crate) async fn begun(&self) {
        self.0.1.acquire().await.unwrap().forget();
    }

    /// Lets the step end once.
    pub(crate) fn open(&self) {
        self.0.0.add_permits(1);
    }

    pub(crate) fn passed(&self) -> usize {
        self.0.2.load(Ordering::SeqCst)
    }
}

/// Does something that takes time, and asks nothing.
pub(crate) fn slow(gate: &Gate) -> Workflow {
    let gate = gate.clone();
    let node = move |ctx: NodeContext| {
        let gate = gate.clone();
        async move {
            let count = ctx.step("wait", || async move { gate.pass().await }).await?;
            Ok(NodeOutput::new().data("count", &count))
        }
    };
    Workflow::builder("slow").node("wait", node).build().unwrap()
}

/// Asks on one branch while something takes time on another; ends with both outcomes.
pub(crate) fn busy(gate: &Gate) -> Workflow {
    let gate = gate.clone();
    let ask = |ctx: NodeContext| async move {
        let name = ctx.interrupt("name", Text::new("Name?")).await?;
        Ok(NodeOutput::new().data("name", &name))
    };
    let work = move |ctx: NodeContext| {
        let gate = gate.clone();
        async move {
            let count = ctx.step("wait", || async move { gate.pass().await }).await?;
            Ok(NodeOutput::new().data("count", &count))
        }
    };
    let fork = |_: NodeContext| async move { Ok(NodeOutput::new()) };
    let workflow = Workflow::builder("busy").node("fork", fork).node("ask", ask).node("work", work);
    workflow.edge("fork", "ask").edge("fork", "work").build().unwrap()
}

/// Lets every task do what it can now.
pub(crate) async fn settle(agent: &Agent) {
    while agent.driven_runs() > 0 {
        tokio::task::yield_now().await;
    }
}
