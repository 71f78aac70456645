//! What happens to runs and questions, told to whoever wants to know.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Usage};
use kortyx_store::{InterruptRecord, RunStatus};

/// Receives facts. Called after the fact is durable, on the task that made it so: hand it on and return.
///
/// A sink cannot change what happens: one that panics is ignored, with a line in the log.
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
}

/// Something that happened. Holds ids and names, never tokens, answers, questions or option values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fact {
    /// A question was published.
    InterruptCreated {
        /// The question.
        request_id: RequestId,
        /// Its run.
        run_id: RunId,
        /// The run's session.
        session_id: SessionId,
        /// The workflow where it was asked.
        workflow: String,
        /// The node where it was asked.
        node: String,
    },
    /// An answer was accepted.
    InterruptResolved {
        /// The question.
        request_id: RequestId,
        /// Its run.
        run_id: RunId,
    },
    /// A question was cancelled, alone or with its run.
    InterruptCancelled {
        /// The question.
        request_id: RequestId,
        /// Its run.
        run_id: RunId,
    },
    /// A question was withdrawn, because its session was rolled back.
    InterruptSuperseded {
        /// The question.
        request_id: RequestId,
        /// Its run.
        run_id: RunId,
    },
    /// A question's time ran out.
    InterruptExpired {
        /// The question.
        request_id: RequestId,
        /// Its run.
        run_id: RunId,
        /// Its default counts as the answer.
        by_default: bool,
    },
    /// Somebody answered a question that is not open to them: its time is past, or it is not known.
    AnswerLate {
        /// The question, as the caller named it.
        request_id: RequestId,
    },
    /// Somebody gave an answer that does not fit the question, which stays open.
    AnswerInvalid {
        /// The question.
        request_id: RequestId,
        /// How many things are wrong with the answer.
        issues: usize,
    },
    /// Somebody gave the accepted answer again.
    AnswerRepeated {
        /// The question.
        request_id: RequestId,
    },
    /// Somebody gave another answer than the accepted one.
    AnswerConflicted {
        /// The question.
        request_id: RequestId,
    },
    /// A run whose driver was gone, or that was set aside, is driven again.
    RunRecovered {
        /// The run.
        run_id: RunId,
        /// Its session.
        session_id: SessionId,
    },
    /// A run was set aside until code that fits is deployed.
    RunParked {
        /// The run.
        run_id: RunId,
        /// Its session.
        session_id: SessionId,
        /// The failure's code.
        code: &'static str,
    },
    /// A run ended.
    RunFinished {
        /// The run.
        run_id: RunId,
        /// How.
        status: RunStatus,
        /// The tokens that it used with its children, when known.
        usage: Option<Usage>,
    },
    /// A turn left a checkpoint behind.
    SessionCheckpointed {
        /// The session.
        session_id: SessionId,
        /// The checkpoint.
        checkpoint_id: CheckpointId,
        /// The run whose turn it was.
        run_id: RunId,
    },
    /// A session was taken back to a checkpoint.
    SessionRolledBack {
        /// The session.
        session_id: SessionId,
        /// The checkpoint.
        checkpoint_id: CheckpointId,
    },
    /// A session was started from a checkpoint of another.
    SessionForked {
        /// The new session.
        session_id: SessionId,
        /// The other.
        parent_session_id: SessionId,
        /// The checkpoint.
        checkpoint_id: CheckpointId,
    },
}

impl Fact {
    pub(crate) fn created(record: &InterruptRecord) -> Self {
        Self::InterruptCreated {
            request_id: record.request_id.clone(),
            run_id: record.run_id.clone(),
            session_id: record.session_id.clone(),
            workflow: record.workflow.clone(),
            node: record.node.clone(),
        }
    }
}

/// The sink, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Telemetry(Option<Arc<dyn TelemetrySink>>);

impl Telemetry {
    pub(crate) fn to(sink: Arc<dyn TelemetrySink>) -> Self {
        Self(Some(sink))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Tells the sink. The fact is only made when there is one.
    pub(crate) fn record(&self, fact: impl FnOnce() -> Fact) {
        let Some(sink) = &self.0 else { return };
        let fact = fact();
        if catch_unwind(AssertUnwindSafe(|| sink.record(&fact))).is_err() {
            tracing::error!("the telemetry sink panicked; the fact is lost");
        }
    }
}

#[cfg(test)]
mod tests {
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
        Telemetry::to(Arc::new(Broken)).record(|| Fact::AnswerLate { request_id });
    }
}
