//! Questions whose time ran out: closed by a worker, or found to be past their deadline.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, PoisonError},
};

use kortyx_protocol::RequestId;
use kortyx_store::{InterruptRecord, InterruptStatus};

use super::Fact;
use crate::agent::Inner;

/// Of how many questions a process remembers that it told.
const REMEMBERED: usize = 10_000;

/// The questions of which a process told that their time is past, the last of them.
#[derive(Default)]
pub(crate) struct Overdue(Mutex<Known>);

#[derive(Default)]
struct Known {
    ids: HashSet<RequestId>,
    order: VecDeque<RequestId>,
}

impl Overdue {
    /// Whether it is told for the first time.
    fn is_new(&self, id: &RequestId) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.ids.insert(id.clone()) {
            return false;
        }
        known.order.push_back(id.clone());
        if known.order.len() > REMEMBERED
            && let Some(oldest) = known.order.pop_front()
        {
            known.ids.remove(&oldest);
        }
        true
    }
}

impl Inner {
    /// Tells of a question that reads as expired. Where no worker watches, nothing closes it and nobody else tells.
    pub(crate) fn tell_overdue(&self, record: &InterruptRecord) {
        if record.status == InterruptStatus::Expired {
            self.tell_expired(record, true);
        }
    }

    /// Tells that a question's time ran out: of one that was only read, at most once.
    pub(crate) fn tell_expired(&self, record: &InterruptRecord, is_derived: bool) {
        if !self.telemetry.is_on() || (!self.overdue.is_new(&record.request_id) && is_derived) {
            return;
        }
        self.telemetry.record(|| Fact::InterruptExpired {
            request_id: record.request_id.clone(),
            about: self.telemetry.of_question(record),
            by_default: record.default.is_some(),
            expires_at: record.expires_at,
            is_derived,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_remembers_the_last_of_what_it_told() {
        let id = |number: usize| RequestId::new(format!("human-{number}")).unwrap();
        let overdue = Overdue::default();
        assert!(overdue.is_new(&id(0)));
        assert!(!overdue.is_new(&id(0)));
        assert!((1..=REMEMBERED).all(|number| overdue.is_new(&id(number))));
        assert!(overdue.is_new(&id(0)), "what is remembered is bounded");
        assert!(!overdue.is_new(&id(REMEMBERED)));
    }
}
