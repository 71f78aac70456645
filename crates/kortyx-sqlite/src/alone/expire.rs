//! Closing questions past their time.

use async_trait::async_trait;
use kortyx_store::{ExpireRequest, ExpiredBatch, InterruptStatus, RunStatus, Signal, StoreError};

use super::{Alone, keys, load_payloads, load_runs};
use crate::{
    batch::Batch,
    client::values,
    row::{Malformed, get},
    work::Work,
};

/// The most questions of one call.
const LIMIT: u32 = 1000;

/// A run with its questions that are due.
struct Due {
    run: i64,
    questions: Vec<i64>,
}

/// What a run does after its questions were closed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It goes on as it was.
    Stays,
    /// A default waits, and nobody drives it.
    Wakes,
    /// Nothing is left that could bring it on.
    Ends,
}

#[async_trait]
impl Alone for ExpireRequest {
    const NAME: &'static str = "expire due";
    type Outcome = ExpiredBatch;

    async fn run(&self, work: &mut Work<'_>) -> Result<ExpiredBatch, StoreError> {
        let limit = self.limit.min(LIMIT);
        let values = values![work.batch.now, i64::from(limit) + 1];
        let rows = work.fetch(include_str!("../queries/alone/due.sql"), values).await?;
        let mut outcome = ExpiredBatch { more: rows.len() > limit as usize, ..ExpiredBatch::default() };
        let rows = rows.get(..limit as usize).unwrap_or(&rows);
        let due = by_run(&work.batch, rows)?;
        if due.is_empty() {
            return Ok(outcome);
        }
        load_runs(work, &due.iter().map(|due| due.run).collect::<Vec<_>>()).await?;
        let mut fates = Vec::with_capacity(due.len());
        for due in &due {
            match work.batch.sound_run(due.run) {
                Ok(_) => fates.push((due.run, expire(&mut work.batch, due)?)),
                Err(error) => tracing::error!(%error, "a run that does not read back is left alone"),
            }
        }
        for key in keys(&work.batch, rows)? {
            let record = work.batch.question(key).ok().map(|question| &question.record);
            outcome.interrupts.extend(record.filter(|record| record.status == InterruptStatus::Expired).cloned());
        }
        // Without progress, asking again would not help.
        outcome.more &= !outcome.interrupts.is_empty();
        settle(self, work, &fates, &mut outcome).await?;
        Ok(outcome)
    }
}

fn by_run(batch: &Batch, rows: &[sqlx::sqlite::SqliteRow]) -> Result<Vec<Due>, StoreError> {
    let mut due: Vec<Due> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for row in rows {
        let read = || Ok((get::<i64>(row, "id")?, get::<i64>(row, "run")?));
        let (question, run) = read().map_err(|malformed: Malformed| malformed.told(batch.operation))?;
        let place = *places.entry(run).or_insert(due.len());
        match due.get_mut(place) {
            Some(due) => due.questions.push(question),
            None => due.push(Due { run, questions: vec![question] }),
        }
    }
    Ok(due)
}

/// Closes a run's due questions; defaults become answers.
fn expire(batch: &mut Batch, due: &Due) -> Result<Fate, StoreError> {
    let mut has_default = false;
    for key in &due.questions {
        match batch.question(*key)?.record.default.clone() {
            Some(default) => {
                has_default = true;
                batch.deliver(*key, InterruptStatus::Expired, default, None)?;
            }
            None => batch.close(*key, InterruptStatus::Expired, None)?,
        }
    }
    let now = batch.now;
    let run = batch.run(due.run)?;
    if run.is_driven(now) {
        if has_default {
            let run_id = run.record.run_id.clone();
            batch.signals.push(Signal::Attention(run_id));
        }
        return Ok(Fate::Stays);
    }
    let is_set_aside = run.record.status == RunStatus::Parked;
    Ok(match run.has_undelivered() {
        true if has_default && !is_set_aside && !run.record.cancel_requested => Fate::Wakes,
        false if run.pending.is_empty() => Fate::Ends,
        _ => Fate::Stays,
    })
}

/// Ends and hands out runs.
async fn settle(
    request: &ExpireRequest,
    work: &mut Work<'_>,
    fates: &[(i64, Fate)],
    outcome: &mut ExpiredBatch,
) -> Result<(), StoreError> {
    let mut granted = Vec::new();
    for (key, fate) in fates {
        let record = &work.batch.run(*key)?.record;
        match fate {
            Fate::Stays => {}
            Fate::Ends if record.cancel_requested => work.batch.end_cancelled(*key, None)?,
            Fate::Ends => {
                outcome.ended.push(record.run_id.clone());
                work.batch.end(*key, RunStatus::Expired, InterruptStatus::Expired)?;
            }
            Fate::Wakes if request.workflows.contains(&record.workflow) => granted.push(*key),
            Fate::Wakes => {
                work.batch.wake(*key)?;
                work.batch.signals.push(Signal::Work);
            }
        }
    }
    if granted.is_empty() {
        return Ok(());
    }
    load_payloads(work, &granted).await?;
    for key in granted {
        let run = work.batch.run(key)?;
        if run.has_payload() {
            outcome.claimed.push(work.batch.grant(key, &request.driver)?);
        } else {
            tracing::error!(run_id = %run.record.run_id, "a run without a snapshot is left alone");
            work.batch.wake(key)?;
        }
    }
    Ok(())
}
