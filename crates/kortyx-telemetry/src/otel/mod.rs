//! The spans of runs as OpenTelemetry traces.

mod builder;
mod client;
mod error;
mod sink;

use std::{fmt, time::Duration};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::task::spawn_blocking;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

pub use self::{builder::OtelBuilder, error::OtelError, sink::OtelSink};

/// Exports the spans of runs, and the application's own around and in them, as OpenTelemetry traces.
///
/// Ended spans wait in a bounded queue for a thread that sends them in batches, by OTLP over HTTP. Runs never wait for it: a collector that
/// is slow or gone costs spans, and nothing else.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use kortyx_telemetry::Otel;
/// use tracing_subscriber::prelude::*;
///
/// let otel = Otel::builder().endpoint("https://collector.example.com/v1/traces").service_name("desk").start()?;
/// let subscriber = tracing_subscriber::registry().with(otel.layer());
/// tracing::subscriber::set_global_default(subscriber)?;
/// // …
/// assert!(otel.shutdown(Duration::from_secs(5)).await, "what was left is sent");
/// # Ok(())
/// # }
/// ```
#[must_use = "spans that wait are sent by `shutdown`"]
pub struct Otel {
    provider: SdkTracerProvider,
}

impl Otel {
    /// Export by OTLP over HTTP, as the variables of the OpenTelemetry specification say.
    pub fn builder() -> OtelBuilder {
        OtelBuilder::default()
    }

    /// Export by a provider of the OpenTelemetry SDK 0.33, with what exporter and sampler it has.
    pub fn from_provider(provider: SdkTracerProvider) -> Self {
        Self { provider }
    }

    /// The layer that makes OpenTelemetry spans of spans of level `INFO` and above.
    ///
    /// Of events, only what the engine says of a pause is in them: log lines, which may hold anything, are not exported. A failure is a
    /// status and a code, never an exception event.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("kortyx"))
            .with_error_fields_to_exceptions(false)
            .with_error_records_to_exceptions(false)
            .with_error_events_to_exceptions(false)
            .with_error_events_to_status(false)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_filter(filter_fn(is_exported))
    }

    /// Sends what waits, and says whether all of it was sent in time.
    pub async fn flush(&self, deadline: Duration) -> bool {
        let provider = self.provider.clone();
        let flushed = spawn_blocking(move || provider.force_flush().is_ok());
        tokio::time::timeout(deadline, flushed).await.is_ok_and(|flushed| flushed.unwrap_or(false))
    }

    /// Sends what waits and ends the export, and says whether all was done in time. Spans that end later are dropped.
    pub async fn shutdown(self, deadline: Duration) -> bool {
        let closed = spawn_blocking(move || self.provider.shutdown_with_timeout(deadline).is_ok());
        tokio::time::timeout(deadline, closed).await.is_ok_and(|closed| closed.unwrap_or(false))
    }
}

impl fmt::Debug for Otel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otel").finish_non_exhaustive()
    }
}

fn is_exported(of: &Metadata<'_>) -> bool {
    if of.is_span() {
        return *of.level() <= Level::INFO;
    }
    *of.level() == Level::INFO && of.fields().iter().count() == 1 && of.target().starts_with("kortyx_")
}
