//! Cancelling runs.

use async_trait::async_trait;
use kortyx_store::{CancelOutcome, CancelRequest, CancelTarget, Signal, StoreError, StoreErrorKind};

use super::{Alone, keys, load_runs};
use crate::{client::values, work::Work};

#[async_trait]
impl Alone for CancelRequest {
    const NAME: &'static str = "cancel";
    type Outcome = Vec<CancelOutcome>;

    async fn run(&self, work: &mut Work<'_>) -> Result<Vec<CancelOutcome>, StoreError> {
        if self.scope.as_ref().is_some_and(kortyx_store::Scope::is_empty) {
            let message = "cancelling by scope needs a session or a context";
            return Err(work.batch.error(StoreErrorKind::ScopeRequired, message));
        }
        let rows = match &self.target {
            CancelTarget::Run(run_id) => {
                work.fetch(include_str!("../queries/alone/run_key.sql"), values![run_id.as_str()]).await?
            }
            CancelTarget::Session(session_id) => {
                work.fetch(include_str!("../queries/alone/active_runs.sql"), values![session_id.as_str()]).await?
            }
        };
        let keys = keys(&work.batch, &rows)?;
        load_runs(work, &keys).await?;
        let batch = &mut work.batch;
        let now = batch.now;
        let mut outcomes = Vec::with_capacity(keys.len());
        for key in keys {
            let run = batch.sound_run(key)?;
            let (run_id, status, is_driven) = (run.record.run_id.clone(), run.record.status, run.is_driven(now));
            if self.scope.as_ref().is_some_and(|scope| !scope.contains(&run.record.session_id, &run.context)) {
                continue;
            }
            if status.is_terminal() {
                outcomes.push(CancelOutcome::Ended(run_id, status));
            } else if is_driven {
                let run = batch.run_mut(key)?;
                if !run.record.cancel_requested {
                    run.record.cancel_requested = true;
                    if self.reason.is_some() {
                        run.record.reason.clone_from(&self.reason);
                    }
                    run.changed(now);
                }
                batch.signals.push(Signal::Attention(run_id.clone()));
                outcomes.push(CancelOutcome::Requested(run_id));
            } else {
                batch.end_cancelled(key, self.reason.as_deref())?;
                outcomes.push(CancelOutcome::Cancelled(run_id));
            }
        }
        Ok(outcomes)
    }
}
