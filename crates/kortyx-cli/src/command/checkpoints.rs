//! Checkpoints: the states of a session, and what differs between two of them.

mod diff;

use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::CheckpointRecord;
use serde::Serialize;

use crate::{
    arguments::Checkpoints,
    error::CliError,
    open::Inspected,
    report::{Report, Show},
    show::{
        Table,
        paint::{bold, clean, dim, open, plain, relative},
    },
};

pub(super) async fn run(command: &Checkpoints, store: &Inspected) -> Result<Report, CliError> {
    match command {
        Checkpoints::List { session } => list(session, store).await,
        Checkpoints::Diff { before, after, content } => {
            diff::diff(&one(before, store).await?, &one(after, store).await?, *content)
        }
    }
}

/// A checkpoint in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckpointRow {
    pub(super) id: CheckpointId,
    pub(super) session_id: SessionId,
    pub(super) turn_index: u64,
    pub(super) created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) label: Option<String>,
    pub(super) workflow: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workflow_version: Option<String>,
    pub(super) nodes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<CheckpointId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_session: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) forked_from: Option<CheckpointId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run_id: Option<RunId>,
    /// Questions that were open at its end.
    pub(super) open_interrupts: Vec<RequestId>,
    pub(super) state_bytes: usize,
}

impl CheckpointRow {
    pub(super) fn of(record: &CheckpointRecord) -> Self {
        let checkpoint = &record.checkpoint;
        Self {
            id: checkpoint.id.clone(),
            session_id: record.session_id.clone(),
            turn_index: record.turn_index,
            created_at: record.created_at,
            label: checkpoint.label.clone(),
            workflow: checkpoint.workflow.clone(),
            workflow_version: checkpoint.workflow_version.clone(),
            nodes: checkpoint.nodes.clone(),
            parent: record.parent.clone(),
            parent_session: record.parent_session.clone(),
            forked_from: record.forked_from.clone(),
            run_id: record.run_id.clone(),
            open_interrupts: record.interrupts.iter().map(|question| question.request_id.clone()).collect(),
            state_bytes: checkpoint.state.len(),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListView {
    checkpoints: Vec<CheckpointRow>,
    #[serde(skip)]
    now: Timestamp,
}

impl Show for ListView {
    fn show(&self) -> String {
        let mut table = Table::new(&["TURN", "CHECKPOINT", "MADE", "WORKFLOW", "NODES", "OPEN", "BYTES", "LABEL"]);
        for row in &self.checkpoints {
            let asked = row.open_interrupts.len();
            table.row([
                plain(row.turn_index.to_string()),
                bold(row.id.as_str().to_owned()),
                plain(relative(row.created_at, self.now)),
                plain(clean(&row.workflow).into_owned()),
                plain(clean(&row.nodes.join(" → ")).into_owned()),
                if asked == 0 { dim("0") } else { open(asked.to_string()) },
                plain(row.state_bytes.to_string()),
                plain(clean(row.label.as_deref().unwrap_or_default()).into_owned()),
            ]);
        }
        table.render()
    }
}

async fn list(session: &SessionId, store: &Inspected) -> Result<Report, CliError> {
    let records = store.store().list_checkpoints(session).await?;
    if records.is_empty() {
        return Err(Inspected::no_session(session));
    }
    let checkpoints = records.iter().map(CheckpointRow::of).collect();
    Report::new("checkpoints", &ListView { checkpoints, now: store.now().await? })
}

async fn one(id: &CheckpointId, store: &Inspected) -> Result<CheckpointRecord, CliError> {
    store.store().checkpoint(id).await?.ok_or_else(|| CliError::NotFound(format!("checkpoint {id}")))
}
