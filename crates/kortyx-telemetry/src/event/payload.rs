//! What each type of event says.

use serde::{Serialize, Serializer};

use super::{
    GenerationCompleted, InterruptCancelled, InterruptCreated, InterruptExpired, InterruptResolved, SpanEnded,
    SpanFailed, SpanStarted, TokenUsage, ToolCompleted, ToolFailed, ToolStarted,
};

macro_rules! payloads {
    ($($(#[$doc:meta])* $name:literal => $variant:ident($payload:ty),)*) => {
        /// What happened. Its variant is the event's type.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Payload {
            $($(#[$doc])* $variant($payload),)*
        }

        impl Payload {
            /// Every type of event.
            pub const TYPES: &[&str] = &[$($name),*];

            /// The event's type.
            pub fn event_type(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }
        }

        /// Without the type, which stands beside it in the event.
        impl Serialize for Payload {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(payload) => payload.serialize(serializer),)*
                }
            }
        }
    };
}

payloads! {
    /// Something that takes time begins: a run, a node, a step, a child, a generation.
    "span.started" => SpanStarted(SpanStarted),
    /// It has ended, or pauses.
    "span.ended" => SpanEnded(SpanEnded),
    /// It failed.
    "span.failed" => SpanFailed(SpanFailed),
    /// A model has answered.
    "generation.completed" => GenerationCompleted(GenerationCompleted),
    /// A tool is run.
    "tool.started" => ToolStarted(ToolStarted),
    /// A tool has ended, or asks a person.
    "tool.completed" => ToolCompleted(ToolCompleted),
    /// A tool failed.
    "tool.failed" => ToolFailed(ToolFailed),
    /// A question was published.
    "interrupt.created" => InterruptCreated(Box<InterruptCreated>),
    /// An answer was accepted.
    "interrupt.resolved" => InterruptResolved(InterruptResolved),
    /// A question's time ran out.
    "interrupt.expired" => InterruptExpired(InterruptExpired),
    /// A question was cancelled or withdrawn.
    "interrupt.cancelled" => InterruptCancelled(InterruptCancelled),
    /// A run was cancelled. It ends the run's span too.
    "run.cancelled" => RunCancelled(RunCancelled),
    /// A node leads to another, or to another workflow.
    "workflow.transitioned" => WorkflowTransitioned(WorkflowTransitioned),
    /// A turn left a checkpoint.
    "session.checkpointed" => SessionCheckpointed(SessionCheckpointed),
    /// A session was started from a checkpoint of another.
    "session.forked" => SessionForked(SessionForked),
    /// A session was taken back to a checkpoint.
    "session.rolled_back" => SessionRolledBack(SessionRolledBack),
}

/// The payload of `run.cancelled`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunCancelled {
    /// How long it was driven here since it started or went on, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The tokens that it used with its children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

/// The payload of `workflow.transitioned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowTransitioned {
    /// What leads there.
    pub kind: TransitionKind,
    /// The node that has ended.
    pub from_node_id: String,
    /// The next node. Left out at the end of a path and at a handoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_node_id: Option<String>,
    /// The workflow that goes on after a handoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_workflow_id: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_workflow_version: Option<String>,
    /// The condition, when the reported topology declares it: what else a node gives may be what a person said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// What leads from a node to what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TransitionKind {
    /// An edge.
    Edge,
    /// A handoff to another workflow.
    Handoff,
}

/// The payload of `session.checkpointed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionCheckpointed {
    /// The checkpoint.
    pub checkpoint_id: String,
}

/// The payload of `session.forked`. The event is about the new session and the run that left the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionForked {
    /// The checkpoint.
    pub checkpoint_id: String,
    /// The session that it is a checkpoint of.
    pub parent_session_id: String,
}

/// The payload of `session.rolled_back`. The event is about the run that left the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRolledBack {
    /// The checkpoint.
    pub checkpoint_id: String,
}
