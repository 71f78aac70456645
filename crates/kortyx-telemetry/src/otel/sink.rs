//! The sink that tells the agent where spans are found.

use kortyx_orchestrator::{Correlation, Fact, TelemetrySink, TraceIds};
use kortyx_store::Scalar;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Tells the agent the OpenTelemetry ids of its spans: clients get them in the `trace` chunk, runs remember them, and a run that goes on,
/// in this process or another, is linked to the trace that it comes from.
///
/// The spans are exported by [`Otel`](crate::Otel), or by any layer of `tracing-opentelemetry` 0.34.
///
/// ```
/// use kortyx_telemetry::{OtelSink, Telemetry};
///
/// let telemetry = Telemetry::new().to(OtelSink::new().user("user"));
/// # drop(telemetry);
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct OtelSink {
    user: Option<String>,
}

impl OtelSink {
    /// A sink that names no user.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the text at this key of a run's context as `user.id` of its spans. No context value is exported by default.
    pub fn user(mut self, key: impl Into<String>) -> Self {
        self.user = Some(key.into());
        self
    }
}

impl TelemetrySink for OtelSink {
    fn record(&self, _: &Fact) {}

    fn trace(&self, span: &Span) -> Option<TraceIds> {
        let context = span.context();
        let of_span = context.span();
        let ids = of_span.span_context();
        TraceIds::new(ids.trace_id().to_bytes(), ids.span_id().to_bytes(), ids.is_sampled())
    }

    fn link(&self, span: &Span, earlier: &TraceIds) {
        let flags = if earlier.is_sampled() { TraceFlags::SAMPLED } else { TraceFlags::default() };
        let (trace, of_span) = (TraceId::from_bytes(earlier.trace()), SpanId::from_bytes(earlier.span()));
        span.add_link(SpanContext::new(trace, of_span, flags, true, TraceState::default()));
    }

    fn user<'a>(&self, about: &'a Correlation) -> Option<&'a str> {
        match about.context().get(self.user.as_ref()?)? {
            Scalar::Text(user) => Some(user),
            _ => None,
        }
    }
}
