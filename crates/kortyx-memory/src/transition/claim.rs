//! Runs whose driver is gone, handed to another.

use std::collections::BTreeSet;

use kortyx_protocol::Timestamp;
use kortyx_store::{ClaimRequest, Claimed, StoreError, WorkflowPin};

use super::runs::End;
use crate::{index::members, slab::Slot, state::Transition};

impl Transition<'_> {
    pub(crate) fn claim_orphans(&mut self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let (pins, limit) = (self.known(&request.workflows), request.limit as usize);
        self.note_orphans()?;
        let mut chosen = Chosen::default();
        for pin in &pins {
            let orphans = self.state.index.orphans.range(members(*pin, None));
            self.choose(&mut chosen, orphans.map(|(_, ord, slot)| (Timestamp::MIN, *ord, *slot)), limit)?;
        }
        let mut slots = chosen.close(self, limit)?;
        if let Some(before) = request.parked_before {
            let (mut chosen, room) = (Chosen::default(), limit - slots.len());
            for pin in &pins {
                let parked = self.state.index.parked.range((*pin, Timestamp::MIN, 0, 0)..(*pin, before, 0, 0));
                self.choose(&mut chosen, parked.map(|(_, at, ord, slot)| (*at, *ord, *slot)), room)?;
            }
            slots.extend(chosen.close(self, room)?);
        }
        slots.into_iter().map(|slot| self.claim(slot, &request.driver)).collect()
    }

    /// The numbers of those definitions that some run is bound to.
    pub(super) fn known(&self, workflows: &[WorkflowPin]) -> BTreeSet<Slot> {
        workflows.iter().filter_map(|workflow| self.state.pins.find(workflow)).collect()
    }

    /// Moves runs whose lease ran out among the orphans: each lease once.
    fn note_orphans(&mut self) -> Result<(), StoreError> {
        while let Some((until, _, slot)) = self.state.index.leases.first().copied()
            && until <= self.now
        {
            self.change(slot, |run| run.is_orphan = true)?;
        }
        Ok(())
    }

    /// Takes the first runs up to the limit, and those on the way that were asked to stop.
    fn choose(
        &self,
        chosen: &mut Chosen,
        candidates: impl Iterator<Item = (Timestamp, u64, Slot)>,
        limit: usize,
    ) -> Result<(), StoreError> {
        let mut room = limit;
        for candidate in candidates {
            if room == 0 {
                break;
            }
            let run = self.run_at(candidate.2)?;
            // A clock that went back may have brought a lease to life again.
            if run.is_driven(self.now) {
                continue;
            }
            if run.cancel_requested {
                chosen.stopped.push(candidate.2);
            } else {
                chosen.runs.push(candidate);
                room -= 1;
            }
        }
        Ok(())
    }
}

/// Runs to hand out, and runs to close because somebody asked them to stop.
#[derive(Default)]
struct Chosen {
    runs: Vec<(Timestamp, u64, Slot)>,
    stopped: Vec<Slot>,
}

impl Chosen {
    /// Closes what was asked to stop and gives the first of the rest.
    fn close(mut self, transition: &mut Transition<'_>, limit: usize) -> Result<Vec<Slot>, StoreError> {
        for slot in self.stopped {
            transition.end(slot, End::cancelled(None))?;
        }
        self.runs.sort_unstable();
        self.runs.truncate(limit);
        Ok(self.runs.into_iter().map(|(_, _, slot)| slot).collect())
    }
}
