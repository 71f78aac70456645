//! What a node returns.

use std::collections::BTreeMap;

use kortyx_protocol::{Failure, FailureCode, Issue, JsonError, RawJson};
use serde::Serialize;

use crate::{NodeContext, NodeError};

/// What a node ends with.
pub type NodeResult = Result<NodeOutput, NodeError>;

/// The output of one activation: fields for the run's data, a condition for the edges, or a handoff.
///
/// ```
/// use kortyx_runtime::NodeOutput;
///
/// let output = NodeOutput::new().data("decision", &"approve").condition("approve");
/// # let _ = output;
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct NodeOutput {
    pub(crate) data: BTreeMap<String, RawJson>,
    pub(crate) condition: Option<String>,
    pub(crate) intent: Option<String>,
    pub(crate) ui: Option<String>,
    pub(crate) handoff: Option<Handoff>,
    pub(crate) error: Option<JsonError>,
}

/// A move to another workflow within the same run.
#[derive(Debug, Clone)]
pub(crate) struct Handoff {
    pub(crate) workflow: String,
    pub(crate) input: Option<RawJson>,
}

impl NodeOutput {
    /// An output without data.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a top-level field of the run's data. A value that does not serialize fails the node with
    /// `INVALID_OUTPUT` and its path.
    pub fn data<T: Serialize + ?Sized>(mut self, field: impl Into<String>, value: &T) -> Self {
        let field = field.into();
        match RawJson::of(value) {
            Ok(value) => drop(self.data.insert(field, value)),
            Err(error) => self = self.refuse(&field, &error),
        }
        self
    }

    /// Keeps the first value that does not serialize, with its path from the output's top.
    fn refuse(mut self, field: &str, error: &JsonError) -> Self {
        self.error.get_or_insert_with(|| within(field, error));
        self
    }

    /// The condition that selects among the node's edges.
    pub fn condition(mut self, condition: impl AsRef<str>) -> Self {
        self.condition = Some(condition.as_ref().to_owned());
        self
    }

    /// What the person wants, for applications that route by it. Kept in the data under `intent`.
    pub fn intent(mut self, intent: impl Into<String>) -> Self {
        self.intent = Some(intent.into());
        self
    }

    /// A message to show, sent as one `message` chunk when the node ends.
    pub fn ui(mut self, message: impl Into<String>) -> Self {
        self.ui = Some(message.into());
        self
    }

    /// Hands the run over to the latest version of another workflow, which goes on with the data and the same input.
    pub fn transition_to(mut self, workflow: impl Into<String>) -> Self {
        self.handoff = Some(Handoff { workflow: workflow.into(), input: None });
        self
    }

    /// Hands the run over to another workflow with a new input.
    pub fn transition_with<T: Serialize + ?Sized>(mut self, workflow: impl Into<String>, input: &T) -> Self {
        match RawJson::of(input) {
            Ok(input) => self.handoff = Some(Handoff { workflow: workflow.into(), input: Some(input) }),
            Err(error) => self = self.refuse("input", &error),
        }
        self
    }
}

/// The error of a value as that of what has it as a field.
pub(crate) fn within(field: &str, error: &JsonError) -> JsonError {
    let field = field.replace('~', "~0").replace('/', "~1");
    JsonError::new(format!("/{field}{}", error.path), error.message.clone())
}

/// The failure of what is not JSON, such as the output of a node. What the value's author says about it goes to tracing only.
pub(crate) fn unwritable(ctx: &NodeContext, what: &str, error: &JsonError) -> Failure {
    let (workflow, node) = (ctx.workflow(), ctx.node());
    tracing::error!(workflow, node, path = error.path, error = error.message, "{what} does not serialize");
    let message = format!("{what} of the node `{node}` of the workflow `{workflow}` is not JSON");
    let what = "numbers must be finite and keys must be texts; the server's log has the cause";
    Failure::new(FailureCode::InvalidOutput, message).with_issues([Issue::new(error.path.as_str(), "json", what)])
}
