//! A run as it is kept: compact, with what it shares under numbers.

use bytes::Bytes;
use kortyx_protocol::{RunId, Timestamp};
use kortyx_store::RunStatus;

use crate::{index::Place, slab::Slot};

/// A run. Terminal ones keep no state, only their outcome.
pub(crate) struct Run {
    /// Grows with every run and question; younger is greater.
    pub(crate) ord: u64,
    pub(crate) id: RunId,
    pub(crate) session: Slot,
    pub(crate) pin: Slot,
    /// Its context pairs.
    pub(crate) context: Box<[Slot]>,
    pub(crate) status: RunStatus,
    pub(crate) cancel_requested: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) fence: u64,
    pub(crate) lease_until: Option<Timestamp>,
    /// Its lease was found to have run out, and was not renewed since.
    pub(crate) is_orphan: bool,
    pub(crate) answers: u64,
    pub(crate) reason: Option<Box<str>>,
    pub(crate) payload: Payload,
    /// What its response ended with, once that is complete.
    pub(crate) response: Option<Bytes>,
    /// Entries recorded since the snapshot.
    pub(crate) entries: Vec<Bytes>,
    /// What it said.
    pub(crate) chunks: Vec<Bytes>,
    /// Answered questions whose answers no snapshot holds yet, in the order of their answers.
    pub(crate) inbox: Vec<Slot>,
    /// Pending questions, oldest first.
    pub(crate) open: Vec<Slot>,
    /// The question that was closed last; each closed one names the one closed before it.
    pub(crate) closed: Option<Slot>,
}

/// What a run carries.
pub(crate) enum Payload {
    /// Of a run that may go on: its last snapshot.
    Snapshot(Bytes),
    /// Of a terminal run: what its driver left.
    Outcome(Option<Bytes>),
}

impl Run {
    /// Whether somebody holds a live lease on it.
    pub(crate) fn is_driven(&self, now: Timestamp) -> bool {
        self.status == RunStatus::Running && self.lease_until.is_some_and(|until| until > now)
    }

    pub(crate) fn place(&self) -> Place {
        match self.status {
            RunStatus::Suspended => Place::Nowhere,
            RunStatus::Running => match self.lease_until {
                Some(until) if !self.is_orphan => Place::Leased { until },
                _ => Place::Orphaned { pin: self.pin },
            },
            RunStatus::Parked => Place::Parked { pin: self.pin, at: self.updated_at },
            RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled | RunStatus::Expired => {
                Place::Ended { at: self.updated_at }
            }
        }
    }
}
