//! Sessions.

use kortyx_protocol::{SessionId, Timestamp};
use kortyx_store::{InterruptQuery, Scope};
use serde::Serialize;

use super::{
    checkpoints::CheckpointRow,
    view::{InterruptView, Lines, table},
};
use crate::{
    arguments::Sessions,
    error::CliError,
    open::Inspected,
    report::{Report, Show},
    show::paint::{bold, clean, when},
};

/// How many open questions are shown.
const QUESTIONS: u32 = 200;

pub(super) async fn run(command: &Sessions, store: &Inspected) -> Result<Report, CliError> {
    match command {
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
