//! What happens to runs and questions, told to whoever wants to know.

mod correlation;
mod ended;
mod fact;
mod moment;
mod overdue;
mod question;
mod trace;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use kortyx_contracts::Question;
use kortyx_protocol::RunId;
use kortyx_runtime::{Captures, Moment};
use kortyx_store::{CheckpointRecord, InterruptRecord, RunRecord};
use tracing::Span;

pub use self::{
    correlation::Correlation,
    fact::{CancelReason, Fact, ResumeOutcome, ResumeReason},
    question::{AskedFacts, InteractionMode, QuestionContent},
    trace::TraceIds,
};
use crate::present;

pub(crate) use self::overdue::Overdue;

/// Receives facts. Called on the task that made them so: hand them on and return.
///
/// [`record`](Self::record) must not block and must not wait: a run stands still until it has returned, and with it the thread of the runtime.
/// What needs the network, a disk or a lock that others hold for long belongs in a task or a thread of the sink's own, behind a bounded queue
/// that drops when it is full.
///
/// A sink cannot change what happens: one that panics is ignored, with a line in the log. What it says of itself is asked once, when the
/// agent is built; only [`trace`](Self::trace), [`link`](Self::link) and [`user`](Self::user) are asked again.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use kortyx_orchestrator::{Fact, TelemetrySink};
///
/// #[derive(Default)]
/// struct Questions(AtomicUsize);
///
/// impl TelemetrySink for Questions {
///     fn record(&self, fact: &Fact) {
///         if matches!(fact, Fact::InterruptCreated { .. }) {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait TelemetrySink: Send + Sync + 'static {
    /// Takes a fact in.
    fn record(&self, fact: &Fact);

    /// Whether it wants to hear of nodes, steps, children, transitions, models and tools too. It does not by default.
    fn watches_nodes(&self) -> bool {
        false
    }

    /// What content the facts hold. None by default.
    fn captures(&self) -> Captures {
        Captures::nothing()
    }

    /// The ids that its tracing layer gives to a span. Without them clients are sent no `trace` chunk and runs remember no trace.
    fn trace(&self, span: &Span) -> Option<TraceIds> {
        let _ = span;
        None
    }

    /// Links a span to that of the drive which stored its run last, perhaps in another process.
    fn link(&self, span: &Span, earlier: &TraceIds) {
        let _ = (span, earlier);
    }

    /// Who the run is for, as `user.id` of its spans. Nobody by default.
    fn user<'a>(&self, about: &'a Correlation) -> Option<&'a str> {
        let _ = about;
        None
    }
}

impl<S: TelemetrySink + ?Sized> TelemetrySink for Arc<S> {
    fn record(&self, fact: &Fact) {
        (**self).record(fact);
    }

    fn watches_nodes(&self) -> bool {
        (**self).watches_nodes()
    }

    fn captures(&self) -> Captures {
        (**self).captures()
    }

    fn trace(&self, span: &Span) -> Option<TraceIds> {
        (**self).trace(span)
    }

    fn link(&self, span: &Span, earlier: &TraceIds) {
        (**self).link(span, earlier);
    }

    fn user<'a>(&self, about: &'a Correlation) -> Option<&'a str> {
        (**self).user(about)
    }
}

/// The sink, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Telemetry(Option<Arc<Told>>);

/// A sink and what it said of itself.
struct Told {
    sink: Box<dyn TelemetrySink>,
    captures: Captures,
    watches_nodes: bool,
}

impl Telemetry {
    pub(crate) fn to(sink: impl TelemetrySink) -> Self {
        let (captures, watches_nodes) = (sink.captures(), sink.watches_nodes());
        Self(Some(Arc::new(Told { sink: Box::new(sink), captures, watches_nodes })))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// What content it is told.
    pub(crate) fn captures(&self) -> Captures {
        self.0.as_ref().map_or(Captures::nothing(), |told| told.captures)
    }

    /// Whether it wants to hear of what runs do, moment by moment.
    pub(crate) fn watches_nodes(&self) -> bool {
        self.0.as_ref().is_some_and(|told| told.watches_nodes)
    }

    /// About a question, in the span that is entered now.
    pub(crate) fn of_question(&self, record: &InterruptRecord) -> Correlation {
        Correlation::of_question(record).traced(self.trace(&Span::current()))
    }

    /// About a run that a checkpoint names, in the span that is entered now.
    pub(crate) fn of_checkpoint(&self, run_id: RunId, record: &CheckpointRecord) -> Correlation {
        Correlation::of_checkpoint(run_id, record).traced(self.trace(&Span::current()))
    }

    /// About a run, in the span that is entered now.
    pub(crate) fn of_run(&self, record: &RunRecord) -> Correlation {
        Correlation::of_run(record).traced(self.trace(&Span::current()))
    }

    /// The ids that the sink's tracing layer gives to a span.
    pub(crate) fn trace(&self, span: &Span) -> Option<TraceIds> {
        let told = self.0.as_ref().filter(|_| !span.is_disabled())?;
        quietly(|| told.sink.trace(span))
    }

    /// Links a span to that of an earlier drive.
    pub(crate) fn link(&self, span: &Span, earlier: &TraceIds) {
        if let Some(told) = &self.0 {
            quietly(|| told.sink.link(span, earlier));
        }
    }

    /// Notes on a span who its run is for.
    pub(crate) fn name_user(&self, span: &Span, about: &Correlation) {
        let Some(told) = &self.0 else { return };
        quietly(|| {
            if let Some(user) = told.sink.user(about) {
                span.record("user.id", user);
            }
        });
    }

    /// Tells the sink of a moment of a run, which belongs to the span that is entered now.
    pub(crate) fn moment(&self, about: Correlation, moment: &Moment<'_>) {
        let Some(told) = &self.0 else { return };
        let trace = self.trace(&Span::current());
        let about = if trace.is_some() { about.traced(trace) } else { about };
        if let Some(fact) = moment::fact(about, moment) {
            quietly(|| told.sink.record(&fact));
        }
    }

    /// Tells the sink. The fact is only made when there is one.
    pub(crate) fn record(&self, fact: impl FnOnce() -> Fact) {
        let Some(told) = &self.0 else { return };
        let fact = fact();
        quietly(|| told.sink.record(&fact));
    }

    /// Tells of a question that was published. It is read again where it is not at hand, and so is what is known of its run.
    pub(crate) fn created(&self, record: &InterruptRecord, question: Option<&Question>, run: Option<Correlation>) {
        let Some(told) = &self.0 else { return };
        let read = if question.is_none() { present::question(record).ok() } else { None };
        let Some(question) = question.or(read.as_ref()) else { return };
        let about = match run {
            Some(run) => run.at(record.workflow.as_str(), record.node.as_str()),
            None => self.of_question(record),
        };
        self.record(|| Fact::InterruptCreated {
            request_id: record.request_id.clone(),
            about,
            asked: Box::new(AskedFacts::of(record, question)),
            content: QuestionContent::of(question, told.captures).map(Box::new),
        });
    }
}

/// Calls the sink; a panic ends there.
fn quietly<R: Default>(call: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        tracing::error!("the telemetry sink panicked; what it was told is lost");
        R::default()
    })
}

#[cfg(test)]
mod tests {
    use kortyx_protocol::RequestId;

    use super::*;

    #[test]
    fn a_sink_that_panics_changes_nothing() {
        struct Broken;
        impl TelemetrySink for Broken {
            fn record(&self, _: &Fact) {
                panic!("broken sink");
            }
        }
        let request_id = RequestId::from_random([1; 16]);
        Telemetry::to(Broken).record(|| Fact::AnswerLate { request_id, about: None });
    }
}
