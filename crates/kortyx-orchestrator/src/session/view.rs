//! Checkpoints and their open questions as callers see them.

use kortyx_protocol::{CheckpointEffects, CheckpointSummary, CheckpointView, PendingRequest, RawJson, ResumeToken};
use kortyx_store::{CheckpointRecord, InterruptRecord};

use super::state::SessionState;
use crate::{OrchestratorError, driver::corrupt, present};

pub(super) fn summary(record: &CheckpointRecord) -> CheckpointSummary {
    let checkpoint = &record.checkpoint;
    CheckpointSummary {
        id: checkpoint.id.clone(),
        session_id: record.session_id.clone(),
        turn_index: record.turn_index,
        created_at: record.created_at,
        nodes: checkpoint.nodes.clone(),
        workflow: checkpoint.workflow.clone(),
        workflow_version: checkpoint.workflow_version.clone(),
        label: checkpoint.label.clone(),
        parent_checkpoint_id: record.parent.clone(),
        parent_session_id: record.parent_session.clone(),
        forked_from: record.forked_from.clone(),
    }
}

/// A checkpoint with the questions that are open of it now.
pub(super) fn view(record: &CheckpointRecord, open: Vec<InterruptRecord>) -> Result<CheckpointView, OrchestratorError> {
    let data = SessionState::of(record)?.data;
    let state = RawJson::of(&data).map_err(|error| OrchestratorError::Corrupt(corrupt(&error.to_string())))?;
    Ok(CheckpointView {
        summary: summary(record),
        run_id: record.run_id.clone(),
        state,
        effects: CheckpointEffects {
            structured_stream_ids: record.checkpoint.structured_stream_ids.clone(),
            interrupt_tokens: record.interrupts.iter().map(|interrupt| interrupt.token.clone()).collect(),
        },
        active_pending_requests: pending(open)?,
    })
}

pub(super) fn pending(open: Vec<InterruptRecord>) -> Result<Vec<PendingRequest>, OrchestratorError> {
    open.into_iter().map(pending_request).collect()
}

fn pending_request(record: InterruptRecord) -> Result<PendingRequest, OrchestratorError> {
    let (schema, options) = present::question(&record)?.input().into();
    let ttl = record.expires_at.since(record.created_at);
    Ok(PendingRequest {
        token: record.token,
        request_id: record.request_id,
        session_id: record.session_id,
        run_id: record.run_id,
        workflow: record.workflow,
        node: record.node,
        schema,
        options,
        created_at: record.created_at,
        ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
    })
}

/// Each once, in the order in which they come first.
pub(super) fn distinct<T>(all: impl IntoIterator<Item = T>, same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        if !kept.iter().any(|known| same(known, &one)) {
            kept.push(one);
        }
    }
    kept
}

/// The secrets of questions, but for those that are open.
pub(super) fn closed_tokens<'a>(
    questions: impl IntoIterator<Item = &'a InterruptRecord>,
    open: &[InterruptRecord],
) -> Vec<ResumeToken> {
    let closed = questions.into_iter().filter(|question| !open.iter().any(|it| it.request_id == question.request_id));
    distinct(closed.map(|question| question.token.clone()), ResumeToken::matches)
}
