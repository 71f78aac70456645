//! What can go wrong for those who build an agent, and for those who call it.

use std::sync::Arc;

use kortyx_protocol::{Failure, FailureCode, Issue, RequestId, RunId, SessionId};
use kortyx_runtime::workflow::DefinitionError;
use kortyx_store::{StoreError, StoreErrorKind};
use serde_json::json;

use crate::environment::EnvironmentError;

/// Why an agent was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A workflow cannot be registered beside the others.
    #[error("a workflow cannot be registered")]
    Workflow(#[source] DefinitionError),
    /// The default workflow is not registered.
    #[error("the default workflow `{0}` is not registered: add it with `workflow(…)`")]
    DefaultWorkflow(String),
    /// An environment variable is set to something that this build cannot use.
    #[error("the store cannot be chosen from the environment")]
    Environment(#[source] EnvironmentError),
    /// No store was given, and this build has none in memory.
    #[error("no store was given: call `store(…)`, or enable the Cargo feature `memory`")]
    NoStore,
    /// The store cannot be used.
    #[error("the store cannot be opened or set up")]
    Store(#[source] StoreError),
    /// There is no Tokio runtime.
    #[error("an agent needs a Tokio runtime: build it inside one")]
    NoRuntime,
    /// A setting is out of range.
    #[error("{0}")]
    Setting(&'static str),
}

/// Why a call was refused, or what became of it instead of a result.
///
/// Every kind has one [code](Self::code) and becomes a [`Failure`] without losing what the caller may know.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OrchestratorError {
    /// No such workflow, or not this version of it.
    #[error("the workflow {0} is not registered")]
    UnknownWorkflow(String),
    /// The request contradicts itself or names something malformed.
    #[error("{0}")]
    InvalidRequest(String),
    /// The input does not fit the workflow, or does not serialize.
    #[error("the input does not fit the workflow")]
    InvalidInput(#[source] Failure),
    /// Something is larger than its limit.
    #[error("the {part} has {size} bytes, more than {limit}")]
    TooLarge {
        /// What.
        part: &'static str,
        /// How large it is.
        size: usize,
        /// How large it may be.
        limit: usize,
    },
    /// At least one answer is refused, so none was applied. Names every one that is.
    #[error("{}", .0.first().map_or("no answer was given", |refused| refused.reason.message()))]
    Refused(Vec<RefusedAnswer>),
    /// A message came while a run of its session waits, and the agent refuses that.
    #[error("a question of this conversation is open: answer or cancel it first")]
    Waiting,
    /// Nothing says whose things the caller may see.
    #[error("a scope is needed: a session, or context values")]
    ScopeRequired,
    /// No such run, question or session, or it is outside the scope.
    #[error("it does not exist, or lies outside the scope")]
    NotFound,
    /// The run cannot go on with the code at hand. It keeps its answers and goes on when code that fits is deployed.
    #[error("the run cannot go on with the code at hand; what was answered is kept")]
    SetAside(#[source] Failure),
    /// The run is still being driven, here or elsewhere. Nothing is lost: ask for the run again.
    #[error("the run {0} is still under way; what was accepted is kept")]
    StillRunning(RunId),
    /// A run of the session is being driven, so the session cannot be taken back. Ask again once it waits or has ended.
    #[error("the run {0} of the session is under way: wait until it stands, or cancel it")]
    SessionBusy(RunId),
    /// The session that was to be made exists already.
    #[error("the session {0} exists already")]
    SessionExists(SessionId),
    /// A question cannot be opened again: its time is past.
    #[error("the time of the question {0} is past, so the checkpoint cannot be gone back to")]
    QuestionExpired(RequestId),
    /// Storage failed. A run that was durable goes on from its last durable point.
    #[error("the storage failed")]
    Storage(#[source] Arc<StoreError>),
    /// Stored data does not read; it is left as it is.
    #[error("stored data does not read")]
    Corrupt(#[source] Failure),
    /// The system's random generator failed.
    #[error("random bytes are not to be had")]
    Random,
    /// The agent is shutting down; another process may serve the call.
    #[error("the agent is shutting down")]
    ShuttingDown,
}

/// An answer that was refused.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RefusedAnswer {
    /// Its place in the request, from 0.
    pub index: usize,
    /// The question, as the caller named it.
    pub request_id: RequestId,
    /// Why.
    pub reason: RefusalReason,
}

/// Why an answer was refused.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// It does not fit the question, which stays open.
    Invalid(Vec<Issue>),
    /// Another answer was accepted.
    AlreadyResolved,
    /// The question's time is past.
    Expired,
    /// The question was cancelled.
    Cancelled,
    /// The question was withdrawn.
    Superseded,
    /// The question belongs to another session, or the handle's parts do not belong together.
    Mismatch,
    /// No such question, a wrong token, or outside the scope.
    Unknown,
}

impl RefusalReason {
    /// Its code.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::Invalid(_) => FailureCode::InvalidResponse,
            Self::AlreadyResolved => FailureCode::InterruptAlreadyResolved,
            Self::Expired => FailureCode::InterruptExpired,
            Self::Cancelled => FailureCode::InterruptCancelled,
            Self::Superseded => FailureCode::InterruptSuperseded,
            Self::Mismatch => FailureCode::InterruptMismatch,
            Self::Unknown => FailureCode::NotFound,
        }
    }

    fn message(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "the answer does not fit the question, which stays open",
            Self::AlreadyResolved => "another answer to the question was accepted",
            Self::Expired => "the question's time is past",
            Self::Cancelled => "the question was cancelled",
            Self::Superseded => "the question was withdrawn",
            Self::Mismatch => "the token, the question, the run and the session do not belong together",
            Self::Unknown => "there is no such question",
        }
    }
}

impl OrchestratorError {
    /// The code that reaches the wire.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::UnknownWorkflow(_) => FailureCode::UnknownWorkflow,
            Self::InvalidRequest(_) => FailureCode::InvalidRequest,
            Self::InvalidInput(failure) | Self::SetAside(failure) | Self::Corrupt(failure) => failure.code,
            Self::TooLarge { .. } => FailureCode::PayloadTooLarge,
            Self::Refused(refused) => {
                refused.first().map_or(FailureCode::InvalidRequest, |refused| refused.reason.code())
            }
            Self::Waiting
            | Self::StillRunning(_)
            | Self::SessionBusy(_)
            | Self::SessionExists(_)
            | Self::ShuttingDown => FailureCode::Conflict,
            Self::QuestionExpired(_) => FailureCode::InterruptExpired,
            Self::ScopeRequired => FailureCode::ScopeRequired,
            Self::NotFound => FailureCode::NotFound,
            Self::Storage(error) => storage_code(error),
            Self::Random => FailureCode::PersistenceError,
        }
    }

    /// Whether the only reason is this one.
    pub(crate) fn is_refused_as(&self, is_reason: impl Fn(&RefusalReason) -> bool) -> bool {
        matches!(self, Self::Refused(refused) if refused.iter().all(|refused| is_reason(&refused.reason)))
    }
}

impl From<StoreError> for OrchestratorError {
    fn from(error: StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::ScopeRequired => Self::ScopeRequired,
            StoreErrorKind::InvalidRequest => Self::InvalidRequest(error.to_string()),
            _ => {
                tracing::error!(operation = error.operation(), error = chain(&error), "a storage operation failed");
                Self::Storage(Arc::new(error))
            }
        }
    }
}

impl From<OrchestratorError> for Failure {
    fn from(error: OrchestratorError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        match error {
            OrchestratorError::InvalidInput(failure)
            | OrchestratorError::SetAside(failure)
            | OrchestratorError::Corrupt(failure) => failure,
            OrchestratorError::Refused(refused) => of_refused(code, message, &refused),
            OrchestratorError::StillRunning(run_id) | OrchestratorError::SessionBusy(run_id) => {
                Self::new(code, message).with_retryable(Some(true)).with_details(json!({ "runId": run_id }))
            }
            OrchestratorError::ShuttingDown => Self::new(code, message).with_retryable(Some(true)).with_status(503),
            OrchestratorError::Storage(error) => of_storage(&error),
            _ => Self::new(code, message),
        }
    }
}

/// What the client may know of a failed storage operation.
pub(crate) fn of_storage(error: &StoreError) -> Failure {
    match storage_code(error) {
        FailureCode::PayloadTooLarge => Failure::new(
            FailureCode::PayloadTooLarge,
            "a state, a question or an answer is larger than the store takes",
        ),
        FailureCode::Conflict => {
            let message =
                "the conversation was taken back meanwhile, so nothing of the turn is kept; send the message again";
            Failure::new(FailureCode::Conflict, message).with_retryable(Some(true))
        }
        code => Failure::new(code, "the storage failed; try again, the server's log has the cause")
            .with_retryable(Some(error.is_retryable())),
    }
}

fn storage_code(error: &StoreError) -> FailureCode {
    match error.kind() {
        StoreErrorKind::TooLarge => FailureCode::PayloadTooLarge,
        StoreErrorKind::Abandoned => FailureCode::Conflict,
        _ => FailureCode::PersistenceError,
    }
}

fn of_refused(code: FailureCode, message: String, refused: &[RefusedAnswer]) -> Failure {
    let is_batch = refused.len() > 1 || refused.iter().any(|refused| refused.index > 0);
    let mut issues = Vec::new();
    for answer in refused {
        let RefusalReason::Invalid(found) = &answer.reason else { continue };
        issues.extend(found.iter().map(|issue| {
            let path = if is_batch { format!("/{}{}", answer.index, issue.path) } else { issue.path.clone() };
            Issue::new(path, issue.code.clone(), issue.message.clone())
        }));
    }
    let named = |answer: &RefusedAnswer| json!({"requestId": answer.request_id, "code": answer.reason.code()});
    let mut failure = Failure::new(code, message);
    if !issues.is_empty() {
        failure = failure.with_issues(issues);
    }
    if is_batch {
        failure = failure.with_details(json!({"refused": refused.iter().map(named).collect::<Vec<_>>()}));
    }
    failure
}

/// An error with its sources, for the log.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}
