#![doc = include_str!("../README.md")]

mod capture;
pub mod event;
mod fan;
#[cfg(feature = "studio")]
mod studio;

pub use capture::Redaction;
pub use fan::Telemetry;
#[cfg(feature = "studio")]
pub use studio::{ReporterCounts, StudioConfig, StudioError, StudioReporter};
