//! The ways to find runs, questions and checkpoints without looking at all of them.

use std::{collections::BTreeSet, ops::RangeInclusive};

use kortyx_protocol::Timestamp;

use crate::slab::Slot;

/// Members of a group (a session, a context pair, a definition), oldest first: group, order, slot.
pub(crate) type Grouped = BTreeSet<(Slot, u64, Slot)>;
/// Things in order of time: when, order, slot.
pub(crate) type Timed = BTreeSet<(Timestamp, u64, Slot)>;

/// Every index. An entry exists exactly while what it names belongs in it.
#[derive(Default)]
pub(crate) struct Index {
    /// Pending questions by session.
    pub(crate) open_by_session: Grouped,
    /// Pending questions by each context pair of their run.
    pub(crate) open_by_pair: Grouped,
    /// Pending questions by deadline.
    pub(crate) deadlines: Timed,
    /// Runs that are not terminal, by session.
    pub(crate) active_by_session: Grouped,
    /// Running runs under a lease, by its end.
    pub(crate) leases: Timed,
    /// Running runs that nobody drives, by definition.
    pub(crate) orphans: Grouped,
    /// Parked runs, by definition and the time they were.
    pub(crate) parked: BTreeSet<(Slot, Timestamp, u64, Slot)>,
    /// Terminal runs, by their end.
    pub(crate) ended: Timed,
    /// Checkpoints that are not their session's head: when, session, turn.
    pub(crate) passed: BTreeSet<(Timestamp, Slot, u64)>,
    /// Sessions with more than one checkpoint, by how many.
    pub(crate) crowded: BTreeSet<(usize, Slot)>,
    /// Sessions with checkpoints and without a run that is not terminal, by their last change.
    pub(crate) idle: BTreeSet<(Timestamp, Slot)>,
}

/// Where a run stands among those that workers look for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Suspended: nobody looks for it.
    Nowhere,
    /// Running under a lease that ends then.
    Leased { until: Timestamp },
    /// Running without a driver.
    Orphaned { pin: Slot },
    /// Parked at this time.
    Parked { pin: Slot, at: Timestamp },
    /// Terminal since this time.
    Ended { at: Timestamp },
}

impl Index {
    pub(crate) fn put(&mut self, place: Place, ord: u64, slot: Slot) {
        match place {
            Place::Nowhere => true,
            Place::Leased { until } => self.leases.insert((until, ord, slot)),
            Place::Orphaned { pin } => self.orphans.insert((pin, ord, slot)),
            Place::Parked { pin, at } => self.parked.insert((pin, at, ord, slot)),
            Place::Ended { at } => self.ended.insert((at, ord, slot)),
        };
    }

    pub(crate) fn take(&mut self, place: Place, ord: u64, slot: Slot) {
        match place {
            Place::Nowhere => true,
            Place::Leased { until } => self.leases.remove(&(until, ord, slot)),
            Place::Orphaned { pin } => self.orphans.remove(&(pin, ord, slot)),
            Place::Parked { pin, at } => self.parked.remove(&(pin, at, ord, slot)),
            Place::Ended { at } => self.ended.remove(&(at, ord, slot)),
        };
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.open_by_session.len()
            + self.open_by_pair.len()
            + self.deadlines.len()
            + self.active_by_session.len()
            + self.leases.len()
            + self.orphans.len()
            + self.parked.len()
            + self.ended.len()
            + self.passed.len()
            + self.crowded.len()
            + self.idle.len()
    }
}

/// The members of a group whose order is above `after`.
pub(crate) fn members(group: Slot, after: Option<u64>) -> RangeInclusive<(Slot, u64, Slot)> {
    // No order is u64::MAX, so nothing is above it and the saturation hides nothing.
    let from = after.map_or(0, |after| after.saturating_add(1));
    (group, from, 0)..=(group, u64::MAX, Slot::MAX)
}
