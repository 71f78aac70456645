//! Keeping, giving up and setting aside what a lease is for.

use std::time::Duration;

use kortyx_store::{Lease, Park, Renewed, RunStatus, Signal, StoreError};

use super::Transition;
use crate::batch::{Batch, Wants};

/// See [`Store::renew`](kortyx_store::Store::renew).
pub(crate) struct Renew {
    pub(crate) lease: Lease,
    pub(crate) ttl: Duration,
    pub(crate) answers_seen: u64,
}

impl Transition for Renew {
    const NAME: &'static str = "renew";
    type Outcome = Renewed;

    fn wants(&self, wants: &mut Wants) {
        wants.run(&self.lease.run_id);
        wants.answers(&self.lease.run_id, self.answers_seen);
    }

    fn apply(&self, batch: &mut Batch) -> Result<Renewed, StoreError> {
        let key = batch.held(&self.lease)?;
        let until = batch.now.saturating_add(self.ttl);
        let run = batch.run_mut(key)?;
        run.renew(until);
        Ok(Renewed {
            lease: Lease { until, ..self.lease.clone() },
            answers: run.answers_above(self.answers_seen),
            cancel_requested: run.record.cancel_requested,
        })
    }
}

/// See [`Store::release`](kortyx_store::Store::release).
pub(crate) struct Release {
    pub(crate) lease: Lease,
}

impl Transition for Release {
    const NAME: &'static str = "release";
    type Outcome = ();

    fn wants(&self, wants: &mut Wants) {
        wants.run(&self.lease.run_id);
    }

    fn apply(&self, batch: &mut Batch) -> Result<(), StoreError> {
        let key = batch.held(&self.lease)?;
        let now = batch.now;
        let run = batch.run_mut(key)?;
        run.leave();
        run.changed(now);
        batch.signals.push(Signal::Work);
        Ok(())
    }
}

impl Transition for Park {
    const NAME: &'static str = "park";
    type Outcome = ();

    fn wants(&self, wants: &mut Wants) {
        wants.run(&self.lease.run_id);
        wants.pending(&self.lease.run_id);
    }

    fn apply(&self, batch: &mut Batch) -> Result<(), StoreError> {
        let key = batch.held(&self.lease)?;
        // Nobody would close it any more: a parked run has no driver to ask.
        if batch.run(key)?.record.cancel_requested {
            return batch.end_cancelled(key, None);
        }
        let now = batch.now;
        let run = batch.run_mut(key)?;
        run.record.status = RunStatus::Parked;
        run.record.reason = Some(self.reason.clone());
        run.leave();
        run.changed(now);
        Ok(())
    }
}
