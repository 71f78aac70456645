//! What became of an execution.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error, ser::SerializeMap};
use serde_json::Value;

use crate::{CheckpointId, Failure, PendingQuestion, RunId, SessionId, present::present};

/// Tokens that a run's models used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Both, as the provider counts.
    pub total: u64,
}

/// What became of an execution, for now or for good.
///
/// `T` is the workflow's output.
///
/// ```
/// use kortyx_protocol::{ExecutionResult, RunId, SessionId, json};
///
/// let result = ExecutionResult::completed(RunId::new("run-1")?, SessionId::new("s")?, 7);
/// assert_eq!(json::to_string(&result)?, r#"{"runId":"run-1","sessionId":"s","status":"completed","data":7}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub enum ExecutionResult<T = Value> {
    /// It finished.
    Completed {
        /// The run.
        run_id: RunId,
        /// Its session.
        session_id: SessionId,
        /// The workflow's output.
        data: T,
        /// The checkpoint that keeps the turn.
        checkpoint_id: Option<CheckpointId>,
        /// Tokens used.
        usage: Option<Usage>,
    },
    /// It waits for people.
    Suspended {
        /// The run.
        run_id: RunId,
        /// Its session.
        session_id: SessionId,
        /// Every open question, oldest first; at least one.
        interrupts: Vec<PendingQuestion>,
        /// The checkpoint that keeps the turn.
        checkpoint_id: Option<CheckpointId>,
        /// Tokens used.
        usage: Option<Usage>,
    },
    /// It was cancelled.
    Cancelled {
        /// The run.
        run_id: RunId,
        /// Its session.
        session_id: SessionId,
        /// Why, for people.
        reason: Option<String>,
        /// The checkpoint that keeps the turn.
        checkpoint_id: Option<CheckpointId>,
        /// Tokens used.
        usage: Option<Usage>,
    },
    /// It failed.
    Failed {
        /// The run.
        run_id: RunId,
        /// Its session.
        session_id: SessionId,
        /// What went wrong.
        error: Box<Failure>,
        /// The checkpoint that keeps the turn.
        checkpoint_id: Option<CheckpointId>,
        /// Tokens used.
        usage: Option<Usage>,
    },
}

impl<T> ExecutionResult<T> {
    /// A finished run.
    pub fn completed(run_id: RunId, session_id: SessionId, data: T) -> Self {
        Self::Completed { run_id, session_id, data, checkpoint_id: None, usage: None }
    }

    /// A run that waits for people.
    pub fn suspended(run_id: RunId, session_id: SessionId, interrupts: Vec<PendingQuestion>) -> Self {
        Self::Suspended { run_id, session_id, interrupts, checkpoint_id: None, usage: None }
    }

    /// A cancelled run.
    pub fn cancelled(run_id: RunId, session_id: SessionId, reason: Option<String>) -> Self {
        Self::Cancelled { run_id, session_id, reason, checkpoint_id: None, usage: None }
    }

    /// A failed run.
    pub fn failed(run_id: RunId, session_id: SessionId, error: Failure) -> Self {
        Self::Failed { run_id, session_id, error: Box::new(error), checkpoint_id: None, usage: None }
    }

    /// Names the checkpoint that keeps the turn.
    #[must_use]
    pub fn with_checkpoint(mut self, id: CheckpointId) -> Self {
        let (Self::Completed { checkpoint_id, .. }
        | Self::Suspended { checkpoint_id, .. }
        | Self::Cancelled { checkpoint_id, .. }
        | Self::Failed { checkpoint_id, .. }) = &mut self;
        *checkpoint_id = Some(id);
        self
    }

    /// Names the tokens used.
    #[must_use]
    pub fn with_usage(mut self, used: Usage) -> Self {
        let (Self::Completed { usage, .. }
        | Self::Suspended { usage, .. }
        | Self::Cancelled { usage, .. }
        | Self::Failed { usage, .. }) = &mut self;
        *usage = Some(used);
        self
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        let (Self::Completed { run_id, .. }
        | Self::Suspended { run_id, .. }
        | Self::Cancelled { run_id, .. }
        | Self::Failed { run_id, .. }) = self;
        run_id
    }

    /// Its session.
    pub fn session_id(&self) -> &SessionId {
        let (Self::Completed { session_id, .. }
        | Self::Suspended { session_id, .. }
        | Self::Cancelled { session_id, .. }
        | Self::Failed { session_id, .. }) = self;
        session_id
    }

    /// The checkpoint that keeps the turn, when known.
    pub fn checkpoint_id(&self) -> Option<&CheckpointId> {
        let (Self::Completed { checkpoint_id, .. }
        | Self::Suspended { checkpoint_id, .. }
        | Self::Cancelled { checkpoint_id, .. }
        | Self::Failed { checkpoint_id, .. }) = self;
        checkpoint_id.as_ref()
    }

    /// Tokens used, when known.
    pub fn usage(&self) -> Option<Usage> {
        let (Self::Completed { usage, .. }
        | Self::Suspended { usage, .. }
        | Self::Cancelled { usage, .. }
        | Self::Failed { usage, .. }) = self;
        *usage
    }

    /// Its `status` on the wire.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "completed",
            Self::Suspended { .. } => "suspended",
            Self::Cancelled { .. } => "cancelled",
            Self::Failed { .. } => "failed",
        }
    }

    /// Every open question; none unless suspended.
    pub fn interrupts(&self) -> &[PendingQuestion] {
        match self {
            Self::Suspended { interrupts, .. } => interrupts,
            _ => &[],
        }
    }

    /// The same with another output, or the error that `f` returns.
    pub fn try_map<U, E>(self, f: impl FnOnce(T) -> Result<U, E>) -> Result<ExecutionResult<U>, E> {
        Ok(match self {
            Self::Completed { run_id, session_id, data, checkpoint_id, usage } => {
                ExecutionResult::Completed { run_id, session_id, data: f(data)?, checkpoint_id, usage }
            }
            Self::Suspended { run_id, session_id, interrupts, checkpoint_id, usage } => {
                ExecutionResult::Suspended { run_id, session_id, interrupts, checkpoint_id, usage }
            }
            Self::Cancelled { run_id, session_id, reason, checkpoint_id, usage } => {
                ExecutionResult::Cancelled { run_id, session_id, reason, checkpoint_id, usage }
            }
            Self::Failed { run_id, session_id, error, checkpoint_id, usage } => {
                ExecutionResult::Failed { run_id, session_id, error, checkpoint_id, usage }
            }
        })
    }
}

impl<T: Serialize> Serialize for ExecutionResult<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("runId", self.run_id())?;
        map.serialize_entry("sessionId", self.session_id())?;
        map.serialize_entry("status", self.status())?;
        match self {
            Self::Completed { data, .. } => map.serialize_entry("data", data)?,
            Self::Suspended { interrupts, .. } => {
                map.serialize_entry("interrupts", interrupts)?;
                if let Some(first) = interrupts.first() {
                    map.serialize_entry("interrupt", first)?;
                    map.serialize_entry("resume", &first.resume)?;
                }
            }
            Self::Cancelled { reason: Some(reason), .. } => map.serialize_entry("reason", reason)?,
            Self::Cancelled { reason: None, .. } => {}
            Self::Failed { error, .. } => map.serialize_entry("error", error)?,
        }
        if let Some(checkpoint_id) = self.checkpoint_id() {
            map.serialize_entry("checkpointId", checkpoint_id)?;
        }
        if let Some(usage) = self.usage() {
            map.serialize_entry("usage", &usage)?;
        }
        map.end()
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Completed,
    Suspended,
    Cancelled,
    Failed,
}

/// The result as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de>"))]
struct Read<T> {
    run_id: RunId,
    session_id: SessionId,
    status: Status,
    #[serde(default, deserialize_with = "present")]
    data: Option<T>,
    interrupts: Option<Vec<PendingQuestion>>,
    reason: Option<String>,
    error: Option<Box<Failure>>,
    checkpoint_id: Option<CheckpointId>,
    usage: Option<Usage>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ExecutionResult<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Read { run_id, session_id, status, data, interrupts, reason, error, checkpoint_id, usage } =
            Read::deserialize(deserializer)?;
        Ok(match status {
            Status::Completed => {
                let data = data.ok_or_else(|| D::Error::missing_field("data"))?;
                Self::Completed { run_id, session_id, data, checkpoint_id, usage }
            }
            Status::Suspended => {
                let interrupts = interrupts.ok_or_else(|| D::Error::missing_field("interrupts"))?;
                Self::Suspended { run_id, session_id, interrupts, checkpoint_id, usage }
            }
            Status::Cancelled => Self::Cancelled { run_id, session_id, reason, checkpoint_id, usage },
            Status::Failed => {
                let error = error.ok_or_else(|| D::Error::missing_field("error"))?;
                Self::Failed { run_id, session_id, error, checkpoint_id, usage }
            }
        })
    }
}
