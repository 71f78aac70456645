//! Rows as records; what does not read back says which column is at fault.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, InvalidId, RequestId, ResumeToken, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerRecord, AskKey, CheckpointRecord, InterruptRecord, InterruptStatus, NewCheckpoint, NewInterrupt, NewRun,
    Receipt, RunRecord, RunStatus, Scalar, StoreError, StoreErrorKind, WorkflowPin,
};
use sqlx::{Decode, Row, Sqlite, Type, sqlite::SqliteRow};

/// Stored data that does not read back.
#[derive(Debug, Clone)]
pub(crate) struct Malformed(pub(crate) String);

impl Malformed {
    pub(crate) fn told(&self, operation: &'static str) -> StoreError {
        StoreError::new(StoreErrorKind::Corrupt, operation, format!("stored data does not read back: {}", self.0))
    }
}

pub(crate) type Reading<T> = Result<T, Malformed>;

pub(crate) fn get<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(row: &'r SqliteRow, column: &str) -> Reading<T> {
    row.try_get(column).map_err(|_| Malformed(format!("column {column} is missing or of another type")))
}

pub(crate) fn text(row: &SqliteRow, column: &str) -> Reading<String> {
    get(row, column)
}

pub(crate) fn blob(row: &SqliteRow, column: &str) -> Reading<Bytes> {
    get::<Vec<u8>>(row, column).map(Bytes::from)
}

pub(crate) fn optional_blob(row: &SqliteRow, column: &str) -> Reading<Option<Bytes>> {
    Ok(get::<Option<Vec<u8>>>(row, column)?.map(Bytes::from))
}

pub(crate) fn flag(row: &SqliteRow, column: &str) -> Reading<bool> {
    match get::<i64>(row, column)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Malformed(format!("column {column} holds {other} where 0 or 1 belongs"))),
    }
}

pub(crate) fn count(row: &SqliteRow, column: &str) -> Reading<u64> {
    let value = get::<i64>(row, column)?;
    u64::try_from(value).map_err(|_| Malformed(format!("column {column} is negative")))
}

pub(crate) fn time(row: &SqliteRow, column: &str) -> Reading<Timestamp> {
    get(row, column).map(Timestamp::from_millis)
}

fn id<T>(row: &SqliteRow, column: &str, parse: impl FnOnce(&str) -> Result<T, InvalidId>) -> Reading<T> {
    parse(get(row, column)?).map_err(|error| Malformed(format!("column {column}: {error}")))
}

fn optional_id<T>(
    row: &SqliteRow,
    column: &str,
    parse: impl FnOnce(&str) -> Result<T, InvalidId>,
) -> Reading<Option<T>> {
    match get::<Option<&str>>(row, column)? {
        Some(text) => parse(text).map(Some).map_err(|error| Malformed(format!("column {column}: {error}"))),
        None => Ok(None),
    }
}

pub(crate) fn run_id(row: &SqliteRow) -> Reading<RunId> {
    id(row, "run_id", |text| RunId::new(text))
}

pub(crate) fn session_id(row: &SqliteRow) -> Reading<SessionId> {
    id(row, "session_id", |text| SessionId::new(text))
}

pub(crate) fn request_id(row: &SqliteRow) -> Reading<RequestId> {
    id(row, "request_id", |text| RequestId::new(text))
}

pub(crate) fn checkpoint_id(row: &SqliteRow) -> Reading<CheckpointId> {
    id(row, "checkpoint_id", |text| CheckpointId::new(text))
}

/// Where a run stands.
pub(crate) fn status(row: &SqliteRow) -> Reading<RunStatus> {
    let status: &str = get(row, "status")?;
    RunStatus::parse(status).ok_or_else(|| Malformed(format!("a run's status is {status:?}")))
}

/// A row of `runs`.
pub(crate) fn run(row: &SqliteRow) -> Reading<RunRecord> {
    let workflow = WorkflowPin {
        id: text(row, "workflow_id")?.into(),
        version: text(row, "workflow_version")?.into(),
        fingerprint: text(row, "fingerprint")?.into(),
    };
    let new =
        NewRun { run_id: run_id(row)?, session_id: session_id(row)?, workflow, context: context(row)?, follows: None };
    let mut record = RunRecord::new(new, time(row, "created_at")?);
    record.status = status(row)?;
    record.updated_at = time(row, "updated_at")?;
    record.fence = count(row, "fence")?;
    record.lease_until = Some(time(row, "lease_until")?).filter(|until| *until > Timestamp::MIN);
    record.answers = count(row, "answers")?;
    record.cancel_requested = flag(row, "cancel_requested")?;
    record.outcome = optional_blob(row, "outcome")?;
    record.reason = get(row, "reason")?;
    Ok(record)
}

/// A row of `interrupts`, of a run with this id and context.
pub(crate) fn question(
    row: &SqliteRow,
    run_id: RunId,
    context: Arc<BTreeMap<String, Scalar>>,
) -> Reading<InterruptRecord> {
    let mut record = published(row, run_id, session_id(row)?, context)?;
    let status: &str = get(row, "status")?;
    record.status =
        InterruptStatus::parse(status).ok_or_else(|| Malformed(format!("a question's status is {status:?}")))?;
    record.answer = optional_blob(row, "answer")?;
    let takes_receipt = matches!(record.status, InterruptStatus::Answered | InterruptStatus::Cancelled);
    if takes_receipt && get::<Option<i64>>(row, "seq")?.is_some() {
        record.receipt = Some(Receipt {
            request_id: record.request_id.clone(),
            run_id: record.run_id.clone(),
            seq: count(row, "seq")?,
            at: time(row, "answered_at")?,
            actor: get(row, "actor")?,
        });
    }
    Ok(record)
}

/// The columns that a question has from the start.
pub(crate) fn published(
    row: &SqliteRow,
    run_id: RunId,
    session_id: SessionId,
    context: Arc<BTreeMap<String, Scalar>>,
) -> Reading<InterruptRecord> {
    let created_at = time(row, "created_at")?;
    let new = NewInterrupt {
        request_id: request_id(row)?,
        token: id(row, "token", |text| ResumeToken::parse(text))?,
        ask: AskKey(text(row, "ask")?),
        workflow: text(row, "workflow")?,
        node: text(row, "node")?,
        question: blob(row, "question")?,
        expires_in: std::time::Duration::ZERO,
        default: optional_blob(row, "default_answer")?,
        optional_cancel: flag(row, "optional_cancel")?,
        after_response_completed: flag(row, "after_response")?,
    };
    let mut record = InterruptRecord::new(new, run_id, session_id, context, created_at);
    record.expires_at = time(row, "expires_at")?;
    Ok(record)
}

/// An accepted answer, or a default that applied.
pub(crate) fn answer(row: &SqliteRow) -> Reading<AnswerRecord> {
    Ok(AnswerRecord {
        seq: count(row, "seq")?,
        request_id: request_id(row)?,
        ask: AskKey(text(row, "ask")?),
        answer: blob(row, "answer")?,
        at: time(row, "answered_at")?,
        actor: get(row, "actor")?,
        by_default: get::<&str>(row, "status")? == InterruptStatus::Expired.as_str(),
    })
}

/// A row of `checkpoints` with its session's id and its payload; its questions are rows of their own.
pub(crate) fn checkpoint(row: &SqliteRow) -> Reading<CheckpointRecord> {
    let new = NewCheckpoint {
        id: checkpoint_id(row)?,
        label: get(row, "label")?,
        nodes: names(row, "nodes")?,
        workflow: text(row, "workflow")?,
        workflow_version: get(row, "workflow_version")?,
        state: blob(row, "state")?,
        structured_stream_ids: names(row, "structured_stream_ids")?,
    };
    let mut record = CheckpointRecord::new(new, session_id(row)?, count(row, "turn_index")?, time(row, "created_at")?);
    record.parent = optional_id(row, "parent", |text| CheckpointId::new(text))?;
    record.parent_session = optional_id(row, "parent_session", |text| SessionId::new(text))?;
    record.forked_from = optional_id(row, "forked_from", |text| CheckpointId::new(text))?;
    record.run_id = optional_id(row, "run_id", |text| RunId::new(text))?;
    record.snapshot = optional_blob(row, "snapshot")?;
    Ok(record)
}

pub(crate) fn names(row: &SqliteRow, column: &str) -> Reading<Vec<String>> {
    serde_json::from_str(get(row, column)?).map_err(|_| Malformed(format!("column {column} is no list of names")))
}

/// The context of a run, as [`encode_context`] wrote it.
pub(crate) fn context(row: &SqliteRow) -> Reading<BTreeMap<String, Scalar>> {
    let stored: &str = get(row, "context")?;
    if stored == "{}" {
        return Ok(BTreeMap::new());
    }
    let malformed = || Malformed("column context is no map of scalars".to_owned());
    let encoded: BTreeMap<String, String> = serde_json::from_str(stored).map_err(|_| malformed())?;
    encoded.into_iter().map(|(key, value)| Ok((key, scalar(&value).ok_or_else(malformed)?))).collect()
}

pub(crate) fn encode_context(context: &BTreeMap<String, Scalar>) -> String {
    if context.is_empty() {
        return "{}".to_owned();
    }
    let encoded: serde_json::Map<_, _> =
        context.iter().map(|(key, value)| (key.clone(), encode_scalar(value).into())).collect();
    serde_json::Value::Object(encoded).to_string()
}

pub(crate) fn encode_names(names: &[String]) -> String {
    serde_json::Value::from(names).to_string()
}

/// A context value as text that tells types apart, for exact comparison.
pub(crate) fn encode_scalar(value: &Scalar) -> String {
    match value {
        Scalar::Bool(value) => format!("b:{value}"),
        Scalar::Int(value) => format!("i:{value}"),
        Scalar::Text(value) => format!("t:{value}"),
    }
}

fn scalar(encoded: &str) -> Option<Scalar> {
    let (kind, value) = encoded.split_once(':')?;
    match kind {
        "b" => value.parse().ok().map(Scalar::Bool),
        "i" => value.parse().ok().map(Scalar::Int),
        "t" => Some(Scalar::Text(value.into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_value_keeps_its_type() {
        let values = [
            Scalar::Bool(true),
            Scalar::Int(i64::MIN),
            Scalar::Text("1".into()),
            Scalar::Text("a:b\0\u{1f600}".into()),
            Scalar::Text("".into()),
        ];
        for value in values {
            assert_eq!(scalar(&encode_scalar(&value)), Some(value));
        }
        assert_eq!(scalar("x:1"), None);
        assert_eq!(scalar("i:one"), None);
    }
}
