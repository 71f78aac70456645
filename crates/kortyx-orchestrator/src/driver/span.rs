//! The span of one drive of a run, and where it is found in tracing.

use std::sync::PoisonError;

use kortyx_protocol::{FailureCode, StreamChunk};
use kortyx_runtime::ExecutionHandle;
use tracing::{Instrument as _, Span, field, info_span};

use super::{Live, Stand, State};
use crate::telemetry::TraceIds;

/// The name of the span that a drive is.
const NAME: &str = "kortyx.run";

impl Live {
    /// The span of a drive that begins.
    pub(super) fn span(&self, workflow: &str, version: &str) -> Span {
        let span = info_span!(
            "kortyx.run",
            otel.name = %format_args!("run {workflow}"),
            otel.status_code = field::Empty,
            session.id = self.run.session_id.as_str(),
            user.id = field::Empty,
            kortyx.run.id = self.run.run_id.as_str(),
            kortyx.workflow = workflow,
            kortyx.workflow.version = version,
            kortyx.fence = self.fence(),
            kortyx.outcome = field::Empty,
            error.type = field::Empty,
        );
        if !span.is_disabled()
            && let Some(about) = self.about()
        {
            self.agent.telemetry.name_user(&span, &about);
        }
        span
    }

    /// Binds the drive to its span: whatever is told of the run is found there, its stored state remembers it, and it is linked to the
    /// drive that stored the run last. Gives that one.
    pub(super) fn trace(&self, span: &Span, handle: &ExecutionHandle) -> Option<TraceIds> {
        let ids = self.agent.telemetry.trace(span)?;
        let earlier = handle.trace_parent().and_then(|parent| TraceIds::parse(&parent));
        if let Some(earlier) = &earlier {
            self.agent.telemetry.link(span, earlier);
        }
        handle.set_trace_parent(ids.traceparent());
        let mut about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = about.take() {
            *about = Some(known.traced(Some(ids)));
        }
        earlier
    }

    /// Tells the client where its response is found in tracing, if it is.
    pub(super) async fn send_trace(&self) {
        let Some(ids) = self.about().and_then(|about| about.trace().copied()) else { return };
        let Some(output) = self.reader.output() else { return };
        let (trace_id, span_id) = (ids.trace_id().into(), ids.span_id().into());
        let run_id = self.run.run_id.clone();
        output.send(StreamChunk::Trace { trace_id, span_id, run_id, root_span_name: NAME.into() }).await;
    }
}

/// Notes on the span of a drive where its run stands. A pause is no error.
pub(super) fn close(span: &Span, stand: &Stand) {
    if span.is_disabled() {
        return;
    }
    let (outcome, code) = outcome(&stand.state);
    span.record("kortyx.outcome", outcome);
    if let State::Suspended(_) = stand.state {
        tracing::info!(parent: span, "paused");
    }
    if let Some(code) = code {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", code.as_str());
    }
}

fn outcome(state: &State) -> (&'static str, Option<FailureCode>) {
    match state {
        State::Suspended(_) => ("paused", None),
        State::Responded(..) => ("responded", None),
        State::Completed(_) => ("completed", None),
        State::Failed(failure) => ("failed", Some(failure.code)),
        State::Cancelled(_) => ("cancelled", None),
        State::Expired => ("expired", None),
        State::SetAside(failure) => ("parked", Some(failure.code)),
        State::Interrupted(_) => ("interrupted", Some(FailureCode::PersistenceError)),
        State::Elsewhere => ("elsewhere", None),
    }
}

/// Makes a transition of the store in a span of its own.
pub(crate) async fn transition<T>(name: &'static str, work: impl Future<Output = T>) -> T {
    let span = info_span!("kortyx.store", otel.name = %format_args!("store {name}"), kortyx.transition = name);
    work.instrument(span).await
}
