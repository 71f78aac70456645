//! Finding runs and open questions.

use kortyx_protocol::{Failure, InterruptInput, RawJson, RequestId, ResumeHandle, RunId, SessionId, Timestamp};
use kortyx_store::{InterruptQuery, InterruptRecord, InterruptStatus, RunRecord, RunStatus, Scope};
use serde::{Serialize, Serializer};

use crate::{
    Agent, OrchestratorError,
    driver::{State, StoredOutcome},
    present,
    wait::parked,
};

/// How many questions a page holds when the query does not say.
const PAGE: u32 = 50;

/// A question as those see it who look for it. Its token is not part of what is serialized.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Interrupt {
    /// Its public id.
    pub id: RequestId,
    /// Where it stands.
    #[serde(serialize_with = "name")]
    pub status: InterruptStatus,
    /// Its run.
    pub run_id: RunId,
    /// Its run's session.
    pub session_id: SessionId,
    /// The workflow where it was asked.
    pub workflow: String,
    /// The node where it was asked.
    pub node: String,
    /// When it was published.
    pub created_at: Timestamp,
    /// Its absolute deadline.
    pub expires_at: Timestamp,
    /// It was asked after the response that its run belongs to was completed.
    pub after_response_completed: bool,
    /// What to show and what to answer.
    pub input: InterruptInput,
    #[serde(skip)]
    handle: ResumeHandle,
}

impl Interrupt {
    /// Everything that is needed to answer it. It holds the question's secret: give it only to those who may answer.
    pub fn handle(&self) -> &ResumeHandle {
        &self.handle
    }

    pub(crate) fn of(record: InterruptRecord) -> Result<Self, OrchestratorError> {
        let input = present::question(&record)?.input();
        let handle = ResumeHandle {
            token: record.token,
            request_id: record.request_id.clone(),
            session_id: record.session_id.clone(),
            run_id: record.run_id.clone(),
        };
        Ok(Self {
            id: record.request_id,
            status: record.status,
            run_id: record.run_id,
            session_id: record.session_id,
            workflow: record.workflow,
            node: record.node,
            created_at: record.created_at,
            expires_at: record.expires_at,
            after_response_completed: record.after_response_completed,
            input,
            handle,
        })
    }
}

/// A page of open questions, oldest first.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Interrupts {
    /// The questions.
    pub interrupts: Vec<Interrupt>,
    /// The cursor of the next page, when there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A run as those see it who look for it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunView {
    /// The run.
    pub run_id: RunId,
    /// Its session.
    pub session_id: SessionId,
    /// The workflow that it is bound to.
    pub workflow: String,
    /// That workflow's version.
    pub workflow_version: String,
    /// Where it stands.
    pub status: RunStatus,
    /// When it became durable.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Somebody asked its driver to stop.
    pub is_cancel_requested: bool,
    /// The data of a completed run.
    pub data: Option<RawJson>,
    /// Why it failed, or why it is set aside.
    pub failure: Option<Failure>,
    /// Why it was cancelled.
    pub reason: Option<String>,
}

impl RunView {
    fn of(run: RunRecord) -> Result<Self, OrchestratorError> {
        let mut view = Self {
            run_id: run.run_id,
            session_id: run.session_id,
            workflow: run.workflow.id.to_string(),
            workflow_version: run.workflow.version.to_string(),
            status: run.status,
            created_at: run.created_at,
            updated_at: run.updated_at,
            is_cancel_requested: run.cancel_requested,
            data: None,
            failure: None,
            reason: None,
        };
        match run.status {
            RunStatus::Parked => view.failure = Some(parked(run.reason.as_deref())),
            RunStatus::Cancelled => view.reason = run.reason,
            RunStatus::Completed | RunStatus::Failed => {
                let state = StoredOutcome::state(run.status, run.outcome.as_deref(), None);
                match state.map_err(OrchestratorError::Corrupt)? {
                    State::Completed(end) => view.data = Some(end.data),
                    State::Failed(failure) => view.failure = Some(failure),
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(view)
    }
}

impl Agent {
    /// A page of the open questions in a scope or of a run, oldest first; 50 unless the query sets a limit.
    ///
    /// # Errors
    /// `SCOPE_REQUIRED` when the query names neither session, context nor run.
    pub async fn list_interrupts(&self, mut query: InterruptQuery) -> Result<Interrupts, OrchestratorError> {
        if query.limit == 0 {
            query.limit = PAGE;
        }
        let page = self.0.store.list_interrupts(query).await?;
        let interrupts = page.interrupts.into_iter().map(Interrupt::of).collect::<Result<_, _>>()?;
        Ok(Interrupts { interrupts, next_cursor: page.next })
    }

    /// A question, whatever its status; `None` when there is none with this id in the scope.
    ///
    /// # Errors
    /// `SCOPE_REQUIRED` when the scope restricts nothing.
    pub async fn get_interrupt(&self, id: &RequestId, scope: &Scope) -> Result<Option<Interrupt>, OrchestratorError> {
        check(scope)?;
        let record = self.0.store.interrupt(id).await?;
        let inside = record.filter(|record| scope.contains(&record.session_id, &record.context));
        if let Some(record) = &inside {
            self.0.tell_overdue(record);
        }
        inside.map(Interrupt::of).transpose()
    }

    /// A run; `None` when there is none with this id in the scope.
    ///
    /// # Errors
    /// `SCOPE_REQUIRED` when the scope restricts nothing.
    pub async fn get_run(&self, id: &RunId, scope: &Scope) -> Result<Option<RunView>, OrchestratorError> {
        check(scope)?;
        let run = self.0.store.run(id).await?;
        let inside = run.filter(|run| scope.contains(&run.session_id, &run.context));
        inside.map(RunView::of).transpose()
    }
}

pub(crate) fn check(scope: &Scope) -> Result<(), OrchestratorError> {
    if scope.is_empty() { Err(OrchestratorError::ScopeRequired) } else { Ok(()) }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn name<S: Serializer>(status: &InterruptStatus, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.as_str())
}
