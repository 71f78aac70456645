//! A driver's work under its lease: open, record, renew, release, park.

use std::time::Duration;

use kortyx_store::{Lease, OpenRun, Park, Record, Recorded, Renewed, RunStatus, Signal, StoreError};

use crate::state::Transition;

impl Transition<'_> {
    pub(crate) fn open(&mut self, request: OpenRun) -> Result<Lease, StoreError> {
        let OpenRun { run, driver, snapshot, chunks } = request;
        self.check_size("a snapshot", &snapshot)?;
        self.check_chunks(&chunks)?;
        self.check_new_run(&run.run_id)?;
        let slot = self.add_run(run, snapshot)?;
        self.say(slot, chunks)?;
        self.grant(slot, &driver)
    }

    pub(crate) fn record(&mut self, request: Record) -> Result<Recorded, StoreError> {
        let Record { lease, entries, chunks, publish, withdraw, answers_seen } = request;
        let slot = self.leased(&lease)?;
        for entry in &entries {
            self.check_size("an entry", entry)?;
        }
        self.check_chunks(&chunks)?;
        self.check_publish(Some(slot), &publish, &withdraw)?;
        self.withdraw(slot, &withdraw)?;
        let mut published = Vec::with_capacity(publish.len());
        for new in publish {
            published.push(self.publish(slot, new)?);
        }
        let now = self.now;
        self.change(slot, |run| {
            run.entries.extend(entries);
            run.chunks.extend(chunks);
            run.updated_at = now;
        })?;
        let mut context = None;
        let published = published.into_iter().map(|slot| self.record_sharing(slot, &mut context));
        Ok(Recorded {
            published: published.collect::<Result<_, _>>()?,
            answers: self.unseen(slot, answers_seen)?,
            cancel_requested: self.run_at(slot)?.cancel_requested,
        })
    }

    pub(crate) fn renew(&mut self, lease: &Lease, ttl: Duration, answers_seen: u64) -> Result<Renewed, StoreError> {
        let slot = self.leased(lease)?;
        let until = self.now.saturating_add(ttl);
        self.change(slot, |run| {
            run.lease_until = Some(until);
            run.is_orphan = false;
        })?;
        Ok(Renewed {
            lease: Lease { until, ..lease.clone() },
            answers: self.unseen(slot, answers_seen)?,
            cancel_requested: self.run_at(slot)?.cancel_requested,
        })
    }

    pub(crate) fn release(&mut self, lease: &Lease) -> Result<(), StoreError> {
        let slot = self.leased(lease)?;
        let now = self.now;
        self.change(slot, |run| {
            run.lease_until = None;
            run.updated_at = now;
        })?;
        self.signal(Signal::Work);
        Ok(())
    }

    pub(crate) fn park(&mut self, request: Park) -> Result<(), StoreError> {
        let slot = self.leased(&request.lease)?;
        let now = self.now;
        self.change(slot, |run| {
            run.status = RunStatus::Parked;
            run.reason = Some(request.reason.into());
            run.lease_until = None;
            run.updated_at = now;
        })
    }
}
