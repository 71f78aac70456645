//! Why a call to reason fails.

use std::fmt;

use kortyx_protocol::{Failure, FailureCode, Issue};
use kortyx_runtime::NodeError;
use serde_json::json;

use crate::{ModelError, Progress, ToolError};

/// Why a call to reason failed. A pause is never an error.
///
/// It converts into a [`NodeError`] by `?`; the client then sees the code that each variant names. It is no
/// `std::error::Error` itself, for then that conversion would hide the code.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReasonError {
    /// The call itself is wrong: two tools of one name, a schema that cannot be used, a model that cannot do what is asked.
    Definition(String),
    /// The model failed, for good or after all its retries. Nothing is recorded of the pass. `PROVIDER_*`
    Model(ModelError),
    /// A tool failed whose policy ends the run. Nothing is recorded of the call.
    Tool {
        /// The tool.
        tool: String,
        /// Why.
        error: ToolError,
    },
    /// The model has had all its passes and is not done. `REASON_STEPS_EXHAUSTED`
    StepsExhausted(Box<Progress>),
    /// The final answer is not the object that was asked for, also after one correction. `INVALID_MODEL_JSON` or
    /// `MODEL_OUTPUT_SCHEMA`
    Output {
        /// What the model said.
        text: String,
        /// What is wrong with it; nothing when it is no JSON.
        issues: Vec<Issue>,
    },
    /// The answer was cut where its whole is needed. `OUTPUT_TRUNCATED`
    Truncated,
    /// The run was asked to stop. `EXECUTION_CANCELLED`
    Cancelled,
    /// The context refused a call; it says why.
    Context(NodeError),
}

impl fmt::Display for ReasonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition(text) => f.write_str(text),
            Self::Model(error) => write!(f, "the model failed: {error}"),
            Self::Tool { tool, error } => write!(f, "the tool `{tool}` failed: {error}"),
            Self::StepsExhausted(progress) => {
                write!(f, "the model is not done after {} steps: allow more, or ask for less", progress.steps)
            }
            Self::Output { issues, .. } if issues.is_empty() => f.write_str("the model's answer is not JSON"),
            Self::Output { .. } => f.write_str("the model's answer does not fit its schema"),
            Self::Truncated => f.write_str("the model's answer was cut: allow more tokens"),
            Self::Cancelled => f.write_str("the run was cancelled while the model worked"),
            Self::Context(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl ReasonError {
    /// The code that the client will see.
    pub(crate) fn code(&self) -> FailureCode {
        match self {
            Self::Definition(_) | Self::Tool { .. } => FailureCode::ExecutionFailed,
            Self::Model(error) => error.failure().code,
            Self::StepsExhausted(_) => FailureCode::ReasonStepsExhausted,
            Self::Output { issues, .. } if issues.is_empty() => FailureCode::InvalidModelJson,
            Self::Output { .. } => FailureCode::ModelOutputSchema,
            Self::Truncated => FailureCode::OutputTruncated,
            Self::Cancelled => FailureCode::ExecutionCancelled,
            Self::Context(error) => error.code(),
        }
    }
}

impl From<NodeError> for ReasonError {
    fn from(error: NodeError) -> Self {
        Self::Context(error)
    }
}

impl From<ReasonError> for NodeError {
    fn from(error: ReasonError) -> Self {
        let text = error.to_string();
        let failure = match error {
            ReasonError::Context(error) => return error,
            ReasonError::Definition(_) | ReasonError::Tool { .. } => return NodeError::message(text),
            ReasonError::Model(error) => {
                tracing::error!(error = text, "the model failed");
                error.failure()
            }
            ReasonError::StepsExhausted(progress) => {
                Failure::new(FailureCode::ReasonStepsExhausted, text).with_details(done(&progress))
            }
            ReasonError::Output { issues, .. } if issues.is_empty() => {
                Failure::new(FailureCode::InvalidModelJson, text)
            }
            ReasonError::Output { issues, .. } => {
                Failure::new(FailureCode::ModelOutputSchema, text).with_issues(issues)
            }
            ReasonError::Truncated => Failure::new(FailureCode::OutputTruncated, text),
            ReasonError::Cancelled => Failure::new(FailureCode::ExecutionCancelled, text),
        };
        failure.into()
    }
}

/// What was done, without what only the application should see.
fn done(progress: &Progress) -> serde_json::Value {
    let calls = progress.tool_results.iter().map(|result| json!({ "tool": result.tool, "status": result.status }));
    json!({
        "steps": progress.steps,
        "toolCalls": calls.collect::<Vec<_>>(),
        "questions": progress.interrupt_history.len(),
        "emissions": progress.emissions.len(),
        "usage": progress.usage,
    })
}
