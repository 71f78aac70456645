//! What a node may return as its error, and what a child call may fail with.

use std::{error::Error, fmt};

use kortyx_protocol::{Failure, FailureCode, Issue, JsonError};
use serde_json::json;

/// The error of a node.
///
/// Any `std::error::Error` converts into it by `?`. Its text stays on the server: the client sees `EXECUTION_FAILED`
/// with a generic message, unless the author made it public with [`NodeError::public`].
///
/// ```
/// use kortyx_runtime::NodeError;
///
/// fn parse(text: &str) -> Result<u32, NodeError> {
///     let number: u32 = text.parse()?;
///     if number > 100 {
///         return Err(NodeError::public("too-many", "at most 100 seats can be booked at once"));
///     }
///     Ok(number)
/// }
/// assert!(parse("x").is_err());
/// ```
pub struct NodeError(Box<Repr>);

enum Repr {
    Private(Box<dyn Error + Send + Sync>),
    Coded(Failure),
    /// What the run holds does not read as the type that the node asks for.
    Unreadable(String),
}

impl NodeError {
    /// A private error with this text.
    pub fn message(text: impl Into<String>) -> Self {
        Self(Box::new(Repr::Private(text.into().into())))
    }

    /// A value that the run holds does not read as the type that the node asks for.
    pub(crate) fn unreadable(text: String) -> Self {
        Self(Box::new(Repr::Unreadable(text)))
    }

    /// Why the node cannot read what the run holds, when that is why it failed.
    pub(crate) fn as_unreadable(&self) -> Option<&str> {
        match &*self.0 {
            Repr::Unreadable(text) => Some(text),
            Repr::Private(_) | Repr::Coded(_) => None,
        }
    }

    /// An error that the client may see: a code of the application's own and a message that says what to do.
    /// It reaches the wire as `DOMAIN_ERROR` with `details.code`.
    pub fn public(code: impl Into<String>, message: impl Into<String>) -> Self {
        let failure = Failure::new(FailureCode::DomainError, message).with_details(json!({ "code": code.into() }));
        Self(Box::new(Repr::Coded(failure)))
    }

    /// The code that the client will see.
    pub fn code(&self) -> FailureCode {
        match &*self.0 {
            Repr::Coded(failure) => failure.code,
            Repr::Private(_) | Repr::Unreadable(_) => FailureCode::ExecutionFailed,
        }
    }

    /// Whether another attempt may end otherwise: unless the failure's code says that it will not.
    pub(crate) fn is_retryable(&self) -> bool {
        match &*self.0 {
            Repr::Private(_) => true,
            Repr::Coded(failure) => failure.retryable != Some(false),
            Repr::Unreadable(_) => false,
        }
    }

    /// The failure as the client sees it. The private text goes to tracing only.
    pub(crate) fn into_failure(self, workflow: &str, node: &str) -> Failure {
        let cause = match *self.0 {
            Repr::Coded(failure) => return failure,
            Repr::Private(source) => chain(source.as_ref()),
            Repr::Unreadable(text) => text,
        };
        tracing::error!(workflow, node, error = cause, "the node failed");
        Failure::new(
            FailureCode::ExecutionFailed,
            format!("the node `{node}` of the workflow `{workflow}` failed; the server's log has the cause"),
        )
    }
}

impl fmt::Debug for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Repr::Private(source) => fmt::Display::fmt(source, f),
            Repr::Coded(failure) => fmt::Display::fmt(failure, f),
            Repr::Unreadable(text) => f.write_str(text),
        }
    }
}

/// `NodeError` is no `Error` itself, so that this conversion can exist for every error that is.
impl<E: Error + Send + Sync + 'static> From<E> for NodeError {
    fn from(error: E) -> Self {
        let mut boxed: Box<dyn Error + Send + Sync> = Box::new(error);
        for coded in [take::<CallError>, take::<Failure>] {
            match coded(boxed) {
                Ok(failure) => return Self(Box::new(Repr::Coded(failure))),
                Err(other) => boxed = other,
            }
        }
        Self(Box::new(Repr::Private(boxed)))
    }
}

/// The failure of an error that has a code of its own.
fn take<E: Error + Into<Failure> + 'static>(
    error: Box<dyn Error + Send + Sync>,
) -> Result<Failure, Box<dyn Error + Send + Sync>> {
    error.downcast::<E>().map(|error| (*error).into())
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

/// Why a child workflow did not give an output.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The child is not registered with the engine.
    #[error("the workflow `{id}` version `{version}` is not registered; register it with the agent")]
    Unknown {
        /// The child's id.
        id: String,
        /// The child's version.
        version: String,
    },
    /// The input does not fit the child's input schema.
    #[error("the input does not fit the workflow `{workflow}`")]
    Input {
        /// The child's id.
        workflow: String,
        /// What is wrong, field by field.
        issues: Vec<Issue>,
    },
    /// The input or the output does not serialize.
    #[error("a value of the call does not convert")]
    Json(#[source] JsonError),
    /// Children are nested too deeply, or one activation calls too many.
    #[error("{0}")]
    Limit(String),
    /// The child is called within a step, which could not end while the child waits for people.
    #[error("`{0}` is called within a step: call it before the step or after it")]
    InStep(String),
    /// The child ran and failed.
    #[error("the child workflow failed")]
    Failed(#[source] Failure),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let message = error.to_string();
        match error {
            CallError::Unknown { .. } => Self::new(FailureCode::UnknownWorkflow, message),
            CallError::Input { issues, .. } => Self::new(FailureCode::InvalidInput, message).with_issues(issues),
            CallError::Json(source) => Self::new(FailureCode::InvalidInput, format!("{message}: {source}")),
            CallError::Limit(_) => Self::new(FailureCode::LimitReached, message),
            CallError::InStep(_) => Self::new(FailureCode::ExecutionFailed, message).with_retryable(Some(false)),
            CallError::Failed(failure) => failure,
        }
    }
}
