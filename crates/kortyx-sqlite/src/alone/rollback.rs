//! Taking a session back to a checkpoint.

use async_trait::async_trait;
use kortyx_store::{
    CheckpointRecord, InterruptRecord, InterruptStatus, Rollback, RollbackOutcome, RunStatus, StoreError,
};

use super::{
    Alone, keys, load_runs,
    reopen::{Reopening, check_ids, find, load_taken, reopen, reopening},
};
use crate::{
    client::values,
    read::{AFTER, Stored, stored_checkpoints},
    work::Work,
};

/// Why runs of an abandoned turn were cancelled.
const REASON: &str = "its session was rolled back";

#[async_trait]
impl Alone for Rollback {
    const NAME: &'static str = "rollback";
    type Outcome = RollbackOutcome;

    async fn run(&self, work: &mut Work<'_>) -> Result<RollbackOutcome, StoreError> {
        let Some(stored) = find(work, &self.checkpoint_id).await? else { return Ok(RollbackOutcome::Unknown) };
        let session_id = stored.record.session_id.clone();
        let active = include_str!("../queries/alone/active_runs.sql");
        let active = work.fetch(active, values![session_id.as_str()]).await?;
        let runs = keys(&work.batch, &active)?;
        load_runs(work, &runs).await?;
        if stored.is_head {
            let mut interrupts = Vec::new();
            for run in runs {
                work.batch.sound_run(run)?;
                interrupts.extend(work.batch.open_questions(run)?);
            }
            return Ok(done(stored.record, Vec::new(), Vec::new(), interrupts));
        }
        for run in &runs {
            let run = work.batch.sound_run(*run)?;
            if run.is_driven(work.batch.now) {
                return Ok(RollbackOutcome::Driven(run.record.run_id.clone()));
            }
        }
        load_taken(work, &self.new_run_id, &self.reissue).await?;
        let questions = match reopening(&work.batch, &stored, &self.reissue) {
            Reopening::Ready(questions) => questions,
            Reopening::Expired(request_id) => return Ok(RollbackOutcome::Expired(request_id)),
            Reopening::Mismatched => return Ok(RollbackOutcome::Mismatched),
        };
        check_ids(&work.batch, &self.new_run_id, &questions)?;
        let superseded = supersede(work, &runs)?;
        let abandoned = abandon(work, &stored).await?;
        let interrupts = reopen(&mut work.batch, &stored, questions, &self.new_run_id, &session_id)?;
        Ok(done(stored.record, abandoned, superseded, interrupts))
    }
}

fn done(
    head: CheckpointRecord,
    abandoned: Vec<CheckpointRecord>,
    superseded: Vec<InterruptRecord>,
    interrupts: Vec<InterruptRecord>,
) -> RollbackOutcome {
    RollbackOutcome::Done { head: Box::new(head), abandoned, superseded, interrupts }
}

/// Cancels runs that nobody drives; gives the questions that were open.
fn supersede(work: &mut Work<'_>, runs: &[i64]) -> Result<Vec<InterruptRecord>, StoreError> {
    let batch = &mut work.batch;
    let mut superseded = Vec::new();
    for run in runs {
        let questions = batch.run(*run)?.pending.clone();
        batch.run_mut(*run)?.record.reason = Some(REASON.to_owned());
        batch.end(*run, RunStatus::Cancelled, InterruptStatus::Superseded)?;
        for question in questions {
            let record = &batch.question(question)?.record;
            if record.status == InterruptStatus::Superseded {
                superseded.push(record.clone());
            }
        }
    }
    Ok(superseded)
}

/// Removes the checkpoints after this one, which becomes the head; gives them, newest first.
async fn abandon(work: &mut Work<'_>, stored: &Stored) -> Result<Vec<CheckpointRecord>, StoreError> {
    let rows = work.fetch(AFTER, values![stored.session, stored.record.turn_index]).await?;
    let later = stored_checkpoints(&rows).map_err(|malformed| malformed.told(work.batch.operation))?;
    let gone = serde_json::Value::from(later.iter().map(|later| later.key).collect::<Vec<_>>()).to_string();
    work.execute(include_str!("../queries/alone/drop_checkpoints.sql"), values![gone]).await?;
    let now = work.batch.now;
    work.execute(include_str!("../queries/alone/move_head.sql"), values![stored.session, stored.key, now]).await?;
    let abandoned = later.into_iter().rev().map(|later| {
        let mut record = later.record;
        record.abandoned = true;
        record
    });
    Ok(abandoned.collect())
}
