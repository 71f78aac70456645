//! What is under test.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use kortyx_orchestrator::{Agent, AgentBuilder, OrchestratorError};
use kortyx_protocol::{ExecutionResult, InterruptInput, ResumeResponse, StreamChunk};
use kortyx_store::{InterruptRecord, RunRecord, Scope, Store};
use serde_json::Value;

use crate::{BoxError, Log};

/// A store and workflows that are put to the test, as every process of a harness uses them.
///
/// The harness and the processes that it starts each make their own from the same code, so what one of them holds in
/// memory the others do not see. What they share is the place of their runs and the [`Log`].
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    /// Names a new, empty place for runs that every process can [open](Self::open): a file in this directory, which
    /// goes with the world, or a prefix or schema of a server. Called once for each world.
    fn place(&self, directory: &Path) -> Result<String, BoxError>;

    /// Opens the store at a place, as one more process does. Its clock is to be ahead of the real one by this time, which
    /// is zero unless a harness was told that clocks can be ahead.
    async fn open(&self, place: &str, ahead: Duration) -> Result<Arc<dyn Store>, BoxError>;

    /// Registers the workflows. Whatever they do to the outside world they do through [`Log::effect`].
    fn agent(&self, builder: AgentBuilder, log: &Log) -> Result<AgentBuilder, BoxError>;

    /// Begins a run and waits until it asks or ends. The number tells runs apart, for subjects that mind.
    async fn begin(&self, agent: &Agent, number: u64) -> Result<ExecutionResult, OrchestratorError>;

    /// A scope that every run lies in.
    fn scope(&self) -> Scope;

    /// The answer to a question that carries this text, which is different each time. A text by default.
    fn answer(&self, question: &InterruptInput, text: &str) -> ResumeResponse {
        let _ = question;
        ResumeResponse::text(text)
    }

    /// Says what is wrong with a run that ended well, for example that its output does not hold what was answered. Nothing by
    /// default.
    fn verify(&self, run: &EndedRun) -> Result<(), String> {
        let _ = run;
        Ok(())
    }

    /// Names what storage still holds at a place after everything has ended and was removed. Nothing by default: then the
    /// harness only asks the store.
    async fn leftovers(&self, place: &str) -> Result<Vec<String>, BoxError> {
        let _ = place;
        Ok(Vec::new())
    }
}

/// A run that has ended well, as a [`Subject`] verifies it.
#[derive(Debug)]
#[non_exhaustive]
pub struct EndedRun {
    /// The run.
    pub record: RunRecord,
    /// Its output.
    pub data: Value,
    /// Its questions that were answered, in the order of their answers.
    pub questions: Vec<InterruptRecord>,
    /// The names of its effects.
    pub effects: BTreeSet<String>,
    /// What was [noted](Log::note) of it, in order, by whatever processes.
    pub notes: Vec<String>,
    /// What it said, in order.
    pub said: Vec<StreamChunk>,
}
