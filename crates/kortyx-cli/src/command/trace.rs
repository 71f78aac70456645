//! A run from its beginning: visits, calls, questions and answers, with their times.

mod tree;

use std::collections::BTreeMap;

use kortyx_protocol::{FailureCode, RequestId, RunId, Timestamp};
use kortyx_runtime::{
    RestoreError,
    inspect::{self, ActivationView, CallStanding, CallView, FrameView, Standing},
};
use kortyx_store::RunHistory;
use serde::Serialize;

use super::{runs::RunView, view::InterruptView};
use crate::{error::CliError, open::Inspected, report::Report};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TraceView {
    run: RunView,
    /// How many visits the run has made; absent when its state is gone, as that of an ended run is.
    #[serde(skip_serializing_if = "Option::is_none")]
    executions: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    used: BTreeMap<String, u64>,
    frames: Vec<FrameRow>,
    activations: Vec<VisitRow>,
    /// In the order in which they were published.
    interrupts: Vec<AskedRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
    #[serde(skip)]
    now: Timestamp,
}

/// A workflow under way in the run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FrameRow {
    id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<u32>,
    workflow: String,
    version: String,
    visits: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureCode>,
}

/// A visit to a node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct VisitRow {
    id: u32,
    frame: u32,
    node: String,
    visit: u32,
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    began_at: Option<Timestamp>,
    failed_attempts: u32,
    is_about_a_limit: bool,
    calls: Vec<CallRow>,
}

/// A call of a node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CallRow {
    kind: &'static str,
    id: String,
    occurrence: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    identity: String,
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    /// Of a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupt: Option<RequestId>,
    /// Of a child that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    frame: Option<u32>,
}

/// A question, and the visit that asked it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AskedRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    activation: Option<u32>,
    interrupt: InterruptView,
}

pub(super) async fn trace(id: &RunId, content: bool, store: &Inspected) -> Result<Report, CliError> {
    let history = store.store().history(id).await?.ok_or_else(|| CliError::NotFound(format!("run {id}")))?;
    Report::new("trace", &TraceView::of(&history, content, store.now().await?))
}

impl TraceView {
    fn of(history: &RunHistory, content: bool, now: Timestamp) -> Self {
        let mut view = Self {
            run: RunView::of(&history.run, now),
            executions: None,
            used: BTreeMap::new(),
            frames: Vec::new(),
            activations: Vec::new(),
            interrupts: history
                .questions
                .iter()
                .map(|question| AskedRow {
                    activation: inspect::visit_of(&question.ask.0),
                    interrupt: InterruptView::of(question, content),
                })
                .collect(),
            unreadable: None,
            now,
        };
        match state(history) {
            Some(Ok(state)) => view.fill(state, history),
            Some(Err(why)) => view.unreadable = Some(why),
            None => {}
        }
        view
    }

    fn fill(&mut self, state: inspect::RunView, history: &RunHistory) {
        let asked: BTreeMap<&str, &RequestId> =
            history.questions.iter().map(|question| (question.ask.0.as_str(), &question.request_id)).collect();
        self.executions = Some(state.executions);
        self.used = state.used.iter().map(|(counter, used)| (counter.to_string(), *used)).collect();
        self.frames = state.frames.iter().map(FrameRow::of).collect();
        self.activations = state.activations.iter().map(|activation| VisitRow::of(activation, &asked)).collect();
        self.unreadable = state.unread.map(|unread| format!("entry {} does not read: {}", unread.entry, unread.reason));
    }
}

/// The state of a run that has one, or why it does not read.
pub(super) fn state(history: &RunHistory) -> Option<Result<inspect::RunView, String>> {
    let snapshot = history.snapshot.as_deref()?;
    let entries: Vec<&[u8]> = history.entries.iter().map(|entry| &**entry).collect();
    Some(inspect::view(snapshot, &entries).map_err(|error| match error {
        RestoreError::Parked(failure) => failure.message,
        error => error.to_string(),
    }))
}

impl FrameRow {
    fn of(frame: &FrameView) -> Self {
        Self {
            id: frame.id,
            caller: frame.caller,
            workflow: frame.workflow.id.to_string(),
            version: frame.workflow.version.to_string(),
            visits: frame.visits.clone(),
            failure: frame.failure.as_ref().map(|failure| failure.code),
        }
    }
}

impl VisitRow {
    fn of(activation: &ActivationView, asked: &BTreeMap<&str, &RequestId>) -> Self {
        Self {
            id: activation.id,
            frame: activation.frame,
            node: activation.node.to_string(),
            visit: activation.visit,
            standing: match activation.standing {
                Standing::Ready => "ready",
                Standing::Waiting => "waiting",
                Standing::Completed => "completed",
                Standing::Failed(_) => "failed",
                _ => "unknown",
            },
            began_at: activation.began_at,
            failed_attempts: activation.failed_attempts,
            is_about_a_limit: activation.is_about_a_limit,
            calls: activation.calls.iter().map(|call| CallRow::of(call, asked)).collect(),
        }
    }
}

impl CallRow {
    fn of(call: &CallView, asked: &BTreeMap<&str, &RequestId>) -> Self {
        Self {
            kind: call.kind.as_str(),
            id: call.id.to_string(),
            occurrence: call.occurrence,
            identity: call.identity.to_string(),
            standing: match call.standing {
                CallStanding::Done => "done",
                CallStanding::Failed => "failed",
                CallStanding::Open => "open",
                CallStanding::Abandoned => "abandoned",
                _ => "unknown",
            },
            ended_at: call.ended_at,
            interrupt: call.ask.as_deref().and_then(|ask| asked.get(ask)).map(|&id| id.clone()),
            frame: call.frame,
        }
    }
}
