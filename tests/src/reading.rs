//! Short ways to what a result, an error or a stream says.

use std::time::Duration;

use kortyx::{
    Agent, OrchestratorError, RefusalReason,
    protocol::{ExecutionResult, Failure, FailureCode, InterruptChunk, PendingQuestion, ResumeHandle, StreamChunk},
    store::{RunStatus, Scope},
};
use serde_json::Value;

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(20);

/// The data of a run that completed.
pub fn data(result: ExecutionResult) -> Value {
    match result {
        ExecutionResult::Completed { data, .. } => data,
        other => panic!("the run did not complete: {other:?}"),
    }
}

/// The failure of a run that failed.
pub fn failure(result: ExecutionResult) -> Failure {
    match result {
        ExecutionResult::Failed { error, .. } => *error,
        other => panic!("the run did not fail: {other:?}"),
    }
}

/// The only open question of a run.
pub fn only(result: &ExecutionResult) -> PendingQuestion {
    match result.interrupts() {
        [question] => question.clone(),
        _ => panic!("there is not one open question: {result:?}"),
    }
}

/// The handle of the open question with this author's id.
pub fn handle(result: &ExecutionResult, id: &str) -> ResumeHandle {
    let found = result.interrupts().iter().find(|question| question.input.id.as_deref() == Some(id));
    found.unwrap_or_else(|| panic!("no open question is called `{id}`: {result:?}")).resume.clone()
}

/// The author's ids of a run's open questions, sorted.
pub fn questions(result: &ExecutionResult) -> Vec<String> {
    let mut ids: Vec<_> = result.interrupts().iter().filter_map(|question| question.input.id.clone()).collect();
    ids.sort();
    ids
}

/// The code of a call that was refused.
pub fn code<T: std::fmt::Debug>(outcome: Result<T, OrchestratorError>) -> FailureCode {
    outcome.unwrap_err().code()
}

/// Why the only refused answer was refused.
pub fn reason<T: std::fmt::Debug>(outcome: Result<T, OrchestratorError>) -> RefusalReason {
    match outcome {
        Err(OrchestratorError::Refused(refused)) => match refused.as_slice() {
            [one] => one.reason.clone(),
            _ => panic!("it is not one refused answer: {refused:?}"),
        },
        other => panic!("no answer was refused: {other:?}"),
    }
}

/// The types of a stream's chunks.
pub fn kinds(chunks: &[StreamChunk]) -> Vec<&'static str> {
    chunks.iter().map(StreamChunk::kind).collect()
}

/// The questions that a stream put, in order.
pub fn input_of(chunks: &[StreamChunk]) -> Vec<InterruptChunk> {
    let asked = chunks.iter().filter_map(|chunk| match chunk {
        StreamChunk::Interrupt(chunk) => Some((**chunk).clone()),
        _ => None,
    });
    asked.collect()
}

/// What a stream said.
pub fn text_of(chunks: &[StreamChunk]) -> String {
    let said = chunks.iter().filter_map(|chunk| match chunk {
        StreamChunk::Message { content, .. } => Some(content.as_str()),
        StreamChunk::TextDelta(text) => Some(text.delta.as_str()),
        _ => None,
    });
    said.collect()
}

/// Waits until a run has ended like this.
pub async fn ends(agent: &Agent, run: &ResumeHandle, status: RunStatus) {
    let scope = Scope::session(run.session_id.clone());
    eventually("the run ends", || async {
        agent.get_run(&run.run_id, &scope).await.unwrap().is_some_and(|view| view.status == status)
    })
    .await;
}

/// Passes with a worker until it has taken over the one run whose driver is gone. Where the list of such runs is a hint, one that
/// died with its process is found by what a later pass repairs.
pub async fn takes_over(agent: &Agent) {
    eventually("a worker takes the run over", || async {
        match agent.worker().pass().await.unwrap().recovered {
            0 => false,
            one => {
                assert_eq!(one, 1, "runs taken over");
                true
            }
        }
    })
    .await;
}

/// Waits until a condition is true; what never comes true fails the test.
pub async fn eventually<Fut: Future<Output = bool>>(what: &str, is_true: impl Fn() -> Fut) {
    let wait = async {
        while !is_true().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}
