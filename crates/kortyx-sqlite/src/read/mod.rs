//! What is read without the writer: one statement each, over a connection of its own, so that it sees one moment.

mod inspect;
mod list;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use kortyx_protocol::Timestamp;
use kortyx_store::{
    Bytes, CheckpointRecord, ChunkPage, InterruptRecord, InterruptStatus, RunRecord, Scalar, WorkflowPin,
};
use sqlx::sqlite::SqliteRow;

pub(crate) use self::{
    inspect::{RunListing, STATS, SessionListing, fetch_history, history, stats},
    list::{Listing, page},
};
use crate::{
    batch::is_due,
    row::{self, Malformed, Reading, get},
};

/// Checkpoints chosen by a query, with everything that belongs to them.
macro_rules! checkpoints {
    ($choice:literal) => {
        concat!(
            "WITH chosen (id) AS (",
            include_str!(concat!("../queries/read/", $choice, ".sql")),
            ")\n",
            include_str!("../queries/read/checkpoints.sql")
        )
    };
}

/// The checkpoint with the id `$1`.
pub(crate) const BY_ID: &str = checkpoints!("by_id");
/// The head of the session `$1`.
pub(crate) const HEAD: &str = checkpoints!("head");
/// All checkpoints of the session `$1`.
pub(crate) const ALL: &str = checkpoints!("all");
/// Those of the session with the key `$1` after the turn `$2`.
pub(crate) const AFTER: &str = checkpoints!("after");
/// The run with the id `$1`.
pub(crate) const RUN: &str = include_str!("../queries/read/run.sql");
/// The chunks of the run with the id `$1`.
pub(crate) const CHUNKS: &str = include_str!("../queries/read/chunks.sql");
/// The question with the id `$1`.
pub(crate) const INTERRUPT: &str = include_str!("../queries/read/interrupt.sql");

/// A checkpoint, and what its record does not say.
pub(crate) struct Stored {
    pub(crate) key: i64,
    /// The key of its session.
    pub(crate) session: i64,
    pub(crate) is_head: bool,
    pub(crate) record: CheckpointRecord,
    /// The definition that its snapshot is bound to.
    pub(crate) pin: Option<WorkflowPin>,
    /// How many answers its snapshot holds.
    pub(crate) answers: u64,
    /// The context of the run that asked its questions.
    pub(crate) context: Arc<BTreeMap<String, Scalar>>,
}

/// The run that a row of [`RUN`] holds.
pub(crate) fn run(rows: &[SqliteRow]) -> Reading<Option<RunRecord>> {
    let Some(row) = rows.first() else { return Ok(None) };
    let mut record = row::run(row)?;
    record.response = row::optional_blob(row, "response")?;
    Ok(Some(record))
}

/// The chunks above this number that rows of [`CHUNKS`] hold.
pub(crate) fn chunks(rows: &[SqliteRow], after: u64) -> Reading<Option<ChunkPage>> {
    let Some(row) = rows.first() else { return Ok(None) };
    let (status, last) = (row::status(row)?, get::<Option<i64>>(row, "last")?.unwrap_or_default());
    let response_completed = row::flag(row, "response_completed")?;
    let mut chunks = Vec::with_capacity(rows.len());
    for row in rows {
        chunks.extend(get::<Option<Vec<u8>>>(row, "body")?.map(Bytes::from));
    }
    let mut page = ChunkPage::new(after, chunks, last.unsigned_abs(), status);
    page.response_completed = response_completed;
    Ok(Some(page))
}

/// The question that a row of [`INTERRUPT`] holds. One past its time reads as expired.
pub(crate) fn interrupt(rows: &[SqliteRow], now: Timestamp) -> Reading<Option<InterruptRecord>> {
    let Some(row) = rows.first() else { return Ok(None) };
    question(row, Arc::new(row::context(row)?), now).map(Some)
}

fn question(row: &SqliteRow, context: Arc<BTreeMap<String, Scalar>>, now: Timestamp) -> Reading<InterruptRecord> {
    let mut record = row::question(row, row::run_id(row)?, context)?;
    if record.status == InterruptStatus::Pending && is_due(&record, now) {
        record.status = InterruptStatus::Expired;
    }
    Ok(record)
}

/// The checkpoints that rows of one of the queries above hold, in turn order.
pub(crate) fn stored_checkpoints(rows: &[SqliteRow]) -> Reading<Vec<Stored>> {
    let mut found = BTreeMap::new();
    let mut turns = HashMap::new();
    let mut questions = Vec::new();
    for row in rows {
        match get::<&str>(row, "tag")? {
            "checkpoint" => {
                let stored = stored(row)?;
                turns.insert(stored.key, stored.record.turn_index);
                found.insert(stored.record.turn_index, stored);
            }
            _ => questions.push((get::<i64>(row, "key")?, get::<i64>(row, "position")?, row)),
        }
    }
    questions.sort_unstable_by_key(|(checkpoint, position, _)| (*checkpoint, *position));
    for (checkpoint, _, row) in questions {
        let owner = turns.get(&checkpoint).and_then(|turn| found.get_mut(turn));
        let owner = owner.ok_or_else(|| Malformed("a question's checkpoint is missing".to_owned()))?;
        let (session_id, context) = (owner.record.session_id.clone(), Arc::clone(&owner.context));
        owner.record.interrupts.push(row::published(row, row::run_id(row)?, session_id, context)?);
    }
    Ok(found.into_values().collect())
}

fn stored(row: &SqliteRow) -> Reading<Stored> {
    let pin = match get::<Option<String>>(row, "pin_id")? {
        Some(id) => {
            let (version, fingerprint) = (row::text(row, "pin_version")?, row::text(row, "pin_fingerprint")?);
            Some(WorkflowPin { id: id.into(), version: version.into(), fingerprint: fingerprint.into() })
        }
        None => None,
    };
    let context = match get::<Option<&str>>(row, "context")? {
        Some(_) => row::context(row)?,
        None => BTreeMap::new(),
    };
    Ok(Stored {
        key: get(row, "key")?,
        session: get(row, "session")?,
        is_head: get::<i64>(row, "is_head")? == 1,
        record: row::checkpoint(row)?,
        pin,
        answers: row::count(row, "answers")?,
        context: Arc::new(context),
    })
}
