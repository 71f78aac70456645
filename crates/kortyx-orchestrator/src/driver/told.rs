//! What a driver tells of its run.

use std::sync::PoisonError;

use kortyx_contracts::Question;
use kortyx_store::{InterruptRecord, WorkflowPin};

use super::Live;
use crate::telemetry::{Correlation, Fact};

impl Live {
    /// What facts about the run are about; `None` when nobody is told.
    pub(super) fn about(&self) -> Option<Correlation> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells a fact about the run, when somebody is told.
    pub(super) fn tell_fact(&self, fact: impl FnOnce(Correlation) -> Fact) {
        if let Some(about) = self.about() {
            self.agent.telemetry.record(|| fact(about));
        }
    }

    /// Tells of a question that was published.
    pub(super) fn tell_created(&self, record: &InterruptRecord, question: Option<&Question>) {
        if let Some(about) = self.about() {
            self.agent.telemetry.created(record, question, Some(about));
        }
    }

    /// The run is bound to this definition now.
    pub(super) fn note_binding(&self, pin: &WorkflowPin) {
        let mut about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = about.take() {
            *about = Some(known.bound_to(pin.clone()));
        }
    }

    /// The number of the lease that the run is driven under; 0 before it has one.
    pub(super) fn fence(&self) -> u64 {
        self.lease().map_or(0, |lease| lease.fence)
    }
}
