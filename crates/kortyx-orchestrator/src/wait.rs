//! Waiting for runs: those driven here, and those driven by others.

use std::{sync::Arc, time::Duration};

use kortyx_protocol::{Failure, FailureCode, RunId};
use kortyx_store::{InterruptQuery, InterruptRecord, RunRecord, RunStatus};
use tokio::time::{Instant, sleep};

use crate::{
    OrchestratorError,
    agent::Inner,
    driver::{Response, Stand, Started, State, StoredOutcome, corrupt},
};

/// How long to wait before the first look at a run that somebody else drives, and the longest wait between looks.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LONGEST_LOOK: Duration = Duration::from_millis(500);
/// Questions of one page.
const PAGE: u32 = 200;

impl Inner {
    /// Waits for a run that is driven here; `answered` as of [`wait_for`](Self::wait_for).
    pub(crate) async fn settled(
        self: &Arc<Self>,
        started: Started,
        run_id: &RunId,
        answered: Option<u64>,
    ) -> Result<Stand, OrchestratorError> {
        match started.stand.await {
            Ok(stand) => self.stood(stand, answered).await,
            // The task ended without a word: its runtime went down, or it panicked.
            Err(_) => Err(OrchestratorError::StillRunning(run_id.clone())),
        }
    }

    /// Where a run stands, also when somebody else turned out to drive it.
    pub(crate) async fn stood(
        self: &Arc<Self>,
        stand: Stand,
        answered: Option<u64>,
    ) -> Result<Stand, OrchestratorError> {
        match stand.state {
            State::Elsewhere => self.wait_for(&stand.run_id, answered).await,
            State::Responded(..) => self.with_questions(stand).await,
            _ => Ok(stand),
        }
    }

    /// A response with the questions that were open at its end and still are.
    pub(crate) async fn with_questions(&self, mut stand: Stand) -> Result<Stand, OrchestratorError> {
        if let State::Responded(response, open) = &mut stand.state
            && response.has_asked
        {
            let all = self.open_interrupts(&stand.run_id).await?.into_iter();
            *open = all.filter(|record| !record.after_response_completed).map(Into::into).collect();
        }
        Ok(stand)
    }

    /// Waits, within bounds, until a run that somebody else drives waits for people, has ended, or completes its response.
    ///
    /// The caller has waited since the answer with the number `answered`, or since the run began: a response that was complete
    /// before is not its own.
    pub(crate) async fn wait_for(
        self: &Arc<Self>,
        run_id: &RunId,
        answered: Option<u64>,
    ) -> Result<Stand, OrchestratorError> {
        let deadline = Instant::now() + self.settings.wait;
        let mut pause = FIRST_LOOK;
        loop {
            let live = self.drivers.get(run_id);
            let ended = live.as_ref().map(|live| live.ended.notified());
            if let Some(stand) = live.as_ref().and_then(|live| live.responded(answered)) {
                return self.with_questions(stand).await;
            }
            if let Some(stand) = self.look_at(run_id, answered).await? {
                return Ok(stand);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(OrchestratorError::StillRunning(run_id.clone()));
            }
            let ended = async {
                match ended {
                    Some(ended) => ended.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = ended => {}
                () = sleep(pause.min(left)) => {}
                () = self.killed.cancelled() => return Err(OrchestratorError::ShuttingDown),
            }
            pause = (pause * 2).min(LONGEST_LOOK);
        }
    }

    /// Where a run stands, at its response when that is due; `None` while it is under way.
    async fn look_at(&self, run_id: &RunId, answered: Option<u64>) -> Result<Option<Stand>, OrchestratorError> {
        let run = self.store.run(run_id).await?.ok_or(OrchestratorError::NotFound)?;
        match response_of(&run)?.filter(|response| response.is_due(answered)) {
            Some(response) => self.with_questions(Stand::at(run.run_id, run.session_id, response)).await.map(Some),
            None => self.stand_of(run).await,
        }
    }

    /// Where a stored run stands; `None` while it is under way.
    pub(crate) async fn stand_of(&self, run: RunRecord) -> Result<Option<Stand>, OrchestratorError> {
        let mut usage = None;
        let state = match run.status {
            RunStatus::Running => return Ok(None),
            RunStatus::Suspended => {
                let open = self.open_interrupts(&run.run_id).await?;
                if open.is_empty() {
                    // They are past their time: the run ends, or goes on with a default, as soon as a worker looks.
                    return Ok(None);
                }
                State::Suspended(open.into_iter().map(Into::into).collect())
            }
            RunStatus::Parked => State::SetAside(parked(run.reason.as_deref())),
            status => {
                usage = StoredOutcome::usage(run.outcome.as_deref());
                StoredOutcome::state(status, run.outcome.as_deref(), run.reason).map_err(OrchestratorError::Corrupt)?
            }
        };
        let workflow = run.workflow.id;
        Ok(Some(Stand { run_id: run.run_id, session_id: run.session_id, workflow, checkpoint: None, usage, state }))
    }

    /// Every open question of a run, oldest first.
    pub(crate) async fn open_interrupts(&self, run_id: &RunId) -> Result<Vec<InterruptRecord>, OrchestratorError> {
        let query = InterruptQuery { run_id: Some(run_id.clone()), limit: PAGE, ..InterruptQuery::default() };
        self.all_interrupts(query).await
    }

    /// Every open question that a query finds, oldest first.
    pub(crate) async fn all_interrupts(
        &self,
        mut query: InterruptQuery,
    ) -> Result<Vec<InterruptRecord>, OrchestratorError> {
        query.limit = PAGE;
        let mut all = Vec::new();
        loop {
            let page = self.store.list_interrupts(query.clone()).await?;
            all.extend(page.interrupts);
            match page.next {
                Some(cursor) => query.cursor = Some(cursor),
                None => return Ok(all),
            }
        }
    }
}

/// The response that a stored run has completed.
pub(crate) fn response_of(run: &RunRecord) -> Result<Option<Response>, OrchestratorError> {
    let response = run.response.as_deref().map(Response::read).transpose();
    response.map_err(OrchestratorError::Corrupt)
}

/// Why a run is set aside, as its driver stored it.
pub(crate) fn parked(reason: Option<&str>) -> Failure {
    match reason.map(serde_json::from_str) {
        Some(Ok(failure)) => failure,
        Some(Err(error)) => corrupt(&format!("the reason of a parked run does not read: {error}")),
        None => Failure::new(FailureCode::WorkflowChanged, "the run is set aside"),
    }
}
