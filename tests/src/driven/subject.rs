//! The subject: the workflows of this folder on the store of the lane, or on another one.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use kortyx::{
    Agent, AgentBuilder, ExecuteOptions, OrchestratorError,
    protocol::{ExecutionResult, InterruptInput, InterruptKind, RawJson, ResumeResponse, SessionId},
    store::{Scalar, Scope, Store},
};
use kortyx_testkit::{BoxError, EndedRun, Log, Subject};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Flows, leftovers, reasoning, verdict};
use crate::place::{Place, Time};

/// What every run's context holds.
const MARK: (&str, &str) = ("suite", "driven");

/// The workflows of this folder, and where their runs are stored.
pub struct Driven {
    /// What a process begins is said where its place is: its program is the same for every workflow.
    flow: Mutex<Flow>,
    place: Box<dyn Fn(&Path) -> Place + Send + Sync>,
}

/// Which workflow runs are begun of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flow {
    /// Every kind of durable point.
    Rich,
    /// As many questions, one after the other, each with a step.
    Asking(usize),
    /// A response that ends before the work, and a question after it.
    Background,
    /// A model that calls three tools, one of which is approved, asks a question and streams.
    Reasoning,
}

impl Flow {
    /// The workflow's id.
    fn workflow(self) -> &'static str {
        match self {
            Self::Rich => "rich",
            Self::Asking(_) => "asking",
            Self::Background => "background",
            Self::Reasoning => "reasoning",
        }
    }
}

impl Driven {
    /// How many sessions the runs lie in, so that a Redis Cluster has them in different slots.
    pub const SESSIONS: u64 = 8;

    /// The session of the run with this number.
    pub fn session(number: u64) -> SessionId {
        SessionId::new(format!("driven-{}", number % Self::SESSIONS)).unwrap()
    }

    /// Rich runs, each world in a place that this makes.
    pub fn at(place: impl Fn(&Path) -> Place + Send + Sync + 'static) -> Self {
        Self { flow: Mutex::new(Flow::Rich), place: Box::new(place) }
    }

    /// Rich runs, wherever the harness says; and a file where nobody says.
    pub fn anywhere() -> Self {
        Self::at(|directory| Place::Sqlite { path: directory.join("kortyx.db"), is_synced: true })
    }

    /// Runs of another workflow.
    #[must_use]
    pub fn of(self, flow: Flow) -> Self {
        Self { flow: Mutex::new(flow), ..self }
    }

    fn flow(&self) -> Flow {
        *self.flow.lock().unwrap()
    }

    /// The options of a run: its session and the mark in its context.
    pub fn options(number: u64) -> ExecuteOptions {
        ExecuteOptions::new().session(Self::session(number)).context(MARK.0, MARK.1)
    }

    /// The scope of every run.
    pub fn scope() -> Scope {
        Scope::default().with(MARK.0, Scalar::Text(MARK.1.into()))
    }

    /// The answer to a question that carries this text.
    pub fn answer_to(question: &InterruptInput, text: &str) -> ResumeResponse {
        match (question.kind, question.contract.as_deref()) {
            (InterruptKind::Custom, Some("tool_approval")) => ResumeResponse::value(json!({"decision": "approve"})),
            (InterruptKind::Custom, _) => ResumeResponse::value(json!({ "answer": text })),
            _ => ResumeResponse::text(text),
        }
    }
}

#[async_trait]
impl Subject for Driven {
    fn place(&self, directory: &Path) -> Result<String, BoxError> {
        Ok(serde_json::to_string(&(self.flow(), (self.place)(directory)))?)
    }

    async fn open(&self, place: &str, ahead: Duration) -> Result<Arc<dyn Store>, BoxError> {
        let (flow, place): (Flow, Place) = serde_json::from_str(place)?;
        *self.flow.lock().unwrap() = flow;
        Ok(place.open(&Time::ahead(ahead)).await?)
    }

    fn agent(&self, builder: AgentBuilder, log: &Log) -> Result<AgentBuilder, BoxError> {
        let flows = Flows::new(log)?;
        let builder = builder.workflow(&reasoning::workflow(log)?);
        let builder = builder.workflow(&flows.rich).workflow(&flows.child).workflow(&flows.asking);
        Ok(builder.workflow(&flows.crowd).workflow(&flows.background))
    }

    async fn begin(&self, agent: &Agent, number: u64) -> Result<ExecutionResult, OrchestratorError> {
        let flow = self.flow();
        let input = if let Flow::Asking(times) = flow { json!(times) } else { json!({}) };
        let input = RawJson::of(&input).map_err(|error| OrchestratorError::InvalidRequest(error.to_string()))?;
        agent.execute_by_id(flow.workflow(), None, input, Self::options(number)).await
    }

    fn scope(&self) -> Scope {
        Self::scope()
    }

    fn answer(&self, question: &InterruptInput, text: &str) -> ResumeResponse {
        Self::answer_to(question, text)
    }

    fn verify(&self, run: &EndedRun) -> Result<(), String> {
        let (id, flow) = (&*run.record.workflow.id, self.flow());
        // Others may be begun beside those.
        if matches!(flow, Flow::Background | Flow::Reasoning) && id != flow.workflow() {
            return Err(format!("it is a run of `{id}`"));
        }
        match id {
            "rich" => verdict::rich(run),
            "asking" => verdict::asking(run),
            "background" => verdict::background(run),
            "reasoning" => reasoning::verdict(run),
            _ => Ok(()),
        }
    }

    async fn leftovers(&self, place: &str) -> Result<Vec<String>, BoxError> {
        let (_, place): (Flow, Place) = serde_json::from_str(place)?;
        leftovers::of(&place).await
    }
}
