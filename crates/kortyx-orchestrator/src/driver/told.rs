//! What a driver tells of its run.

use std::sync::PoisonError;

use kortyx_contracts::Question;
use kortyx_runtime::{Captures, Content, Moment, Observer};
use kortyx_store::{InterruptRecord, WorkflowPin};

use super::Live;
use crate::telemetry::{Correlation, Fact, ResumeReason, TraceIds};

/// How a drive begins, as it is told.
pub(super) enum Beginning {
    /// A new run, with this input where it is told.
    Started(Option<Content>),
    /// A stored one.
    Resumed { reason: ResumeReason, answers: usize },
}

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

    /// Tells that the drive begins, after this one.
    pub(super) fn tell_beginning(&self, beginning: Beginning, earlier: Option<TraceIds>) {
        let fence = self.fence();
        self.tell_fact(|about| match beginning {
            Beginning::Started(input) => Fact::RunStarted { about, input },
            Beginning::Resumed { reason, answers } => Fact::RunResumed { about, fence, reason, answers, earlier },
        });
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

impl Observer for Live {
    fn observe(&self, moment: &Moment<'_>) {
        if let Some(about) = self.about() {
            self.agent.telemetry.moment(about, moment);
        }
    }

    fn captures(&self) -> Captures {
        self.agent.telemetry.captures()
    }
}
