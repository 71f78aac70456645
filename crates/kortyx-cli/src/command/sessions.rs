//! Sessions.

use std::collections::BTreeMap;

use kortyx_protocol::{SessionId, Timestamp};
use kortyx_store::{InterruptQuery, RunQuery, RunStatus, Scope};
use serde::Serialize;

use super::{
    checkpoints::CheckpointRow,
    runs::PAGE,
    view::{InterruptView, Lines, table},
};
use crate::{
    arguments::Sessions,
    error::CliError,
    open::Inspected,
    report::{Report, Show},
    show::{
        Table,
        paint::{bold, clean, dim, open, plain, relative, when},
    },
};

/// How many open questions are shown.
const QUESTIONS: u32 = 200;

pub(super) async fn run(command: &Sessions, store: &Inspected) -> Result<Report, CliError> {
    match command {
        Sessions::List { runs } => list(*runs, store).await,
        Sessions::Show { id, content } => show(id, *content, store).await,
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionView {
    id: SessionId,
    checkpoints: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<CheckpointRow>,
    open_interrupts: Vec<InterruptView>,
    #[serde(skip)]
    now: Timestamp,
}

impl Show for SessionView {
    fn show(&self) -> String {
        let mut lines = Lines::default();
        lines.add("session", bold(self.id.as_str()));
        lines.add("checkpoints", self.checkpoints);
        if let Some(head) = &self.head {
            lines.add("newest", &head.id);
            lines.add("turn", head.turn_index);
            lines.add("made", when(head.created_at, self.now));
            lines.add("workflow", clean(&head.workflow));
            lines.maybe("forked from", head.forked_from.as_ref());
        }
        if !self.open_interrupts.is_empty() {
            lines.heading("Open questions");
            lines.push(&table(&self.open_interrupts, self.now));
        }
        lines.into_text()
    }
}

async fn show(id: &SessionId, content: bool, store: &Inspected) -> Result<Report, CliError> {
    let checkpoints = store.store().list_checkpoints(id).await?;
    let query = InterruptQuery { scope: Scope::session(id.clone()), limit: QUESTIONS, ..InterruptQuery::default() };
    let open = store.store().list_interrupts(query).await?.interrupts;
    if checkpoints.is_empty() && open.is_empty() {
        return Err(Inspected::no_session(id));
    }
    let view = SessionView {
        id: id.clone(),
        checkpoints: checkpoints.len(),
        head: checkpoints.last().map(CheckpointRow::of),
        open_interrupts: open.iter().map(|question| InterruptView::of(question, content)).collect(),
        now: store.now().await?,
    };
    Report::new("session", &view)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListView {
    /// By when something last happened to a run of theirs, the latest first.
    sessions: Vec<SessionRow>,
    /// There are more runs than were looked at.
    is_cut: bool,
    #[serde(skip)]
    now: Timestamp,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionRow {
    id: SessionId,
    runs: u64,
    /// Of them, those that wait for people.
    waiting: u64,
    updated_at: Timestamp,
}

impl Show for ListView {
    fn show(&self) -> String {
        let mut table = Table::new(&["SESSION", "RUNS", "WAITING", "CHANGED"]);
        for row in &self.sessions {
            table.row([
                bold(row.id.as_str().to_owned()),
                plain(row.runs.to_string()),
                if row.waiting == 0 { dim("0") } else { open(row.waiting.to_string()) },
                plain(relative(row.updated_at, self.now)),
            ]);
        }
        let mut text = if table.is_empty() { format!("{}\n", dim("no sessions")) } else { table.render() };
        if self.is_cut {
            text.push_str("there are more runs than were looked at: raise --runs\n");
        }
        text
    }
}

async fn list(limit: u64, store: &Inspected) -> Result<Report, CliError> {
    let mut query = RunQuery { limit: PAGE, ..RunQuery::default() };
    let (mut rows, mut seen, mut is_cut) = (BTreeMap::<SessionId, SessionRow>::new(), 0_u64, false);
    while !is_cut {
        let page = store.store().list_runs(query.clone()).await?;
        for run in page.runs {
            is_cut |= seen >= limit;
            if is_cut {
                break;
            }
            seen += 1;
            let (id, updated_at) = (run.session_id.clone(), run.updated_at);
            let row = rows.entry(run.session_id).or_insert(SessionRow { id, runs: 0, waiting: 0, updated_at });
            row.runs += 1;
            row.waiting += u64::from(run.status == RunStatus::Suspended);
            row.updated_at = row.updated_at.max(updated_at);
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    let mut sessions: Vec<_> = rows.into_values().collect();
    sessions.sort_by_key(|row| std::cmp::Reverse(row.updated_at));
    Report::new("sessions", &ListView { sessions, is_cut, now: store.now().await? })
}
