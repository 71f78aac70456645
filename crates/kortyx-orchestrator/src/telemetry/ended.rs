//! Runs that end without a driver: by time, or by somebody's word.

use kortyx_protocol::RunId;
use kortyx_store::RunStatus;

use super::{Correlation, Fact};
use crate::{agent::Inner, driver::StoredOutcome};

impl Inner {
    /// Tells that a run ended that nobody drove. What is told of it is read from storage; where it cannot be read, what is known counts.
    pub(crate) async fn tell_ended(&self, run_id: &RunId, status: RunStatus, known: Option<Correlation>) {
        if !self.telemetry.is_on() {
            return;
        }
        let run = self.store.run(run_id).await.ok().flatten();
        let usage = run.as_ref().and_then(|run| StoredOutcome::usage(run.outcome.as_deref()));
        let about = run.as_ref().map(|run| self.telemetry.of_run(run)).or(known.map(Correlation::of_whole_run));
        let Some(about) = about else { return };
        self.telemetry.record(|| Fact::RunFinished { about, status, code: None, usage, output: None });
    }
}
