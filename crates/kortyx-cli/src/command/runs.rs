//! Runs: where they stand, ending them, handing them back.

use std::collections::BTreeMap;

use kortyx_orchestrator::OrchestratorError;
use kortyx_protocol::{Failure, RunId, SessionId, Timestamp};
use kortyx_store::{CancelOutcome, CancelTarget, RunQuery, RunRecord, RunStatus, Scope, StoreExt as _};
use serde::Serialize;
use serde_json::Value;

use super::{
    interrupts::more,
    resume, trace,
    view::{InterruptView, Lines, context, pairs, table},
};
use crate::{
    arguments::{RunFilter, Runs},
    error::CliError,
    open::Inspected,
    report::{Report, Show},
    show::{
        Table,
        paint::{bad, bold, clean, dim, open, plain, relative, status, when},
    },
};

/// The most that stores give in one page.
pub(super) const PAGE: u32 = 200;

pub(super) async fn run(command: &Runs, store: &Inspected) -> Result<Report, CliError> {
    match command {
        Runs::List(filter) => list(filter, store).await,
        Runs::Trace { id, content } => trace::trace(id, *content, store).await,
        Runs::Show { id, content } => show(id, *content, store).await,
        Runs::Cancel { id, reason } => cancel(id, reason.clone(), store).await,
        Runs::Resume { id, force } => resume::resume(id, *force, store).await,
    }
}

/// A run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunView {
    pub(super) id: RunId,
    pub(super) session_id: SessionId,
    pub(super) workflow: String,
    pub(super) workflow_version: String,
    pub(super) fingerprint: String,
    pub(super) context: BTreeMap<String, Value>,
    pub(super) status: &'static str,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    /// The number of the last lease granted.
    pub(super) fence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lease_until: Option<Timestamp>,
    /// Running, and nobody holds it: any worker may take it.
    pub(super) is_orphan: bool,
    pub(super) answers: u64,
    pub(super) is_cancel_requested: bool,
    pub(super) is_response_completed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Why it failed, or is set aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<Failure>,
    /// What it ended with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Value>,
    /// Why what is stored of its end does not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unreadable: Option<String>,
}

impl RunView {
    pub(super) fn of(run: &RunRecord, now: Timestamp) -> Self {
        let is_held = run.lease_until.is_some_and(|until| until > now);
        let is_parked = run.status == RunStatus::Parked;
        let failure: Option<Failure> =
            run.reason.as_deref().filter(|_| is_parked).and_then(|reason| serde_json::from_str(reason).ok());
        Self {
            id: run.run_id.clone(),
            session_id: run.session_id.clone(),
            workflow: run.workflow.id.to_string(),
            workflow_version: run.workflow.version.to_string(),
            fingerprint: run.workflow.fingerprint.to_string(),
            context: context(&run.context),
            status: run.status.as_str(),
            created_at: run.created_at,
            updated_at: run.updated_at,
            fence: run.fence,
            lease_until: run.lease_until,
            is_orphan: run.status == RunStatus::Running && !is_held,
            answers: run.answers,
            is_cancel_requested: run.cancel_requested,
            is_response_completed: run.response.is_some(),
            reason: run.reason.clone().filter(|_| failure.is_none()),
            failure,
            data: None,
            unreadable: None,
        }
    }

    pub(super) fn lines(&self, now: Timestamp) -> Lines {
        let mut lines = Lines::default();
        lines.add("run", bold(self.id.as_str()));
        lines.add("status", status(self.status));
        lines.add("session", &self.session_id);
        if !self.context.is_empty() {
            lines.add("context", pairs(&self.context));
        }
        lines.add("workflow", clean(&format!("{}@{}", self.workflow, self.workflow_version)));
        lines.add("definition", dim(clean(&self.fingerprint)));
        lines.add("durable since", when(self.created_at, now));
        lines.add("changed", when(self.updated_at, now));
        lines.add("answers", self.answers);
        lines.add("leases", self.fence);
        match self.lease_until {
            Some(until) if until > now => lines.add("held until", when(until, now)),
            Some(until) => lines.add("lease ran out", when(until, now)),
            None => {}
        }
        if self.is_orphan {
            lines.add("", open("nobody drives it: a worker that has its workflow takes it"));
        }
        if self.is_cancel_requested {
            lines.add("", open("its driver was asked to stop"));
        }
        if self.is_response_completed {
            lines.add("", dim("its response is complete"));
        }
        lines.maybe("reason", self.reason.as_deref().map(clean));
        if let Some(failure) = &self.failure {
            lines.add("failure", bad(failure.code.as_str()));
            lines.block("", &failure.message);
        }
        if let Some(data) = &self.data {
            lines.value("data", data);
        }
        lines.maybe("", self.unreadable.as_deref().map(|why| bad(clean(why))));
        lines
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListView {
    runs: Vec<RunView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip)]
    now: Timestamp,
}

impl Show for ListView {
    fn show(&self) -> String {
        let mut table = Table::new(&["RUN", "STATUS", "WORKFLOW", "SESSION", "BEGAN", "CHANGED", "ANSWERS", ""]);
        for run in &self.runs {
            let note = match (&run.failure, run.is_orphan, run.is_cancel_requested && run.status == "running") {
                (Some(failure), ..) => bad(failure.code.as_str()),
                (None, true, _) => open("nobody drives it"),
                (None, _, true) => open("asked to stop"),
                _ => plain(""),
            };
            table.row([
                bold(run.id.as_str().to_owned()),
                status(run.status),
                plain(clean(&format!("{}@{}", run.workflow, run.workflow_version)).into_owned()),
                plain(run.session_id.as_str().to_owned()),
                plain(relative(run.created_at, self.now)),
                plain(relative(run.updated_at, self.now)),
                plain(run.answers.to_string()),
                note,
            ]);
        }
        let mut text = if table.is_empty() { format!("{}\n", dim("no runs")) } else { table.render() };
        if let Some(next) = &self.next_cursor {
            text.push_str(&more(next));
        }
        text
    }
}

async fn list(filter: &RunFilter, store: &Inspected) -> Result<Report, CliError> {
    let mut query = RunQuery {
        statuses: filter.status.clone(),
        session_id: filter.session.clone(),
        workflow: filter.workflow.clone(),
        limit: 0,
        cursor: filter.page.cursor.clone(),
    };
    let now = store.now().await?;
    let (mut runs, mut left) = (Vec::new(), filter.page.limit);
    while left > 0 {
        query.limit = left.min(PAGE);
        let page = store.store().list_runs(query.clone()).await?;
        left = left.saturating_sub(u32::try_from(page.runs.len()).unwrap_or(u32::MAX));
        runs.extend(page.runs.iter().map(|run| RunView::of(run, now)));
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    Report::new("runs", &ListView { runs, next_cursor: query.cursor, now })
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OneView {
    run: RunView,
    open_interrupts: Vec<InterruptView>,
    #[serde(skip)]
    now: Timestamp,
}

impl Show for OneView {
    fn show(&self) -> String {
        let mut lines = self.run.lines(self.now);
        if !self.open_interrupts.is_empty() {
            lines.heading("Open questions");
            lines.push(&table(&self.open_interrupts, self.now));
        }
        lines.into_text()
    }
}

async fn show(id: &RunId, content: bool, store: &Inspected) -> Result<Report, CliError> {
    let record = store.run(id).await?;
    let now = store.now().await?;
    let mut run = RunView::of(&record, now);
    match store.agent().get_run(id, &Scope::session(record.session_id.clone())).await {
        Ok(Some(seen)) => {
            run.data = seen.data.filter(|_| content).and_then(|data| data.to_value().ok());
            run.failure = seen.failure;
        }
        Ok(None) => {}
        Err(OrchestratorError::Corrupt(failure)) => run.unreadable = Some(failure.message),
        Err(error) => return Err(error.into()),
    }
    let open = store.store().open_questions(id).await?;
    let open_interrupts = open.iter().map(|question| InterruptView::of(question, content)).collect();
    Report::new("run", &OneView { run, open_interrupts, now })
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CancelledView {
    id: RunId,
    /// `cancelled`, or `requested`: its driver was asked to stop.
    outcome: &'static str,
}

impl Show for CancelledView {
    fn show(&self) -> String {
        match self.outcome {
            "requested" => format!("{} is being driven: its driver was {}\n", self.id, open("asked to stop")),
            _ => format!("{} is {}\n", self.id, status("cancelled")),
        }
    }
}

async fn cancel(id: &RunId, reason: Option<String>, store: &Inspected) -> Result<Report, CliError> {
    let record = store.run(id).await?;
    let (target, scope) = (CancelTarget::Run(id.clone()), Scope::session(record.session_id));
    let outcome = match store.agent().cancel(target, scope, reason).await?.into_iter().next() {
        Some(CancelOutcome::Cancelled(_)) => "cancelled",
        Some(CancelOutcome::Requested(_)) => "requested",
        Some(CancelOutcome::Ended(_, ended)) => return Err(has_ended(id, ended)),
        None => return Err(CliError::NotFound(format!("run {id}"))),
    };
    Report::new("cancellation", &CancelledView { id: id.clone(), outcome })
}

pub(super) fn has_ended(id: &RunId, ended: RunStatus) -> CliError {
    CliError::refused("ENDED", format!("{id} has ended as {}", ended.as_str()))
}
