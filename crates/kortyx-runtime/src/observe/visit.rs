//! Where in a run a moment belongs.

use std::sync::Arc;

use kortyx_protocol::FailureCode;

/// A visit of a run to a node: one pass over it, from where it is entered to where it is left or pauses.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Visit {
    /// The workflow of the node: of a child, the child's own.
    pub workflow: Arc<str>,
    /// The workflow's version.
    pub version: Arc<str>,
    /// The node.
    pub node: Arc<str>,
    /// The activation's number within the run.
    pub activation: u32,
    /// How often the run had been at the node before, in this workflow of it.
    pub visit: u32,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The activation has done something before: a pause or a failed attempt has ended, or a process was gone.
    pub again: bool,
    /// The call that the node works for, in a child workflow.
    pub parent: Option<ParentCall>,
}

impl Visit {
    /// A first visit, as the first activation of a run, outside of children. For tests of observers.
    pub fn new(workflow: impl Into<Arc<str>>, version: impl Into<Arc<str>>, node: impl Into<Arc<str>>) -> Self {
        let (workflow, version, node) = (workflow.into(), version.into(), node.into());
        Self { workflow, version, node, activation: 1, visit: 0, attempt: 1, again: false, parent: None }
    }
}

/// The call that a child workflow answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParentCall {
    /// The activation that calls.
    pub activation: u32,
    /// Its call.
    pub call: CallName,
}

/// A call of a node to its context.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallName {
    /// The author's id.
    pub id: Arc<str>,
    /// Which use of the id it is in the activation, from 0.
    pub occurrence: u32,
}

impl CallName {
    /// A call by its id and occurrence. For tests of observers.
    pub fn new(id: impl Into<Arc<str>>, occurrence: u32) -> Self {
        Self { id: id.into(), occurrence }
    }
}

/// How something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// Well.
    Completed,
    /// With a failure of this code.
    Failed(FailureCode),
    /// Not yet: it waits for people and goes on when they have answered. No error.
    Paused,
    /// Its future was dropped: the node waits for it no longer, or the run is no longer driven here. No error.
    Dropped,
}

impl End {
    /// The stable lower-case name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
            Self::Paused => "paused",
            Self::Dropped => "dropped",
        }
    }

    /// The code of a failure.
    pub fn code(self) -> Option<FailureCode> {
        match self {
            Self::Failed(code) => Some(code),
            _ => None,
        }
    }
}

/// A model, as its provider names it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelName {
    /// Its name.
    pub model: Arc<str>,
    /// Its provider, in the words of the OpenTelemetry conventions for generative models where they have one: `openai`, `anthropic`, …
    pub provider: Option<Arc<str>>,
}

impl ModelName {
    /// A model of this name, of a provider that is not told.
    pub fn new(model: impl Into<Arc<str>>) -> Self {
        Self { model: model.into(), provider: None }
    }

    /// Tells the provider.
    #[must_use]
    pub fn of(mut self, provider: impl Into<Arc<str>>) -> Self {
        self.provider = Some(provider.into());
        self
    }
}
