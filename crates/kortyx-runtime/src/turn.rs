//! What begins a turn of a run, and what one leads to.

use std::{collections::BTreeMap, sync::Arc};

use kortyx_contracts::Question;
use kortyx_protocol::{ChatMessage, Failure, RawJson, ResumeResponse, RunId, SessionId};

use crate::{
    Allowances,
    io::RecordError,
    state::Asked,
    trace::TurnState,
    workflow::{Definition, DefinitionPin},
};

/// Which run it is.
#[derive(Debug, Clone)]
pub struct RunInfo {
    /// The run.
    pub run_id: RunId,
    /// The session that it belongs to.
    pub session_id: SessionId,
}

/// A run to begin.
#[derive(Debug, Clone)]
pub struct Start {
    /// Which run.
    pub run: RunInfo,
    /// Its workflow.
    pub workflow: Arc<Definition>,
    /// Its input; checked against the workflow's schema.
    pub input: RawJson,
    /// Data to begin with.
    pub data: BTreeMap<String, RawJson>,
    /// Workflow state to begin with.
    pub workflow_state: BTreeMap<String, RawJson>,
    /// The request context, an object or null.
    pub context: RawJson,
    /// Earlier messages of the conversation.
    pub history: Vec<ChatMessage>,
    /// Whether the run tells what a session keeps of each of its turns ([`Suspension::turn`], [`Ending::turn`]), through every
    /// pause and recovery.
    pub tracked: bool,
    /// How much the run may use before it asks whether to go on. Where nothing is said its workflow counts, then the engine.
    pub limits: Allowances,
}

impl Start {
    /// A run without data, state, context or history, not tracked.
    pub fn new(run: RunInfo, workflow: Arc<Definition>, input: RawJson) -> Self {
        let (data, workflow_state, history) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let (context, limits) = (RawJson::null(), Allowances::new());
        Self { run, workflow, input, data, workflow_state, context, history, tracked: false, limits }
    }
}

/// A run to go on with.
#[derive(Debug, Clone)]
pub struct Restore<'a> {
    /// Which run.
    pub run: RunInfo,
    /// Its last snapshot.
    pub snapshot: &'a [u8],
    /// Entries recorded after the snapshot, oldest first.
    pub entries: &'a [&'a [u8]],
    /// Answers that the snapshot does not hold, in the order of their acceptance.
    pub answers: Vec<DeliveredAnswer>,
}

/// An accepted answer, or the default of a question whose time ran out.
#[derive(Debug, Clone)]
pub struct DeliveredAnswer {
    /// Its number among the run's answers, from 1.
    pub seq: u64,
    /// [`OpenQuestion::ask`] of its question.
    pub ask: String,
    /// The answer.
    pub response: ResumeResponse,
}

/// A question to publish.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenQuestion {
    /// Where in the run it was asked: opaque, unique among the run's open questions.
    pub ask: String,
    /// The workflow where it was asked.
    pub workflow: String,
    /// The node where it was asked.
    pub node: String,
    /// The question; its author's id is [`OpenQuestion::id`].
    pub question: Question,
    pub(crate) activation: u32,
    pub(crate) asked: Asked,
}

impl OpenQuestion {
    /// The author's id of the question.
    pub fn id(&self) -> &str {
        &self.asked.key.id
    }
}

/// A run that was stored cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The stored state does not read back. It is left as it is.
    #[error("the stored state of the run does not read: {0}")]
    Corrupt(String),
    /// The code at hand does not fit: park the run.
    #[error("the run cannot go on with this code")]
    Parked(#[source] Failure),
}

/// The engine stopped in the middle of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Storage refused a durable step. The run goes on later, from its last durable point.
    #[error("a durable step was not stored")]
    Storage(#[source] RecordError),
    /// Replay does not match the journal: park the run.
    #[error("the run cannot go on with this code")]
    Parked(#[source] Failure),
}

/// Where a run got to.
#[derive(Debug)]
pub enum Turn {
    /// It waits for people.
    Suspended(Suspension),
    /// It ended.
    Finished(Ending),
}

/// A pause to store.
#[derive(Debug)]
pub struct Suspension {
    /// The whole state, as it is once the questions are published.
    pub snapshot: Vec<u8>,
    /// Questions to publish.
    pub publish: Vec<OpenQuestion>,
    /// The ask keys of published questions that nobody waits for any more.
    pub withdraw: Vec<String>,
    /// The highest answer number that the snapshot holds.
    pub answers_seen: u64,
    /// The workflow that the run is bound to now.
    pub workflow: DefinitionPin,
    /// What a session keeps of the turn; only of [tracked](Start::tracked) runs.
    pub turn: Option<TurnState>,
    /// Whether [`Recorder::open`](crate::Recorder::open) was called in this execution or the run was restored.
    pub durable: bool,
    /// The response is complete: the questions are asked after it.
    pub response_completed: bool,
}

/// An end to store.
#[derive(Debug)]
pub struct Ending {
    /// How it ended.
    pub outcome: Outcome,
    /// The highest answer number received.
    pub answers_seen: u64,
    /// The workflow that the run was bound to at its end.
    pub workflow: DefinitionPin,
    /// Whether storage knows the run.
    pub durable: bool,
    /// What a session keeps of the turn; only of [tracked](Start::tracked) runs.
    pub turn: Option<TurnState>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It ended well, with this data (an object).
    Completed(RawJson),
    /// It failed.
    Failed(Failure),
    /// It was asked to stop and did.
    Cancelled,
}
