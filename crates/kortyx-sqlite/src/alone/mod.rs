//! The transitions that have a transaction of their own, because what they find decides what else they need.

mod cancel;
mod claim;
mod expire;
mod fork;
mod prune;
mod reopen;
mod rollback;
mod setup;

use async_trait::async_trait;
use kortyx_store::StoreError;

use sqlx::sqlite::SqliteRow;

pub(crate) use self::{prune::Prune, setup::Setup};
use crate::{
    batch::Batch,
    client::values,
    row::{Malformed, get},
    work::Work,
};

/// A state transition that reads as it goes.
#[async_trait]
pub(crate) trait Alone: Send + Sync + 'static {
    /// What it is called in errors.
    const NAME: &'static str;

    /// Whether it runs before there are tables.
    const IS_BARE: bool = false;

    /// What it says when it is committed.
    type Outcome: Send + 'static;

    /// Decides within a transaction; what it leaves in the batch is written, unless it fails.
    async fn run(&self, work: &mut Work<'_>) -> Result<Self::Outcome, StoreError>;
}

/// Loads runs with these keys and their pending questions.
async fn load_runs(work: &mut Work<'_>, keys: &[i64]) -> Result<(), StoreError> {
    let keys = serde_json::Value::from(keys).to_string();
    work.load(include_str!("../queries/alone/runs.sql"), values![keys]).await
}

/// Loads what new drivers of these runs need.
async fn load_payloads(work: &mut Work<'_>, keys: &[i64]) -> Result<(), StoreError> {
    let keys = serde_json::Value::from(keys).to_string();
    work.load(include_str!("../queries/alone/payloads.sql"), values![keys]).await
}

/// The keys that these rows name.
fn keys(batch: &Batch, rows: &[SqliteRow]) -> Result<Vec<i64>, StoreError> {
    let read: Result<Vec<i64>, Malformed> = rows.iter().map(|row| get(row, "id")).collect();
    read.map_err(|malformed| malformed.told(batch.operation))
}
