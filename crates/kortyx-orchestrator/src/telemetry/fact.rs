//! The facts.

use std::{sync::Arc, time::Duration};

use kortyx_protocol::{CheckpointId, FailureCode, RequestId, SessionId, Timestamp, Usage};
use kortyx_runtime::{CallName, Content, End, ModelName, Visit};
use kortyx_store::RunStatus;

use super::{AskedFacts, Correlation, QuestionContent, TraceIds};

/// Something that happened. Holds ids, names, numbers and codes; what people, models and tools say only where
/// [`TelemetrySink::captures`](crate::TelemetrySink::captures) asks for it, and never tokens or option values.
///
/// Facts about nodes and what they do (from [`NodeEntered`](Self::NodeEntered) to [`ToolEnded`](Self::ToolEnded)) are only told to a sink
/// that [watches](crate::TelemetrySink::watches_nodes) them. They are told as they happen; all others once they are stored, but
/// [`RunStarted`](Self::RunStarted), which comes before anything is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fact {
    /// A new run begins here.
    RunStarted {
        /// The run.
        about: Correlation,
        /// Its input.
        input: Option<Content>,
    },
    /// A stored run goes on here.
    RunResumed {
        /// The run.
        about: Correlation,
        /// The number of the lease that it is driven under.
        fence: u64,
        /// Why.
        reason: ResumeReason,
        /// How many answers it is given.
        answers: usize,
        /// The span of the drive that stored it last, for a link.
        earlier: Option<TraceIds>,
    },
    /// A run pauses: it waits for people.
    RunSuspended {
        /// The run.
        about: Correlation,
        /// The number of the lease that it was driven under; 0 when it never had one.
        fence: u64,
        /// How many questions are open.
        open: usize,
        /// The tokens that it has used so far with its children, when known.
        usage: Option<Usage>,
    },
    /// The response of a run is complete, and the run goes on.
    RunResponded {
        /// The run.
        about: Correlation,
        /// The tokens that it has used so far with its children, when known.
        usage: Option<Usage>,
    },
    /// A run ended.
    RunFinished {
        /// The run.
        about: Correlation,
        /// How.
        status: RunStatus,
        /// The code of its failure.
        code: Option<FailureCode>,
        /// The tokens that it used with its children, when known.
        usage: Option<Usage>,
        /// Its data.
        output: Option<Content>,
    },
    /// A run whose driver was gone, or that was set aside, is driven again.
    RunRecovered {
        /// The run.
        about: Correlation,
    },
    /// A run was set aside until code that fits is deployed.
    RunParked {
        /// The run.
        about: Correlation,
        /// The failure's code.
        code: FailureCode,
    },
    /// A driver lost its lease: another one has the run.
    LeaseLost {
        /// The run.
        about: Correlation,
        /// The number of the lost lease.
        fence: u64,
    },
    /// A question was published.
    InterruptCreated {
        /// The question.
        request_id: RequestId,
        /// Its run, and where it was asked.
        about: Correlation,
        /// What it is like.
        asked: Box<AskedFacts>,
        /// What it says.
        content: Option<Box<QuestionContent>>,
    },
    /// An answer was accepted.
    InterruptResolved {
        /// The question.
        request_id: RequestId,
        /// Its run, and where it was asked.
        about: Correlation,
        /// What is next for the run.
        outcome: ResumeOutcome,
        /// When the answer was accepted, on the store's clock.
        resolved_at: Timestamp,
        /// How long the question was open.
        wait: Duration,
        /// Who answered; see [`Captures::actor`](crate::Captures::actor).
        actor: Option<String>,
        /// The answer.
        answer: Option<Content>,
    },
    /// A question was cancelled, alone or with its run.
    InterruptCancelled {
        /// The question.
        request_id: RequestId,
        /// Its run, and where it was asked.
        about: Correlation,
        /// Why.
        reason: CancelReason,
    },
    /// A question was withdrawn, because its session was rolled back.
    InterruptSuperseded {
        /// The question.
        request_id: RequestId,
        /// Its run, and where it was asked.
        about: Correlation,
    },
    /// A question's time ran out.
    InterruptExpired {
        /// The question.
        request_id: RequestId,
        /// Its run, and where it was asked.
        about: Correlation,
        /// Its default counts as the answer.
        by_default: bool,
        /// Its deadline.
        expires_at: Timestamp,
        /// Somebody read it past its deadline; whether anything has closed it is not known. Told at most once in a process, and once more
        /// by the worker that closes it.
        is_derived: bool,
    },
    /// Somebody answered a question that is not open to them: its time is past, or it is not known.
    AnswerLate {
        /// The question, as the caller named it.
        request_id: RequestId,
        /// Its run, when the question is known.
        about: Option<Correlation>,
    },
    /// Somebody gave an answer that does not fit the question, which stays open.
    AnswerInvalid {
        /// The question.
        request_id: RequestId,
        /// Its run, when the question is known.
        about: Option<Correlation>,
        /// How many things are wrong with the answer.
        issues: usize,
    },
    /// Somebody gave the accepted answer again.
    AnswerRepeated {
        /// The question.
        request_id: RequestId,
        /// Its run, when the question is known.
        about: Option<Correlation>,
    },
    /// Somebody gave another answer than the accepted one.
    AnswerConflicted {
        /// The question.
        request_id: RequestId,
        /// Its run, when the question is known.
        about: Option<Correlation>,
    },
    /// A turn left a checkpoint behind.
    SessionCheckpointed {
        /// The run whose turn it was.
        about: Correlation,
        /// The checkpoint.
        checkpoint_id: CheckpointId,
    },
    /// A session was taken back to a checkpoint.
    SessionRolledBack {
        /// The run whose turn left the checkpoint. A session's start is left by none: then an id that no run has.
        about: Correlation,
        /// The session.
        session_id: SessionId,
        /// The checkpoint.
        checkpoint_id: CheckpointId,
    },
    /// A session was started from a checkpoint of another.
    SessionForked {
        /// The new session's run when it waits with questions, else the run whose turn left the checkpoint. A session's start is left by
        /// none: then an id that no run has.
        about: Correlation,
        /// The new session.
        session_id: SessionId,
        /// The other.
        parent_session_id: SessionId,
        /// The checkpoint.
        checkpoint_id: CheckpointId,
    },
    /// A node is entered.
    NodeEntered {
        /// The run and the node.
        about: Correlation,
        /// The visit.
        visit: Arc<Visit>,
    },
    /// A node is left.
    NodeLeft {
        /// The run and the node.
        about: Correlation,
        /// The visit.
        visit: Arc<Visit>,
        /// How. A pause is no failure.
        end: End,
        /// It failed and is tried again.
        retries: bool,
        /// The data that it gave, an object.
        output: Option<Content>,
    },
    /// A node leads to another.
    WorkflowTransitioned {
        /// The run and the node that has ended.
        about: Correlation,
        /// The visit that has ended.
        visit: Arc<Visit>,
        /// The next node; `None` at the end of a path.
        to: Option<Arc<str>>,
        /// The condition of the edge.
        condition: Option<String>,
    },
    /// A node hands the run over to another workflow.
    WorkflowHandedOff {
        /// The run and the node.
        about: Correlation,
        /// The visit.
        visit: Arc<Visit>,
        /// The workflow that goes on.
        workflow: Arc<str>,
        /// Its version.
        version: Arc<str>,
    },
    /// What is recorded does not fit the code.
    RunDiverged {
        /// The run.
        about: Correlation,
        /// The failure's code.
        code: FailureCode,
    },
    /// A step begins.
    StepStarted {
        /// The run and the node.
        about: Correlation,
        /// The visit.
        visit: Arc<Visit>,
        /// The step.
        call: CallName,
    },
    /// A step has ended.
    StepEnded {
        /// The run and the node.
        about: Correlation,
        /// The visit.
        visit: Arc<Visit>,
        /// The step.
        call: CallName,
        /// How.
        end: End,
        /// Its result; not that of a step in which a model is asked or a tool is run.
        output: Option<Content>,
    },
    /// A child workflow is called, or goes on after a pause.
    ChildStarted {
        /// The run and the node that calls.
        about: Correlation,
        /// The visit.
        visit: Arc<Visit>,
        /// The call.
        call: CallName,
        /// The child's workflow.
        workflow: Arc<str>,
        /// Its version.
        version: Arc<str>,
        /// It was called before and goes on.
        again: bool,
        /// Its input, when it is called.
        input: Option<Content>,
    },
    /// A child workflow has ended, or pauses.
    ChildEnded {
        /// The run and the node that called.
        about: Correlation,
        /// The visit.
        visit: Arc<Visit>,
        /// The call.
        call: CallName,
        /// The child's workflow.
        workflow: Arc<str>,
        /// Its version.
        version: Arc<str>,
        /// How. A pause is no failure.
        end: End,
        /// Its output.
        output: Option<Content>,
    },
    /// A model is asked.
    ModelStarted {
        /// The run and the node.
        about: Correlation,
        /// The visit.
        visit: Arc<Visit>,
        /// The step that asks it: unique in the activation.
        step: String,
        /// Which model.
        model: ModelName,
        /// What it is given: the messages.
        input: Option<Content>,
    },
    /// A model has answered, or has not.
    ModelEnded {
        /// The run and the node.
        about: Correlation,
        /// The visit.
        visit: Arc<Visit>,
        /// The step that asked it.
        step: String,
        /// Which model.
        model: ModelName,
        /// How.
        end: End,
        /// The tokens that it used, when the provider told.
        usage: Option<Usage>,
        /// Why it stopped: `stop`, `tool_calls`, `length`, …
        finish: Option<String>,
        /// How many tools it calls.
        tool_calls: usize,
        /// What it said.
        output: Option<Content>,
    },
    /// A tool is run.
    ToolStarted {
        /// The run and the node.
        about: Correlation,
        /// The visit.
        visit: Arc<Visit>,
        /// The step that runs it: unique in the activation.
        step: String,
        /// Its name.
        tool: String,
        /// The call's id, unique in its reasoning call.
        call_id: String,
        /// A person had to approve the call.
        approved: bool,
        /// The arguments.
        input: Option<Content>,
    },
    /// A tool has ended.
    ToolEnded {
        /// The run and the node.
        about: Correlation,
        /// The visit.
        visit: Arc<Visit>,
        /// The step that ran it.
        step: String,
        /// Its name.
        tool: String,
        /// The call's id.
        call_id: String,
        /// How: `Paused` when it asks a person and is called again with the answer.
        end: End,
        /// The result.
        output: Option<Content>,
    },
}

/// Why a stored run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResumeReason {
    /// A question of it was answered.
    Answered,
    /// A question's time ran out and its default applies.
    Defaulted,
    /// Its driver was gone, or it was set aside.
    Recovered,
}

/// What is next for a run that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResumeOutcome {
    /// It goes on, here or where it is driven.
    Resumed,
    /// The answer is kept; a worker goes on with the run.
    Kept,
    /// The answer is kept, but the run cannot go on here, for this reason.
    Failed(FailureCode),
}

/// Why a question was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// Somebody answered with a cancellation, to this question or another one of its run.
    Answer,
    /// The run was cancelled.
    Run,
}

impl ResumeReason {
    /// The stable lower-case name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Defaulted => "defaulted",
            Self::Recovered => "recovered",
        }
    }
}

impl CancelReason {
    /// The stable lower-case name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Run => "run",
        }
    }
}

impl Fact {
    /// What it is about; `None` of answers to questions that are not known.
    pub fn about(&self) -> Option<&Correlation> {
        match self {
            Self::RunStarted { about, .. }
            | Self::RunResumed { about, .. }
            | Self::RunSuspended { about, .. }
            | Self::RunResponded { about, .. }
            | Self::RunFinished { about, .. }
            | Self::RunRecovered { about }
            | Self::RunParked { about, .. }
            | Self::LeaseLost { about, .. }
            | Self::InterruptCreated { about, .. }
            | Self::InterruptResolved { about, .. }
            | Self::InterruptCancelled { about, .. }
            | Self::InterruptSuperseded { about, .. }
            | Self::InterruptExpired { about, .. }
            | Self::SessionCheckpointed { about, .. }
            | Self::SessionRolledBack { about, .. }
            | Self::SessionForked { about, .. }
            | Self::NodeEntered { about, .. }
            | Self::NodeLeft { about, .. }
            | Self::WorkflowTransitioned { about, .. }
            | Self::WorkflowHandedOff { about, .. }
            | Self::RunDiverged { about, .. }
            | Self::StepStarted { about, .. }
            | Self::StepEnded { about, .. }
            | Self::ChildStarted { about, .. }
            | Self::ChildEnded { about, .. }
            | Self::ModelStarted { about, .. }
            | Self::ModelEnded { about, .. }
            | Self::ToolStarted { about, .. }
            | Self::ToolEnded { about, .. } => Some(about),
            Self::AnswerLate { about, .. }
            | Self::AnswerInvalid { about, .. }
            | Self::AnswerRepeated { about, .. }
            | Self::AnswerConflicted { about, .. } => about.as_ref(),
        }
    }
}
