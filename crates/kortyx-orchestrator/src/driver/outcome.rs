//! Where a run stands when its driver stops, and what storage keeps of its end.

use std::sync::Arc;

use kortyx_contracts::Question;
use kortyx_protocol::{CheckpointId, Failure, FailureCode, RawJson, RunId, SessionId, Usage};
use kortyx_store::{InterruptRecord, RunStatus, WorkflowPin};
use serde::{Deserialize, Serialize};

use super::Response;

/// The version of [`StoredOutcome`].
const VERSION: u32 = 1;

/// A run and where it stands.
#[derive(Debug)]
pub(crate) struct Stand {
    pub(crate) run_id: RunId,
    pub(crate) session_id: SessionId,
    /// The workflow that it is in now.
    pub(crate) workflow: Arc<str>,
    /// The checkpoint that keeps the turn, when known.
    pub(crate) checkpoint: Option<CheckpointId>,
    /// The tokens that the run has used so far, when known.
    pub(crate) usage: Option<Usage>,
    pub(crate) state: State,
}

/// Where a run stands.
#[derive(Debug)]
pub(crate) enum State {
    /// It waits for people, with at least one open question.
    Suspended(Vec<OpenInterrupt>),
    /// Its response is complete, with these of its questions open, and it goes on.
    Responded(Box<Response>, Vec<OpenInterrupt>),
    /// It ended well.
    Completed(End),
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled(Option<String>),
    /// A question's time ran out and nothing else was open.
    Expired,
    /// It is set aside, and so are its answers.
    SetAside(Failure),
    /// Its driver stopped; it goes on later, or elsewhere.
    Interrupted(crate::OrchestratorError),
    /// Somebody else drives it.
    Elsewhere,
}

/// A good end.
#[derive(Debug)]
pub(crate) struct End {
    /// The run's data.
    pub(crate) data: RawJson,
    /// What the last turn said; only for a client that repeats its answer.
    pub(crate) text: Option<String>,
}

/// An open question.
#[derive(Debug)]
pub(crate) struct OpenInterrupt {
    pub(crate) record: InterruptRecord,
    /// The question, when it need not be read from the record.
    pub(crate) question: Option<Question>,
}

impl From<InterruptRecord> for OpenInterrupt {
    fn from(record: InterruptRecord) -> Self {
        Self { record, question: None }
    }
}

/// What storage keeps of a run's end, to serve those who ask later.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredOutcome {
    v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

impl StoredOutcome {
    pub(super) fn of(state: &State, usage: Option<Usage>) -> Self {
        let mut outcome = Self { v: VERSION, data: None, text: None, failure: None, usage };
        match state {
            State::Completed(End { data, text }) => {
                outcome.data = Some(data.clone());
                outcome.text.clone_from(text);
            }
            State::Failed(failure) => outcome.failure = Some(failure.clone()),
            _ => {}
        }
        outcome
    }

    /// The tokens that a run with this stored outcome used.
    pub(crate) fn usage(outcome: Option<&[u8]>) -> Option<Usage> {
        serde_json::from_slice::<Self>(outcome?).ok()?.usage
    }

    /// How a run with this terminal status and this stored outcome ended.
    pub(crate) fn state(status: RunStatus, outcome: Option<&[u8]>, reason: Option<String>) -> Result<State, Failure> {
        let outcome: Option<Self> = match outcome {
            Some(bytes) => Some(serde_json::from_slice(bytes).map_err(|error| corrupt(&error.to_string()))?),
            None => None,
        };
        if let Some(newer) = outcome.as_ref().map(|outcome| outcome.v).filter(|version| *version > VERSION) {
            return Err(corrupt(&format!("its outcome was stored by a newer release (version {newer})")));
        }
        Ok(match status {
            RunStatus::Completed => {
                let (data, text) = outcome.map(|outcome| (outcome.data, outcome.text)).unwrap_or_default();
                State::Completed(End { data: data.unwrap_or_default(), text })
            }
            RunStatus::Cancelled => State::Cancelled(reason),
            RunStatus::Expired => State::Expired,
            _ => {
                let failure = outcome.and_then(|outcome| outcome.failure);
                State::Failed(failure.unwrap_or_else(|| Failure::new(FailureCode::ExecutionFailed, "the run failed")))
            }
        })
    }
}

/// Stored data does not read.
pub(crate) fn corrupt(detail: &str) -> Failure {
    tracing::error!(detail, "stored data of a run does not read");
    Failure::new(
        FailureCode::PersistenceError,
        "the stored data of the run does not read; it is left as it is, the server's log has the cause",
    )
    .with_retryable(Some(false))
}

/// The run's workflow is not registered here.
pub(crate) fn foreign(pin: &WorkflowPin) -> Failure {
    let message = format!(
        "version `{}` of the workflow `{}`, which the run is bound to, is not registered in this process; a process that has \
         it goes on with the run",
        pin.version, pin.id
    );
    Failure::new(FailureCode::WorkflowChanged, message)
}

/// A workflow where a question was asked is not registered here.
pub(crate) fn foreign_workflow(id: &str) -> Failure {
    let message = format!(
        "the answer is kept, but the workflow `{id}` is not registered in this process; a process that has it goes on with the \
         run"
    );
    Failure::new(FailureCode::WorkflowChanged, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_reads_as_it_was_stored() {
        let end = End { data: RawJson::parse(r#"{"n":18446744073709551615}"#).unwrap(), text: Some("Bye".into()) };
        let bytes = serde_json::to_vec(&StoredOutcome::of(&State::Completed(end), None)).unwrap();
        assert_eq!(str::from_utf8(&bytes).unwrap(), r#"{"v":1,"data":{"n":18446744073709551615},"text":"Bye"}"#);
        let state = StoredOutcome::state(RunStatus::Completed, Some(&bytes), None).unwrap();
        let State::Completed(End { data, text }) = state else { panic!("{state:?}") };
        assert_eq!((data.get(), text.as_deref()), (r#"{"n":18446744073709551615}"#, Some("Bye")));
    }

    #[test]
    fn an_outcome_tells_the_tokens_that_its_run_used() {
        let usage = Usage { input: 2, output: 3, total: 5 };
        let bytes = serde_json::to_vec(&StoredOutcome::of(&State::Cancelled(None), Some(usage))).unwrap();
        assert_eq!(str::from_utf8(&bytes).unwrap(), r#"{"v":1,"usage":{"input":2,"output":3,"total":5}}"#);
        assert_eq!(StoredOutcome::usage(Some(&bytes)), Some(usage));
        assert_eq!(StoredOutcome::usage(None), None);
    }

    #[test]
    fn an_outcome_of_a_newer_release_is_refused() {
        let error = StoredOutcome::state(RunStatus::Failed, Some(br#"{"v":2}"#), None).unwrap_err();
        assert_eq!(error.code, FailureCode::PersistenceError);
        assert!(StoredOutcome::state(RunStatus::Failed, Some(b"{"), None).is_err());
    }
}
