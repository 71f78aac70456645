//! What the database's functions say.

use kortyx_protocol::{RequestId, RunId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRecord, CancelOutcome, CheckpointRecord, Claimed, Drive, InterruptRecord, Lease, Receipt,
    Refusal, RunRecord, RunStatus,
};
use serde::Deserialize;

use crate::{
    client::Row,
    row::{self, Malformed, Reading, ReceiptData},
};

/// The first row: what became of it. Which parts it has depends on the call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Head {
    pub(crate) kind: String,
    pub(crate) now: i64,
    pub(crate) next: Option<(i64, i64)>,
    pub(crate) fence: u64,
    pub(crate) until: i64,
    pub(crate) cancel_requested: bool,
    pub(crate) run_id: Option<RunId>,
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
    pub(crate) claims: Vec<Reading<Claimed>>,
    pub(crate) checkpoints: Vec<CheckpointRecord>,
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
            "checkpoint" => self.checkpoints.push(row::checkpoint(row)?),
            "asked" => {
                let question = row::question(row)?;
                self.checkpoints.last_mut().ok_or_else(|| lost(row))?.interrupts.push(question);
            }
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
                (Ok(claimed), Ok(value)) => add(claimed, value),
                (Ok(_), Err(malformed)) => *claim = Err(malformed),
                (Err(_), _) => {}
            }
        }
    }

    /// The runs that are handed out; what does not read back is left alone until its lease runs out.
    pub(crate) fn claimed(claims: Vec<Reading<Claimed>>) -> Vec<Claimed> {
        let read = claims.into_iter().filter_map(|claim| match claim {
            Ok(claimed) => Some(claimed),
            Err(malformed) => {
                tracing::error!(reason = malformed.0, "a run that does not read back is left alone");
                None
            }
        });
        read.collect()
    }

    pub(crate) fn into_answer(self) -> Reading<AnswerOutcome> {
        let Head { kind, receipts, refusals, drive, .. } = self.head;
        let receipts: Vec<Receipt> = receipts.into_iter().map(Into::into).collect();
        match kind.as_str() {
            "accepted" => {
                let drive = match drive.as_deref() {
                    Some("granted") => match self.claims.into_iter().next() {
                        Some(claim) => Drive::Granted(Box::new(claim?)),
                        // Told again after another driver took over.
                        None => Drive::Driven,
                    },
                    Some("driven") => Drive::Driven,
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

    pub(crate) fn into_cancelled(self) -> Reading<Vec<CancelOutcome>> {
        let outcome = |data: CancelData| match data.kind.as_str() {
            "cancelled" => Ok(CancelOutcome::Cancelled(data.run_id)),
            "requested" => Ok(CancelOutcome::Requested(data.run_id)),
            _ => {
                let status = data.status.as_deref().and_then(RunStatus::parse);
                let status = status.ok_or_else(|| Malformed("a run has an unknown status".to_owned()))?;
                Ok(CancelOutcome::Ended(data.run_id, status))
            }
        };
        self.head.outcomes.into_iter().map(outcome).collect()
    }
}

fn lost(row: &Row) -> Malformed {
    Malformed(format!("a reply has a row {} where none belongs", row.tag))
}

fn claim(row: &mut Row) -> Reading<Claimed> {
    let snapshot = row::payload(row, 1)?;
    let run = row::run(row)?;
    let until = run.lease_until.unwrap_or(Timestamp::MIN);
    let lease = Lease { run_id: run.run_id.clone(), fence: run.fence, until };
    Ok(Claimed { lease, run, snapshot, entries: Vec::new(), answers: Vec::new() })
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
