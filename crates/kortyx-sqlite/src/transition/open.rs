//! Opening a run.

use kortyx_store::{Lease, OpenRun, RunStatus, StoreError};

use super::Transition;
use crate::batch::{Batch, Seed, Wants};

impl Transition for OpenRun {
    const NAME: &'static str = "open";
    type Outcome = Lease;

    fn wants(&self, wants: &mut Wants) {
        wants.begun(&self.run);
    }

    fn apply(&self, batch: &mut Batch) -> Result<Lease, StoreError> {
        batch.check_new_run(&self.run)?;
        let seed = Seed {
            run: &self.run,
            workflow: &self.run.workflow,
            status: RunStatus::Running,
            snapshot: Some(&self.snapshot),
            answers: 0,
        };
        let key = batch.add_run(&seed)?;
        batch.run_mut(key)?.say(key, &self.chunks);
        batch.lease(key, &self.driver)
    }
}
