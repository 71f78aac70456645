//! Sessions.

use kortyx_protocol::{CheckpointId, SessionId, Timestamp};
use kortyx_store::{InterruptQuery, Scope, SessionQuery, SessionRecord};
use serde::Serialize;

use super::{
    checkpoints::CheckpointRow,
    interrupts::more,
    runs::PAGE,
    view::{InterruptView, Lines, table},
};
use crate::{
    arguments::{Page, Sessions},
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
        Sessions::List(page) => list(page, store).await,
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
    sessions: Vec<SessionRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip)]
    now: Timestamp,
}

/// A session in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionRow {
    id: SessionId,
    /// Its newest checkpoint.
    head: CheckpointId,
    turn_index: u64,
    head_at: Timestamp,
    /// Runs of it that have not ended.
    active_runs: u64,
}

impl SessionRow {
    fn of(record: SessionRecord) -> Self {
        let SessionRecord { session_id, head, turn_index, head_at, active_runs } = record;
        Self { id: session_id, head, turn_index, head_at, active_runs }
    }
}

impl Show for ListView {
    fn show(&self) -> String {
        let mut table = Table::new(&["SESSION", "TURN", "CHANGED", "ACTIVE RUNS", "NEWEST CHECKPOINT"]);
        for row in &self.sessions {
            table.row([
                bold(row.id.as_str().to_owned()),
                plain(row.turn_index.to_string()),
                plain(relative(row.head_at, self.now)),
                if row.active_runs == 0 { dim("0") } else { open(row.active_runs.to_string()) },
                plain(row.head.as_str().to_owned()),
            ]);
        }
        let mut text = if table.is_empty() { format!("{}\n", dim("no sessions")) } else { table.render() };
        if let Some(next) = &self.next_cursor {
            text.push_str(&more(next));
        }
        text
    }
}

async fn list(page: &Page, store: &Inspected) -> Result<Report, CliError> {
    let mut query = SessionQuery { limit: 0, cursor: page.cursor.clone() };
    let (mut sessions, mut left) = (Vec::new(), page.limit);
    while left > 0 {
        query.limit = left.min(PAGE);
        let page = store.store().list_sessions(query.clone()).await?;
        left = left.saturating_sub(u32::try_from(page.sessions.len()).unwrap_or(u32::MAX));
        sessions.extend(page.sessions.into_iter().map(SessionRow::of));
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    Report::new("sessions", &ListView { sessions, next_cursor: query.cursor, now: store.now().await? })
}
