//! The store itself.

use kortyx_protocol::Timestamp;
use serde::Serialize;

use super::{check, stats};
use crate::{
    arguments::{PruneArguments, Store},
    error::CliError,
    open::Inspected,
    report::{Report, Show},
    show::paint::good,
};

pub(super) async fn run(command: &Store, store: &Inspected) -> Result<Report, CliError> {
    match command {
        Store::Setup => setup(store).await,
        Store::Stats { limit } => stats::stats(*limit, store).await,
        Store::Check(arguments) => check::check(arguments, store).await,
        Store::Prune(arguments) => prune(arguments, store).await,
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SetupView {
    store: String,
    now: Timestamp,
}

impl Show for SetupView {
    fn show(&self) -> String {
        format!("{} is {}; its clock says {}\n", self.store, good("set up"), self.now)
    }
}

async fn setup(store: &Inspected) -> Result<Report, CliError> {
    store.store().setup().await?;
    Report::new("setup", &SetupView { store: store.address.clone(), now: store.now().await? })
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct PrunedView {
    runs: u64,
    checkpoints: u64,
    sessions: u64,
}

impl Show for PrunedView {
    fn show(&self) -> String {
        format!("removed {} runs, {} checkpoints, {} sessions\n", self.runs, self.checkpoints, self.sessions)
    }
}

async fn prune(arguments: &PruneArguments, store: &Inspected) -> Result<Report, CliError> {
    let retention = arguments.retention();
    let mut removed = PrunedView::default();
    loop {
        let pruned = store.store().prune(&retention, arguments.batch).await?;
        removed.runs += pruned.runs;
        removed.checkpoints += pruned.checkpoints;
        removed.sessions += pruned.sessions;
        if !pruned.more {
            return Report::new("prune", &removed);
        }
    }
}
