//! Telling the observer, and what nodes tell it.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tracing::Span;

use super::{Captures, Moment, ParentCall, Visit, Work};
use crate::{
    NodeContext,
    pass::PassState,
    shared::{Core, Shared},
    state::{Activation, Frame},
};

/// What is to be told as soon as the lock is free.
pub(crate) enum News {
    Transitioned { to: Option<Arc<str>>, condition: Option<Arc<str>> },
    HandedOff { workflow: Arc<str>, version: Arc<str> },
}

impl News {
    /// As a moment of a visit.
    pub(crate) fn at<'a>(&'a self, visit: &'a Arc<Visit>) -> Moment<'a> {
        match self {
            Self::Transitioned { to, condition } => {
                Moment::Transitioned { visit, to: to.as_ref(), condition: condition.as_deref() }
            }
            Self::HandedOff { workflow, version } => Moment::HandedOff { visit, workflow, version },
        }
    }
}

impl Shared {
    /// Tells the observer. The lock is free: it may look at the run.
    pub(crate) fn tell(&self, moment: &Moment<'_>) {
        let Some(observer) = &self.io.observer else { return };
        if catch_unwind(AssertUnwindSafe(|| observer.observe(moment))).is_err() {
            tracing::error!("the observer of a run panicked; what it was told is lost");
        }
    }
}

impl Core {
    /// Notes what is to be told when the lock is free.
    pub(crate) fn note_news(&mut self, news: impl FnOnce() -> News) {
        if let Some(noted) = &mut self.news {
            noted.push(news());
        }
    }

    /// What was noted since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<News> {
        self.news.as_mut().map(mem::take).unwrap_or_default()
    }

    /// Whether somebody observes the run.
    pub(crate) fn is_observed(&self) -> bool {
        self.news.is_some()
    }
}

impl Visit {
    /// The visit that an activation is.
    pub(crate) fn of(id: u32, activation: &Activation, frame: &Frame) -> Self {
        let parent = frame.parent.as_ref();
        Self {
            workflow: frame.workflow.id.clone(),
            version: frame.workflow.version.clone(),
            node: activation.node.clone(),
            activation: id,
            visit: activation.visit,
            attempt: activation.failures.saturating_add(1),
            again: !activation.journal.is_empty(),
            parent: parent.map(|parent| ParentCall { activation: parent.activation, call: (&parent.key).into() }),
        }
    }
}

impl NodeContext {
    /// Tells the observer of the run what a step of the node does, for libraries that work inside steps. Nothing happens, and nothing is
    /// made, when nobody observes the run. The result of a step that is told like this is left out of its
    /// [`StepEnded`](Moment::StepEnded): it would say again what its parts said, and what they hide. See [`captures`](Self::captures) before content is made.
    ///
    /// ```
    /// use kortyx_runtime::{ModelName, NodeContext, Work};
    ///
    /// fn asks(ctx: &NodeContext, step: &str, model: &ModelName) {
    ///     ctx.tell(|| Work::ModelStarted { step, model, input: None });
    /// }
    /// ```
    pub fn tell<'a>(&'a self, work: impl FnOnce() -> Work<'a>) {
        if let Some(visit) = &self.0.visit {
            let _ = self.0.with_pass(PassState::tell_in_parts);
            self.0.shared.tell(&Moment::Work { visit, work: work() });
        }
    }

    /// Whether somebody observes the run, and hears what [`tell`](Self::tell) is given.
    pub fn is_observed(&self) -> bool {
        self.0.visit.is_some()
    }

    /// What content the observer of the run asks for. Nothing when nobody observes it.
    pub fn captures(&self) -> Captures {
        self.0.shared.captures
    }
}

/// Says on a span that what it stands for pauses: an event, not an error.
pub(crate) fn paused(span: &Span) {
    tracing::info!(parent: span, "paused");
}
