//! Checkpoints as clients see them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{CheckpointId, PendingRequest, RawJson, ResumeToken, RunId, SessionId, Timestamp, millis};

/// A checkpoint in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CheckpointSummary {
    /// Its id.
    pub id: CheckpointId,
    /// Its session.
    pub session_id: SessionId,
    /// Its place in the session, from 0.
    pub turn_index: u64,
    /// When it was made; travels as epoch milliseconds.
    #[serde(with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "i64"))]
    pub created_at: Timestamp,
    /// The nodes that the turn visited, in order.
    pub nodes: Vec<String>,
    /// The workflow in force after the turn.
    pub workflow: String,
    /// That workflow's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_version: Option<String>,
    /// A name for people, such as `session start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The checkpoint before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_checkpoint_id: Option<CheckpointId>,
    /// Of a fork's first: the session that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    /// Of a fork's first: the checkpoint that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<CheckpointId>,
}

/// What a turn did besides changing the state.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CheckpointEffects {
    /// Structured streams that the turn opened.
    pub structured_stream_ids: Vec<String>,
    /// Secrets of the questions that were open at its end.
    pub interrupt_tokens: Vec<ResumeToken>,
}

/// A checkpoint with what it holds.
///
/// It holds secrets of open questions: keep it where only those are who may answer.
#[derive(Debug, Clone)]
pub struct CheckpointView {
    /// What a list shows of it.
    pub summary: CheckpointSummary,
    /// The run whose turn it closes; none at a session's start.
    pub run_id: Option<RunId>,
    /// The workflow's public data after the turn: never the journal or other internals.
    pub state: RawJson,
    /// What the turn did besides changing the state.
    pub effects: CheckpointEffects,
    /// The questions that were open at its end and still are, oldest first.
    pub active_pending_requests: Vec<PendingRequest>,
}

/// What a rollback did.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolledBack {
    /// The session.
    pub session_id: SessionId,
    /// The checkpoint that is its head now.
    pub head: CheckpointId,
    /// Structured streams that abandoned turns opened: a client drops them.
    pub invalidated_structured_stream_ids: Vec<String>,
    /// Secrets that answer nothing any more.
    pub invalidated_interrupt_tokens: Vec<ResumeToken>,
    /// The questions that are open now, oldest first.
    pub active_pending_requests: Vec<PendingRequest>,
}

/// What a fork made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    /// The new session.
    pub session_id: SessionId,
    /// The session that it was forked from.
    pub parent_session_id: SessionId,
    /// The checkpoint that it was forked from.
    pub forked_from: CheckpointId,
    /// Its first checkpoint.
    pub checkpoint: CheckpointView,
}

/// The view as it travels: the summary's fields beside its own.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CheckpointView"))]
#[serde(rename_all = "camelCase")]
struct Wire {
    id: CheckpointId,
    session_id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    turn_index: u64,
    #[serde(with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "i64"))]
    created_at: Timestamp,
    nodes: Vec<String>,
    workflow: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workflow_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_checkpoint_id: Option<CheckpointId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forked_from: Option<CheckpointId>,
    state: RawJson,
    effects: CheckpointEffects,
    active_pending_requests: Vec<PendingRequest>,
}

impl Serialize for CheckpointView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let CheckpointView { summary, run_id, state, effects, active_pending_requests } = self.clone();
        let wire = Wire {
            id: summary.id,
            session_id: summary.session_id,
            run_id,
            turn_index: summary.turn_index,
            created_at: summary.created_at,
            nodes: summary.nodes,
            workflow: summary.workflow,
            workflow_version: summary.workflow_version,
            label: summary.label,
            parent_checkpoint_id: summary.parent_checkpoint_id,
            parent_session_id: summary.parent_session_id,
            forked_from: summary.forked_from,
            state,
            effects,
            active_pending_requests,
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CheckpointView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let summary = CheckpointSummary {
            id: wire.id,
            session_id: wire.session_id,
            turn_index: wire.turn_index,
            created_at: wire.created_at,
            nodes: wire.nodes,
            workflow: wire.workflow,
            workflow_version: wire.workflow_version,
            label: wire.label,
            parent_checkpoint_id: wire.parent_checkpoint_id,
            parent_session_id: wire.parent_session_id,
            forked_from: wire.forked_from,
        };
        let Wire { run_id, state, effects, active_pending_requests, .. } = wire;
        Ok(Self { summary, run_id, state, effects, active_pending_requests })
    }
}

#[cfg(feature = "schema")]
crate::schema::as_wire!(CheckpointView, Wire);
