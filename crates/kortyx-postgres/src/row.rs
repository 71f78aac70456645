//! Rows of a reply as records; what does not read back says which part is at fault.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, ResumeToken, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerRecord, AskKey, CheckpointRecord, InterruptRecord, InterruptStatus, NewCheckpoint, NewInterrupt, NewRun,
    Receipt, RunRecord, RunStatus, Scalar, StoreError, StoreErrorKind, WorkflowPin,
};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    client::Row,
    encoding::{decode, decode_context},
};

/// Stored data that does not read back.
#[derive(Debug, Clone)]
pub(crate) struct Malformed(pub(crate) String);

impl Malformed {
    pub(crate) fn told(&self, operation: &'static str) -> StoreError {
        StoreError::new(StoreErrorKind::Corrupt, operation, format!("stored data does not read back: {}", self.0))
    }
}

pub(crate) type Reading<T> = Result<T, Malformed>;

/// The data of a row.
pub(crate) fn data<T: DeserializeOwned>(row: &Row) -> Reading<T> {
    // Only what serde says of a shape is told, never a value.
    let malformed = |error: serde_json::Error| Malformed(format!("a row {} at column {}", row.tag, error.column()));
    serde_json::from_str(row.data.as_deref().unwrap_or("null")).map_err(malformed)
}

/// A payload that every row of this kind has.
pub(crate) fn payload(row: &mut Row, place: usize) -> Reading<Bytes> {
    optional(row, place).ok_or_else(|| Malformed(format!("a row {} has no payload {place}", row.tag)))
}

/// A payload that a row may have.
pub(crate) fn optional(row: &mut Row, place: usize) -> Option<Bytes> {
    row.payloads.get_mut(place).and_then(Option::take)
}

pub(crate) fn context(stored: BTreeMap<String, String>) -> Reading<BTreeMap<String, Scalar>> {
    decode_context(stored).ok_or_else(|| Malformed("a context holds what is no scalar".to_owned()))
}

pub(crate) fn status(name: &str) -> Reading<RunStatus> {
    RunStatus::parse(name).ok_or_else(|| Malformed("a run has an unknown status".to_owned()))
}

#[derive(Deserialize)]
struct RunData {
    run_id: RunId,
    session_id: SessionId,
    workflow_id: String,
    workflow_version: String,
    fingerprint: String,
    context: BTreeMap<String, String>,
    status: String,
    created_at: i64,
    updated_at: i64,
    fence: u64,
    lease_until: i64,
    answers: u64,
    cancel_requested: bool,
    reason: Option<String>,
}

pub(crate) fn run(row: &mut Row) -> Reading<RunRecord> {
    let data: RunData = data(row)?;
    let new = NewRun {
        run_id: data.run_id,
        session_id: data.session_id,
        workflow: WorkflowPin {
            id: decode(data.workflow_id).into(),
            version: decode(data.workflow_version).into(),
            fingerprint: decode(data.fingerprint).into(),
        },
        context: context(data.context)?,
        follows: None,
    };
    let mut record = RunRecord::new(new, Timestamp::from_millis(data.created_at));
    record.status = status(&data.status)?;
    record.updated_at = Timestamp::from_millis(data.updated_at);
    record.fence = data.fence;
    record.lease_until = Some(data.lease_until).filter(|until| *until > 0).map(Timestamp::from_millis);
    record.answers = data.answers;
    record.cancel_requested = data.cancel_requested;
    record.outcome = optional(row, 0);
    record.response = optional(row, 1);
    record.reason = data.reason.map(decode);
    Ok(record)
}

#[derive(Deserialize)]
struct QuestionData {
    request_id: RequestId,
    run_id: RunId,
    session_id: SessionId,
    context: BTreeMap<String, String>,
    token: String,
    ask: String,
    workflow: String,
    node: String,
    created_at: i64,
    expires_at: i64,
    status: String,
    optional_cancel: bool,
    after_response: bool,
    seq: Option<u64>,
    answered_at: Option<i64>,
    actor: Option<String>,
}

pub(crate) fn question(row: &mut Row) -> Reading<InterruptRecord> {
    let data: QuestionData = data(row)?;
    let new = NewInterrupt {
        request_id: data.request_id,
        token: ResumeToken::parse(data.token).map_err(|_| Malformed("a question has no token".to_owned()))?,
        ask: AskKey(decode(data.ask)),
        workflow: decode(data.workflow),
        node: decode(data.node),
        question: payload(row, 0)?,
        expires_in: Duration::ZERO,
        default: optional(row, 1),
        optional_cancel: data.optional_cancel,
        after_response_completed: data.after_response,
    };
    let context = Arc::new(context(data.context)?);
    let created_at = Timestamp::from_millis(data.created_at);
    let mut record = InterruptRecord::new(new, data.run_id, data.session_id, context, created_at);
    record.expires_at = Timestamp::from_millis(data.expires_at);
    record.status =
        InterruptStatus::parse(&data.status).ok_or_else(|| Malformed("a question has an unknown status".to_owned()))?;
    record.answer = optional(row, 2);
    if matches!(record.status, InterruptStatus::Answered | InterruptStatus::Cancelled)
        && let (Some(seq), Some(at)) = (data.seq, data.answered_at)
    {
        record.receipt = Some(Receipt {
            request_id: record.request_id.clone(),
            run_id: record.run_id.clone(),
            seq,
            at: Timestamp::from_millis(at),
            actor: data.actor.map(decode),
        });
    }
    Ok(record)
}

#[derive(Deserialize)]
struct AnswerData {
    seq: u64,
    request_id: RequestId,
    ask: String,
    at: i64,
    actor: Option<String>,
    by_default: bool,
}

pub(crate) fn answer(row: &mut Row) -> Reading<AnswerRecord> {
    let data: AnswerData = data(row)?;
    Ok(AnswerRecord {
        seq: data.seq,
        request_id: data.request_id,
        ask: AskKey(decode(data.ask)),
        answer: payload(row, 0)?,
        at: Timestamp::from_millis(data.at),
        actor: data.actor.map(decode),
        by_default: data.by_default,
    })
}

#[derive(Deserialize)]
struct CheckpointData {
    id: CheckpointId,
    session_id: SessionId,
    turn_index: u64,
    created_at: i64,
    abandoned: bool,
    parent: Option<CheckpointId>,
    parent_session: Option<SessionId>,
    forked_from: Option<CheckpointId>,
    label: Option<String>,
    nodes: Vec<String>,
    workflow: String,
    version: Option<String>,
    streams: Vec<String>,
    run_id: Option<RunId>,
}

/// A checkpoint; its questions are rows of their own.
pub(crate) fn checkpoint(row: &mut Row) -> Reading<CheckpointRecord> {
    let data: CheckpointData = data(row)?;
    let new = NewCheckpoint {
        id: data.id,
        label: data.label.map(decode),
        nodes: data.nodes.into_iter().map(decode).collect(),
        workflow: decode(data.workflow),
        workflow_version: data.version.map(decode),
        state: payload(row, 0)?,
        structured_stream_ids: data.streams.into_iter().map(decode).collect(),
    };
    let created_at = Timestamp::from_millis(data.created_at);
    let mut record = CheckpointRecord::new(new, data.session_id, data.turn_index, created_at);
    record.parent = data.parent;
    record.parent_session = data.parent_session;
    record.forked_from = data.forked_from;
    record.run_id = data.run_id;
    record.snapshot = optional(row, 1);
    record.abandoned = data.abandoned;
    Ok(record)
}

/// A receipt as a head tells it.
#[derive(Debug, Deserialize)]
pub(crate) struct ReceiptData {
    request_id: RequestId,
    run_id: RunId,
    seq: u64,
    at: i64,
    actor: Option<String>,
}

impl From<ReceiptData> for Receipt {
    fn from(data: ReceiptData) -> Self {
        Self {
            request_id: data.request_id,
            run_id: data.run_id,
            seq: data.seq,
            at: Timestamp::from_millis(data.at),
            actor: data.actor.map(decode),
        }
    }
}
