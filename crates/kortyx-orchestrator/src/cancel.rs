//! Ending runs from outside.

use kortyx_store::{CancelOutcome, CancelRequest, CancelTarget, InterruptQuery, InterruptRecord, RunStatus, Scope};

use crate::{
    Agent, OrchestratorError,
    agent::Inner,
    discover::check,
    telemetry::{CancelReason, Fact},
};

impl Agent {
    /// Cancels a run, or every run of a session that has not ended, within a scope.
    ///
    /// A waiting run is cancelled at once, its questions with it. One that is being driven is asked to stop: its nodes see it
    /// through their token, and have a few seconds to finish. Runs outside the scope are unknown: they yield nothing.
    ///
    /// # Errors
    /// `SCOPE_REQUIRED` when the scope restricts nothing.
    pub async fn cancel(
        &self,
        target: CancelTarget,
        scope: Scope,
        reason: Option<String>,
    ) -> Result<Vec<CancelOutcome>, OrchestratorError> {
        check(&scope)?;
        self.0.cancel(target, Some(scope), reason).await
    }
}

impl Inner {
    pub(crate) async fn cancel(
        &self,
        target: CancelTarget,
        scope: Option<Scope>,
        reason: Option<String>,
    ) -> Result<Vec<CancelOutcome>, OrchestratorError> {
        let open = if self.telemetry.is_on() { self.questions_of(&target).await? } else { Vec::new() };
        let new_runs = self.drivers.new_runs(&target, scope.as_ref());
        let request = CancelRequest { target, scope, reason: reason.clone() };
        let mut outcomes = self.store.cancel(request).await?;
        for live in new_runs {
            live.cancel_here(reason.as_deref());
            let outcome = CancelOutcome::Requested(live.run.run_id.clone());
            if !outcomes.contains(&outcome) {
                outcomes.push(outcome);
            }
        }
        for outcome in &outcomes {
            match outcome {
                CancelOutcome::Requested(run_id) => self.attend(run_id),
                CancelOutcome::Cancelled(run_id) => {
                    for record in open.iter().filter(|record| record.run_id == *run_id) {
                        let request_id = record.request_id.clone();
                        let (about, reason) = (|| self.telemetry.of_question(record), CancelReason::Run);
                        self.telemetry.record(|| Fact::InterruptCancelled { request_id, about: about(), reason });
                    }
                    let known = open
                        .iter()
                        .find(|record| record.run_id == *run_id)
                        .map(|record| self.telemetry.of_question(record));
                    self.tell_ended(run_id, RunStatus::Cancelled, known).await;
                }
                CancelOutcome::Ended(..) => {}
            }
        }
        Ok(outcomes)
    }

    /// The open questions that a cancellation may close.
    async fn questions_of(&self, target: &CancelTarget) -> Result<Vec<InterruptRecord>, OrchestratorError> {
        let query = match target {
            CancelTarget::Run(run_id) => InterruptQuery { run_id: Some(run_id.clone()), ..InterruptQuery::default() },
            CancelTarget::Session(session_id) => {
                InterruptQuery { scope: Scope::session(session_id.clone()), ..InterruptQuery::default() }
            }
        };
        self.all_interrupts(query).await
    }
}
