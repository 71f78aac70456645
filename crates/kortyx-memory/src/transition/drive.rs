//! A driver's work under its lease: open, record, renew, release, park.

use std::time::Duration;

use kortyx_store::{Lease, NewResponse, OpenRun, Park, Record, Recorded, Renewed, RunStatus, Signal, StoreError};

use crate::{slab::Slot, state::Transition};

impl Transition<'_> {
    pub(crate) fn open(&mut self, request: OpenRun) -> Result<Lease, StoreError> {
        let OpenRun { run, driver, snapshot, chunks } = request;
        self.check_size("a snapshot", &snapshot)?;
        self.check_chunks(&chunks)?;
        self.check_new_run(&run)?;
        let slot = self.add_run(run, snapshot)?;
        self.say(slot, chunks)?;
        self.grant(slot, &driver)
    }

    pub(crate) fn record(&mut self, request: Record) -> Result<Recorded, StoreError> {
        let Record { lease, entries, chunks, publish, withdraw, answers_seen, response } = request;
        let slot = self.leased(&lease)?;
        for entry in &entries {
            self.check_size("an entry", entry)?;
        }
        self.check_chunks(&chunks)?;
        self.check_publish(Some(slot), &publish, &withdraw)?;
        self.check_response(slot, response.as_ref())?;
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
        self.respond(slot, response)?;
        let mut context = None;
        let published = published.into_iter().map(|slot| self.record_sharing(slot, &mut context));
        Ok(Recorded {
            published: published.collect::<Result<_, _>>()?,
            answers: self.unseen(slot, answers_seen)?,
            cancel_requested: self.run_at(slot)?.cancel_requested,
        })
    }

    /// Refuses a response that cannot be completed.
    fn check_response(&self, slot: Slot, response: Option<&NewResponse>) -> Result<(), StoreError> {
        let Some(response) = response else { return Ok(()) };
        self.check_size("a response", &response.outcome)?;
        self.check_checkpoint(response.checkpoint.as_ref())?;
        match self.run_at(slot)?.response {
            Some(_) => Err(self.invalid("the run's response is complete")),
            None => Ok(()),
        }
    }

    /// Completes the response of a run, which goes on beside its session: the checkpoint has none of its questions.
    fn respond(&mut self, slot: Slot, response: Option<NewResponse>) -> Result<(), StoreError> {
        let Some(NewResponse { outcome, checkpoint }) = response else { return Ok(()) };
        self.run_mut(slot)?.response = Some(outcome);
        match checkpoint {
            Some(checkpoint) => self.append_turn(slot, checkpoint, Vec::new()),
            None => Ok(()),
        }
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
