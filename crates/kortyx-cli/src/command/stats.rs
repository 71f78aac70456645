//! How much a store holds, counted run by run.

use std::{collections::BTreeMap, fmt::Write as _};

use kortyx_protocol::{RunId, Timestamp};
use kortyx_store::{RunQuery, RunRecord, RunStatus};
use serde::Serialize;

use super::runs::PAGE;
use crate::{
    error::CliError,
    open::Inspected,
    report::{Report, Show},
    show::{
        Table,
        paint::{bold, clean, dim, open, plain, status, when},
    },
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatsView {
    store: String,
    now: Timestamp,
    runs: u64,
    /// Open questions, in time.
    open_interrupts: u64,
    /// Sessions with checkpoints.
    sessions: u64,
    checkpoints: u64,
    by_status: BTreeMap<&'static str, u64>,
    /// By `workflow@version`, then by status.
    by_workflow: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// Running, and nobody holds them.
    orphans: u64,
    /// The run that has waited longest for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_waiting: Option<Waiting>,
    /// There are more runs than were counted.
    is_cut: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Waiting {
    id: RunId,
    since: Timestamp,
}

impl Show for StatsView {
    fn show(&self) -> String {
        let mut text = format!("{} {}\n", bold(clean(&self.store)), dim(format!("at {}", self.now)));
        let _ = writeln!(
            text,
            "{} runs, {} open questions, {} sessions with {} checkpoints",
            self.runs, self.open_interrupts, self.sessions, self.checkpoints
        );
        for (name, count) in &self.by_status {
            let _ = writeln!(text, "  {count:>8} {}", status(name));
        }
        if self.orphans > 0 {
            let _ = writeln!(text, "{} {}", self.orphans, open("running runs that nobody drives"));
        }
        if let Some(waiting) = &self.longest_waiting {
            let _ = writeln!(text, "{} has waited longest, since {}", waiting.id, when(waiting.since, self.now));
        }
        let mut table = Table::new(&["WORKFLOW", "RUNS", "OF THEM"]);
        for (workflow, counts) in &self.by_workflow {
            let parts: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
            let total: u64 = counts.values().sum();
            table.row([plain(clean(workflow).into_owned()), plain(total.to_string()), plain(parts.join(", "))]);
        }
        if !table.is_empty() {
            text.push('\n');
            text.push_str(&table.render());
        }
        if self.is_cut {
            text.push_str("there are more runs than were counted: raise --limit\n");
        }
        text
    }
}

impl StatsView {
    fn count(&mut self, run: &RunRecord) {
        let name = run.status.as_str();
        let workflow = format!("{}@{}", run.workflow.id, run.workflow.version);
        self.runs += 1;
        *self.by_status.entry(name).or_default() += 1;
        *self.by_workflow.entry(workflow).or_default().entry(name).or_default() += 1;
        let is_held = run.lease_until.is_some_and(|until| until > self.now);
        self.orphans += u64::from(run.status == RunStatus::Running && !is_held);
        let is_longer = self.longest_waiting.as_ref().is_none_or(|longest| run.updated_at < longest.since);
        if run.status == RunStatus::Suspended && is_longer {
            self.longest_waiting = Some(Waiting { id: run.run_id.clone(), since: run.updated_at });
        }
    }
}

pub(super) async fn stats(limit: u64, store: &Inspected) -> Result<Report, CliError> {
    let counted = store.store().stats().await?;
    let mut view = StatsView {
        store: store.address.clone(),
        now: store.now().await?,
        runs: 0,
        open_interrupts: counted.open_questions,
        sessions: counted.sessions,
        checkpoints: counted.checkpoints,
        by_status: BTreeMap::new(),
        by_workflow: BTreeMap::new(),
        orphans: 0,
        longest_waiting: None,
        is_cut: false,
    };
    let mut query = RunQuery { limit: PAGE, ..RunQuery::default() };
    loop {
        let page = store.store().list_runs(query.clone()).await?;
        for run in &page.runs {
            view.is_cut |= view.runs >= limit;
            if !view.is_cut {
                view.count(run);
            }
        }
        query.cursor = page.next;
        if query.cursor.is_none() || view.is_cut {
            break;
        }
    }
    Report::new("stats", &view)
}
