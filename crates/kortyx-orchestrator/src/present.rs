//! What callers see of runs and questions.

use kortyx_contracts::Question;
use kortyx_protocol::{
    ExecutionResult, Failure, FailureCode, InterruptChunk, InterruptInput, JsonError, PendingQuestion, RawJson,
    ResumeHandle, RunId, SessionId,
};
use kortyx_store::InterruptRecord;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    OrchestratorError,
    driver::{OpenInterrupt, Stand, State, corrupt},
};

/// How a run's data becomes what a caller gets.
pub(crate) type Decode<T> = fn(&RawJson) -> Result<T, JsonError>;

pub(crate) fn typed<T: DeserializeOwned>(data: &RawJson) -> Result<T, JsonError> {
    data.decode()
}

pub(crate) fn untyped(data: &RawJson) -> Result<Value, JsonError> {
    data.to_value()
}

/// A run that has stopped, as a result.
pub(crate) fn result<T>(stand: Stand, decode: Decode<T>) -> Result<ExecutionResult<T>, OrchestratorError> {
    let Stand { run_id, session_id, workflow, checkpoint, usage, state } = stand;
    let result = match state {
        State::Suspended(open) => {
            let interrupts = open.into_iter().map(pending).collect::<Result<_, _>>()?;
            ExecutionResult::suspended(run_id, session_id, interrupts)
        }
        State::Completed(end) => completed(run_id, session_id, &workflow, decode(&end.data)),
        State::Responded(_, open) if !open.is_empty() => {
            let interrupts = open.into_iter().map(pending).collect::<Result<_, _>>()?;
            ExecutionResult::suspended(run_id, session_id, interrupts)
        }
        State::Responded(response, _) => completed(run_id, session_id, &workflow, decode(&response.data)),
        State::Failed(failure) => ExecutionResult::failed(run_id, session_id, failure),
        State::Cancelled(reason) => ExecutionResult::cancelled(run_id, session_id, reason),
        State::Expired => ExecutionResult::failed(run_id, session_id, expired()),
        State::SetAside(failure) => return Err(OrchestratorError::SetAside(failure)),
        State::Interrupted(error) => return Err(error),
        State::Elsewhere => return Err(OrchestratorError::StillRunning(run_id)),
    };
    let result = match checkpoint {
        Some(id) => result.with_checkpoint(id),
        None => result,
    };
    Ok(match usage {
        Some(usage) => result.with_usage(usage),
        None => result,
    })
}

fn completed<T>(
    run_id: RunId,
    session_id: SessionId,
    workflow: &str,
    data: Result<T, JsonError>,
) -> ExecutionResult<T> {
    match data {
        Ok(data) => ExecutionResult::completed(run_id, session_id, data),
        Err(error) => ExecutionResult::failed(run_id, session_id, undecodable(workflow, &error)),
    }
}

/// The failure of a run whose question was not answered in time.
pub(crate) fn expired() -> Failure {
    Failure::new(FailureCode::InterruptExpired, "the run ended, because its question was not answered in time")
}

pub(crate) fn undecodable(workflow: &str, error: &JsonError) -> Failure {
    let message =
        format!("the output of the workflow `{workflow}` does not convert to what the caller expects: {error}");
    Failure::new(FailureCode::InvalidOutput, message)
}

/// What the caller gave is not JSON.
pub(crate) fn not_json(what: &str, error: &JsonError) -> OrchestratorError {
    OrchestratorError::InvalidInput(Failure::new(FailureCode::InvalidInput, format!("{what} is not JSON: {error}")))
}

fn pending(open: OpenInterrupt) -> Result<PendingQuestion, OrchestratorError> {
    let input = input(&open)?;
    let InterruptRecord { workflow, node, request_id, token, run_id, session_id, expires_at, .. } = open.record;
    let resume = ResumeHandle { token, request_id: request_id.clone(), session_id, run_id };
    Ok(PendingQuestion { workflow, node, request_id, expires_at, input, resume })
}

/// The chunk that puts a question to a client.
pub(crate) fn chunk(open: &OpenInterrupt) -> Result<InterruptChunk, OrchestratorError> {
    let (input, record) = (input(open)?, &open.record);
    Ok(InterruptChunk {
        request_id: record.request_id.clone(),
        resume_token: record.token.clone(),
        workflow: record.workflow.clone(),
        node: record.node.clone(),
        id: input.id.clone(),
        schema_id: input.schema_id.clone(),
        schema_version: input.schema_version.clone(),
        expires_at: record.expires_at,
        input,
    })
}

pub(crate) fn input(open: &OpenInterrupt) -> Result<InterruptInput, OrchestratorError> {
    match &open.question {
        Some(question) => Ok(question.input()),
        None => Ok(question(&open.record)?.input()),
    }
}

/// The question of a record.
pub(crate) fn question(record: &InterruptRecord) -> Result<Question, OrchestratorError> {
    Question::from_slice(&record.question).map_err(|error| {
        let detail = format!("the question {} does not read: {error}", record.request_id);
        OrchestratorError::Corrupt(corrupt(&detail))
    })
}
