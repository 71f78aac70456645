//! What the database's functions say.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRecord, CancelOutcome, CheckpointRecord, ChunkPage, Claimed, Drive, InterruptRecord, Lease,
    NewInterrupt, Receipt, Refusal, Revision, RunHistory, RunRecord, RunStatus, SessionPage, SessionRecord, StoreStats,
};
use serde::Deserialize;

use crate::{
    client::Row,
    request,
    row::{self, Malformed, Reading, ReceiptData},
};

/// The first row: what became of it. Which parts it has depends on the call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "flags as the functions tell them, each on its own")]
pub(crate) struct Head {
    pub(crate) kind: String,
    pub(crate) now: i64,
    pub(crate) next: Option<(i64, i64)>,
    /// The key of the last run that a page of runs looked at, when there may be another page.
    pub(crate) edge: Option<i64>,
    counts: Option<CountsData>,
    pub(crate) fence: u64,
    pub(crate) until: i64,
    pub(crate) cancel_requested: bool,
    /// Where the run stands whose output is read, and the number of its last chunk.
    pub(crate) status: Option<String>,
    pub(crate) last: u64,
    /// Whether that run's response is complete.
    pub(crate) responded: bool,
    pub(crate) run_id: Option<RunId>,
    /// When it took effect, and the session and the context of its run.
    at: i64,
    session_id: Option<SessionId>,
    context: BTreeMap<String, String>,
    pub(crate) request_id: Option<RequestId>,
    pub(crate) runs: u64,
    pub(crate) checkpoints: u64,
    pub(crate) sessions: u64,
    pub(crate) more: bool,
    pub(crate) ended: Vec<RunId>,
    /// Whether a run became claimable.
    pub(crate) work: bool,
    /// Driven runs that have something new.
    pub(crate) attention: Vec<RunId>,
    receipts: Vec<ReceiptData>,
    refusals: Vec<RefusalData>,
    drive: Option<String>,
    outcomes: Vec<CancelData>,
}

#[derive(Debug, Deserialize)]
struct CountsData {
    runs: BTreeMap<String, u64>,
    questions: u64,
    sessions: u64,
    checkpoints: u64,
}

#[derive(Deserialize)]
struct SessionData {
    key: i64,
    session_id: SessionId,
    head: CheckpointId,
    turn_index: u64,
    head_at: i64,
    active_runs: u64,
}

#[derive(Debug, Deserialize)]
struct CancelData {
    kind: String,
    run_id: RunId,
    status: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RefusalData {
    request_id: RequestId,
    refusal: String,
    receipt: Option<ReceiptData>,
}

/// A reply with everything that it refers to.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) head: Head,
    pub(crate) open: Vec<InterruptRecord>,
    pub(crate) questions: Vec<InterruptRecord>,
    pub(crate) answers: Vec<AnswerRecord>,
    pub(crate) runs: Vec<RunRecord>,
    pub(crate) claims: Vec<Reading<Claim>>,
    pub(crate) snapshots: Vec<(RunId, Bytes)>,
    pub(crate) checkpoints: Vec<CheckpointRecord>,
    pub(crate) chunks: Vec<Bytes>,
    /// Entries of a run that nobody is handed.
    pub(crate) entries: Vec<Bytes>,
    /// Sessions with their keys.
    sessions: Vec<(i64, SessionRecord)>,
}

/// A run that is handed out.
#[derive(Debug)]
pub(crate) struct Claim {
    /// Without its snapshot while that is behind.
    pub(crate) claimed: Claimed,
    /// The revision of the snapshot that is missing.
    pub(crate) behind: Option<Revision>,
}

impl Claim {
    pub(crate) fn fill(&mut self, snapshot: Bytes) {
        self.claimed.snapshot = snapshot;
        self.behind = None;
    }
}

#[derive(Deserialize)]
struct SnapshotData {
    run_id: RunId,
}

impl Reply {
    pub(crate) fn read(rows: Vec<Row>) -> Reading<Self> {
        let mut reply = Self::default();
        for mut row in rows {
            reply.take(&mut row)?;
        }
        Ok(reply)
    }

    fn take(&mut self, row: &mut Row) -> Reading<()> {
        match row.tag.as_str() {
            "head" => self.head = row::data(row)?,
            "open" => self.open.push(row::question(row)?),
            "question" => self.questions.push(row::question(row)?),
            "run" => self.runs.push(row::run(row)?),
            "claim" => self.claims.push(claim(row)),
            "snapshot" => {
                let SnapshotData { run_id } = row::data(row)?;
                self.snapshots.push((run_id, row::payload(row, 0)?));
            }
            "chunk" => self.chunks.push(row::payload(row, 0)?),
            "session" => self.sessions.push(session(row)?),
            "checkpoint" => self.checkpoints.push(row::checkpoint(row)?),
            "asked" => {
                let question = row::question(row)?;
                self.checkpoints.last_mut().ok_or_else(|| lost(row))?.interrupts.push(question);
            }
            "entry" if self.claims.is_empty() => self.entries.push(row::payload(row, 0)?),
            "entry" => {
                let entry = row::payload(row, 0);
                self.extend_claim(entry, |claimed, entry| claimed.entries.push(entry));
            }
            "answer" if self.claims.is_empty() => self.answers.push(row::answer(row)?),
            "answer" => {
                let answer = row::answer(row);
                self.extend_claim(answer, |claimed, answer| claimed.answers.push(answer));
            }
            _ => return Err(lost(row)),
        }
        Ok(())
    }

    /// Adds to the run that is being handed out. One that does not read back does not keep others from it.
    fn extend_claim<T>(&mut self, read: Reading<T>, add: impl FnOnce(&mut Claimed, T)) {
        if let Some(claim) = self.claims.last_mut() {
            match (claim.as_mut(), read) {
                (Ok(claim), Ok(value)) => add(&mut claim.claimed, value),
                (Ok(_), Err(malformed)) => *claim = Err(malformed),
                (Err(_), _) => {}
            }
        }
    }

    /// Questions that a transition published, as it stored them.
    pub(crate) fn published(&mut self, run_id: &RunId, publish: Vec<NewInterrupt>) -> Reading<Vec<InterruptRecord>> {
        if publish.is_empty() {
            return Ok(Vec::new());
        }
        let lost = || Malformed("a reply says not whose questions it published".to_owned());
        let session_id = self.head.session_id.take().ok_or_else(lost)?;
        let context = Arc::new(row::context(std::mem::take(&mut self.head.context))?);
        let at = Timestamp::from_millis(self.head.at);
        let record = |new| InterruptRecord::new(new, run_id.clone(), session_id.clone(), Arc::clone(&context), at);
        Ok(publish.into_iter().map(record).collect())
    }

    /// What became of answers. The run that they grant is in the claims.
    pub(crate) fn into_answer(self) -> Reading<AnswerOutcome> {
        let Head { kind, receipts, refusals, drive, .. } = self.head;
        let receipts: Vec<Receipt> = receipts.into_iter().map(Into::into).collect();
        match kind.as_str() {
            "accepted" => {
                let drive = match drive.as_deref() {
                    // Granted, and told again after another driver took over.
                    Some("granted" | "driven") => Drive::Driven,
                    Some("left") => Drive::Left,
                    Some("ended") => Drive::Ended(RunStatus::Cancelled),
                    _ => return Err(Malformed("a reply says not who drives".to_owned())),
                };
                Ok(AnswerOutcome::Accepted(receipts, drive))
            }
            "duplicate" => {
                let run = self.runs.into_iter().next().ok_or_else(|| Malformed("a question has no run".to_owned()))?;
                Ok(AnswerOutcome::Duplicate(receipts, Box::new(run)))
            }
            _ => refusals.into_iter().map(refusal).collect::<Reading<_>>().map(AnswerOutcome::Refused),
        }
    }

    /// A piece of a run's output; `None` when there is no such run.
    pub(crate) fn into_output(self, after: u64) -> Reading<Option<ChunkPage>> {
        let Some(status) = self.head.status else { return Ok(None) };
        let mut page = ChunkPage::new(after, self.chunks, self.head.last, row::status(&status)?);
        page.response_completed = self.head.responded;
        Ok(Some(page))
    }

    /// All that is kept of a run; `None` when there is no such run.
    pub(crate) fn into_history(mut self) -> Option<RunHistory> {
        let mut history = RunHistory::new(self.runs.pop()?);
        history.snapshot = self.snapshots.pop().map(|(_, snapshot)| snapshot);
        history.entries = self.entries;
        history.questions = self.questions;
        Some(history)
    }

    /// A page of sessions, of which there may be one more than asked for.
    pub(crate) fn into_sessions(mut self, limit: u32) -> SessionPage {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = self.sessions.len() > limit;
        self.sessions.truncate(limit);
        let last = self.sessions.last().filter(|_| has_more);
        let next = last.map(|(key, _)| request::cursor_of_sessions(*key));
        SessionPage { sessions: self.sessions.into_iter().map(|(_, session)| session).collect(), next }
    }

    pub(crate) fn into_stats(self) -> Reading<StoreStats> {
        let counts = self.head.counts.ok_or_else(|| Malformed("a reply has no counts".to_owned()))?;
        let mut stats = StoreStats::default();
        for (status, number) in counts.runs {
            stats.runs.add(row::status(&status)?, number);
        }
        stats.open_questions = counts.questions;
        stats.sessions = counts.sessions;
        stats.checkpoints = counts.checkpoints;
        Ok(stats)
    }

    pub(crate) fn into_cancelled(self) -> Reading<Vec<CancelOutcome>> {
        let outcome = |data: CancelData| match data.kind.as_str() {
            "cancelled" => Ok(CancelOutcome::Cancelled(data.run_id)),
            "requested" => Ok(CancelOutcome::Requested(data.run_id)),
            _ => {
                let status = row::status(data.status.as_deref().unwrap_or_default())?;
                Ok(CancelOutcome::Ended(data.run_id, status))
            }
        };
        self.head.outcomes.into_iter().map(outcome).collect()
    }
}

fn session(row: &Row) -> Reading<(i64, SessionRecord)> {
    let SessionData { key, session_id, head, turn_index, head_at, active_runs } = row::data(row)?;
    let head_at = Timestamp::from_millis(head_at);
    Ok((key, SessionRecord { session_id, head, turn_index, head_at, active_runs }))
}

fn lost(row: &Row) -> Malformed {
    Malformed(format!("a reply has a row {} where none belongs", row.tag))
}

fn claim(row: &mut Row) -> Reading<Claim> {
    let behind = row::optional(row, 2).map(|bytes| revision(&bytes)).transpose()?;
    let snapshot = if behind.is_some() { Bytes::new() } else { row::payload(row, 1)? };
    let run = row::run(row)?;
    let until = run.lease_until.unwrap_or(Timestamp::MIN);
    let lease = Lease { run_id: run.run_id.clone(), fence: run.fence, until };
    let claimed = Claimed { lease, run, snapshot, entries: Vec::new(), answers: Vec::new() };
    Ok(Claim { claimed, behind })
}

fn revision(bytes: &[u8]) -> Reading<Revision> {
    bytes.try_into().map(Revision::new).map_err(|_| Malformed("a revision has another length".to_owned()))
}

fn refusal(data: RefusalData) -> Reading<(RequestId, Refusal)> {
    let refusal = match (data.refusal.as_str(), data.receipt) {
        ("conflict", Some(receipt)) => Refusal::Conflict(receipt.into()),
        ("expired", _) => Refusal::Expired,
        ("cancelled", _) => Refusal::Cancelled,
        ("superseded", _) => Refusal::Superseded,
        ("unknown", _) => Refusal::Unknown,
        ("wrong_session", _) => Refusal::WrongSession,
        ("conflict", None) => return Err(Malformed("an answered question has no receipt".to_owned())),
        _ => return Err(Malformed("a question has an unknown status".to_owned())),
    };
    Ok((data.request_id, refusal))
}
