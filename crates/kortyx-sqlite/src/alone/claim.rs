//! Handing out runs whose driver is gone.

use async_trait::async_trait;
use kortyx_store::{ClaimRequest, Claimed, StoreError, WorkflowPin};

use super::{Alone, keys, load_payloads, load_runs};
use crate::{client::values, work::Work};

/// The most runs that one call closes because they were asked to stop.
const STOPPED: u32 = 100;

#[async_trait]
impl Alone for ClaimRequest {
    const NAME: &'static str = "claim orphans";
    type Outcome = Vec<Claimed>;

    async fn run(&self, work: &mut Work<'_>) -> Result<Vec<Claimed>, StoreError> {
        close_stopped(work).await?;
        let mut claimed = Vec::new();
        if self.workflows.is_empty() || self.limit == 0 {
            return Ok(claimed);
        }
        let keys = find(self, work).await?;
        load_runs(work, &keys).await?;
        load_payloads(work, &keys).await?;
        for key in keys {
            match work.batch.sound_run(key) {
                Ok(run) if run.has_payload() => claimed.push(work.batch.grant(key, &self.driver)?),
                Ok(run) => tracing::error!(run_id = %run.record.run_id, "a run without a snapshot is left alone"),
                Err(error) => tracing::error!(%error, "a run that does not read back is left alone"),
            }
        }
        Ok(claimed)
    }
}

/// Ends runs that were asked to stop and whose driver died before it did.
async fn close_stopped(work: &mut Work<'_>) -> Result<(), StoreError> {
    let values = values![work.batch.now, i64::from(STOPPED)];
    let rows = work.fetch(include_str!("../queries/alone/stopped.sql"), values).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let keys = keys(&work.batch, &rows)?;
    load_runs(work, &keys).await?;
    for key in keys {
        match work.batch.sound_run(key) {
            Ok(_) => work.batch.end_cancelled(key, None)?,
            Err(error) => tracing::error!(%error, "a run that does not read back is left alone"),
        }
    }
    Ok(())
}

async fn find(request: &ClaimRequest, work: &mut Work<'_>) -> Result<Vec<i64>, StoreError> {
    let limit = request.limit as usize;
    let pins = pins_json(&request.workflows);
    let values = values![&pins, work.batch.now, i64::from(request.limit)];
    let orphans = work.fetch(include_str!("../queries/alone/orphans.sql"), values).await?;
    let mut found = keys(&work.batch, &orphans)?;
    if let Some(before) = request.parked_before.filter(|_| found.len() < limit) {
        let values = values![&pins, before, i64::from(request.limit)];
        let parked = work.fetch(include_str!("../queries/alone/parked.sql"), values).await?;
        found.extend(keys(&work.batch, &parked)?);
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|key| seen.insert(*key));
    found.truncate(limit);
    Ok(found)
}

/// Pins as a JSON array of arrays, for `json_each`.
fn pins_json(pins: &[WorkflowPin]) -> String {
    let pins: Vec<_> = pins.iter().map(|pin| serde_json::json!([pin.id, pin.version, pin.fingerprint])).collect();
    serde_json::Value::from(pins).to_string()
}
