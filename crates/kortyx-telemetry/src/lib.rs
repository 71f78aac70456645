#![doc = include_str!("../README.md")]

mod capture;
pub mod event;
mod fan;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "otel")]
mod otel;
#[cfg(feature = "studio")]
mod studio;
#[cfg(any(feature = "otel", feature = "studio"))]
mod tls;

pub use capture::Redaction;
pub use fan::Telemetry;
#[cfg(feature = "otel")]
pub use otel::{Otel, OtelBuilder, OtelError, OtelSink};
#[cfg(feature = "studio")]
pub use studio::{ReporterCounts, StudioConfig, StudioError, StudioReporter};
