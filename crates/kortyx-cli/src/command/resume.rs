//! Handing runs back to the workers.

use std::time::Duration;

use kortyx_protocol::RunId;
use kortyx_store::{ClaimRequest, Driver, Lease, RunRecord, RunStatus};
use serde::Serialize;

use super::runs::has_ended;
use crate::{
    error::CliError,
    open::Inspected,
    report::{Report, Show},
    show::paint::{good, span},
};

/// How long runs are held while they are handed back. Should this program die, workers take them up then.
const HOLD: Duration = Duration::from_secs(30);
/// How many runs are taken in one transition: each comes with its state.
const BATCH: u32 = 16;
/// How many runs are handed back at most.
const MOST: usize = 1_000;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResumedView {
    id: RunId,
    /// `handedBack`, `takenFromItsDriver`, or `free`: it was any worker's already.
    outcome: &'static str,
    /// Runs of the same definition that were handed back with it.
    others: usize,
}

impl Show for ResumedView {
    fn show(&self) -> String {
        let what = match self.outcome {
            "handedBack" => "was handed back",
            "takenFromItsDriver" => "was taken from its driver",
            _ => "was free already",
        };
        let others = match self.others {
            0 => String::new(),
            others => format!(", and with it {others} more of the same definition"),
        };
        format!("{} {}{others}: the next worker that has its workflow goes on with it\n", self.id, good(what))
    }
}

pub(super) async fn resume(id: &RunId, force: bool, store: &Inspected) -> Result<Report, CliError> {
    let run = store.run(id).await?;
    let now = store.now().await?;
    let (outcome, others) = match (run.status, run.lease_until) {
        (RunStatus::Parked, _) => hand_back(&run, store).await?,
        (RunStatus::Running, Some(until)) if until > now => {
            if !force {
                let left = span(until.since(now));
                let message =
                    format!("{id} is being driven, for {left} more at least: --force takes it from its driver");
                return Err(CliError::refused("DRIVEN", message));
            }
            // Who drives it learns with its next write that the lease is gone, and nothing of that write happens.
            store.store().release(&Lease { run_id: id.clone(), fence: run.fence, until }).await?;
            ("takenFromItsDriver", 0)
        }
        (RunStatus::Running, _) => ("free", 0),
        (RunStatus::Suspended, _) => {
            return Err(CliError::refused(
                "WAITING",
                format!("{id} waits for people: answer its questions, or cancel it"),
            ));
        }
        (RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled | RunStatus::Expired, _) => {
            return Err(has_ended(id, run.status));
        }
    };
    Report::new("resumption", &ResumedView { id: id.clone(), outcome, others })
}

/// Takes what is set aside of the run's definition and gives it up again: a store hands out runs by definition, not one by one.
/// Workers that still have no code that fits set them aside again, as they do whenever one starts.
async fn hand_back(run: &RunRecord, store: &Inspected) -> Result<(&'static str, usize), CliError> {
    let parked_before = Some(store.now().await?.saturating_add(Duration::from_millis(1)));
    let mut leases: Vec<Lease> = Vec::new();
    while leases.len() < MOST {
        let driver = Driver { id: format!("kortyx-cli-{}", std::process::id()), ttl: HOLD };
        let workflows = vec![run.workflow.clone()];
        let claimed =
            store.store().claim_orphans(ClaimRequest { driver, workflows, parked_before, limit: BATCH }).await?;
        let is_last = claimed.len() < BATCH as usize;
        leases.extend(claimed.into_iter().map(|claimed| claimed.lease));
        if is_last {
            break;
        }
    }
    let is_among_them = leases.iter().any(|lease| lease.run_id == run.run_id);
    for lease in &leases {
        store.store().release(lease).await?;
    }
    let outcome = if is_among_them { "handedBack" } else { "free" };
    Ok((outcome, leases.len().saturating_sub(usize::from(is_among_them))))
}
