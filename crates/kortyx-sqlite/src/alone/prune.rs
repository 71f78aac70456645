//! Removing what retention allows to go.

use async_trait::async_trait;
use kortyx_store::{Pruned, Retention, StoreError};

use super::{Alone, keys};
use crate::{client::values, work::Work};

/// The most things of one call.
const LIMIT: u32 = 1000;

/// See [`Store::prune`](kortyx_store::Store::prune).
pub(crate) struct Prune {
    pub(crate) retention: Retention,
    pub(crate) limit: u32,
}

/// How much may still be removed, and what was.
struct Budget {
    room: u32,
    pruned: Pruned,
}

impl Budget {
    /// Takes room for as many of the found things as there is; one more may have been looked for.
    fn take(&mut self, mut found: Vec<i64>) -> Vec<i64> {
        self.pruned.more |= found.len() > self.room as usize;
        found.truncate(self.room as usize);
        self.room -= u32::try_from(found.len()).unwrap_or(self.room);
        found
    }
}

#[async_trait]
impl Alone for Prune {
    const NAME: &'static str = "prune";
    type Outcome = Pruned;

    async fn run(&self, work: &mut Work<'_>) -> Result<Pruned, StoreError> {
        let retention = &self.retention;
        let mut budget = Budget { room: self.limit.min(LIMIT), pruned: Pruned::default() };
        let ended_before = work.batch.now.saturating_sub(retention.finished_runs);
        let sql = include_str!("../queries/alone/prune_runs.sql");
        let found = find(work, sql, ended_before.as_millis(), &budget).await?;
        let runs = budget.take(found);
        remove(work, include_str!("../queries/alone/drop_runs.sql"), &runs).await?;
        budget.pruned.runs = runs.len() as u64;

        let idle_since = work.batch.now.saturating_sub(retention.idle_sessions);
        prune_sessions(work, idle_since.as_millis(), &mut budget).await?;

        let keep = i64::from(retention.checkpoints_per_session.max(1));
        let older_than = work.batch.now.saturating_sub(retention.checkpoint_age).as_millis();
        let crowded = (include_str!("../queries/alone/prune_crowded.sql"), keep);
        let aged = (include_str!("../queries/alone/prune_aged.sql"), older_than);
        for (sql, bound) in [crowded, aged] {
            let found = find(work, sql, bound, &budget).await?;
            let checkpoints = budget.take(found);
            remove(work, include_str!("../queries/alone/drop_checkpoints.sql"), &checkpoints).await?;
            budget.pruned.checkpoints += checkpoints.len() as u64;
        }
        Ok(budget.pruned)
    }
}

/// Removes idle sessions: first their checkpoints, then themselves.
async fn prune_sessions(work: &mut Work<'_>, idle_since: i64, budget: &mut Budget) -> Result<(), StoreError> {
    let sql = include_str!("../queries/alone/prune_idle_checkpoints.sql");
    let found = find(work, sql, idle_since, budget).await?;
    let checkpoints = budget.take(found);
    remove(work, include_str!("../queries/alone/drop_checkpoints.sql"), &checkpoints).await?;
    budget.pruned.checkpoints += checkpoints.len() as u64;
    let found = find(work, include_str!("../queries/alone/prune_sessions.sql"), idle_since, budget).await?;
    let sessions = budget.take(found);
    remove(work, include_str!("../queries/alone/drop_sessions.sql"), &sessions).await?;
    budget.pruned.sessions += sessions.len() as u64;
    Ok(())
}

/// Finds one more than there is room for.
async fn find(work: &mut Work<'_>, sql: &'static str, bound: i64, budget: &Budget) -> Result<Vec<i64>, StoreError> {
    let rows = work.fetch(sql, values![bound, i64::from(budget.room) + 1]).await?;
    keys(&work.batch, &rows)
}

async fn remove(work: &mut Work<'_>, sql: &'static str, found: &[i64]) -> Result<(), StoreError> {
    if !found.is_empty() {
        work.execute(sql, values![serde_json::Value::from(found).to_string()]).await?;
    }
    Ok(())
}
