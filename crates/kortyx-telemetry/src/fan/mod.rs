//! Several sinks behind one: each hears what it asks for, and none takes the others down.

pub(crate) mod within;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
};

use kortyx_orchestrator::{Captures, Correlation, Fact, TelemetrySink, TraceIds};
use tracing::Span;

use self::within::{is_watched, within};

/// Sinks that are told the same facts, in the order in which they were added.
///
/// Each is told only the content that it asks for itself, and of nodes only when it watches them. One that panics is told of the next fact
/// like all others. The first that knows the ids of a span, or the user of a run, decides.
///
/// ```
/// use kortyx_orchestrator::{Captures, Fact, TelemetrySink};
/// use kortyx_telemetry::Telemetry;
///
/// struct Log;
///
/// impl TelemetrySink for Log {
///     fn record(&self, fact: &Fact) {
///         println!("{fact:?}");
///     }
/// }
///
/// struct Answers;
///
/// impl TelemetrySink for Answers {
///     fn record(&self, _: &Fact) {}
///
///     fn captures(&self) -> Captures {
///         Captures::nothing().with_input(true)
///     }
/// }
///
/// let telemetry = Telemetry::new().to(Log).to(Answers); // the log sees no answers
/// assert!(telemetry.captures().input);
/// ```
#[derive(Default)]
pub struct Telemetry {
    sinks: Vec<Told>,
}

/// A sink and what it said of itself.
struct Told {
    sink: Box<dyn TelemetrySink>,
    captures: Captures,
    watches: bool,
    has_panicked: AtomicBool,
}

impl Telemetry {
    /// No sink.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sink.
    #[must_use]
    pub fn to(mut self, sink: impl TelemetrySink) -> Self {
        let (captures, watches) = (sink.captures(), sink.watches_nodes());
        self.sinks.push(Told { sink: Box::new(sink), captures, watches, has_panicked: AtomicBool::new(false) });
        self
    }
}

impl Told {
    /// Calls the sink; a panic ends here, with a line in the log for the first.
    fn quietly<R>(&self, call: impl FnOnce(&dyn TelemetrySink) -> R) -> Option<R> {
        let result = catch_unwind(AssertUnwindSafe(|| call(&*self.sink)));
        if result.is_err() && !self.has_panicked.swap(true, Ordering::Relaxed) {
            tracing::error!("a telemetry sink panicked; what it was told is lost, and this is not logged again");
        }
        result.ok()
    }
}

impl TelemetrySink for Telemetry {
    fn record(&self, fact: &Fact) {
        for told in &self.sinks {
            if told.watches || !is_watched(fact) {
                told.quietly(|sink| sink.record(&within(fact, told.captures)));
            }
        }
    }

    fn watches_nodes(&self) -> bool {
        self.sinks.iter().any(|told| told.watches)
    }

    fn captures(&self) -> Captures {
        self.sinks.iter().fold(Captures::nothing(), |all, told| {
            all.with_input(all.input || told.captures.input)
                .with_output(all.output || told.captures.output)
                .with_actor(all.actor || told.captures.actor)
        })
    }

    fn trace(&self, span: &Span) -> Option<TraceIds> {
        self.sinks.iter().find_map(|told| told.quietly(|sink| sink.trace(span)).flatten())
    }

    fn link(&self, span: &Span, earlier: &TraceIds) {
        for told in &self.sinks {
            told.quietly(|sink| sink.link(span, earlier));
        }
    }

    fn user<'a>(&self, about: &'a Correlation) -> Option<&'a str> {
        self.sinks.iter().find_map(|told| told.quietly(|sink| sink.user(about)).flatten())
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("sinks", &self.sinks.len()).finish()
    }
}
