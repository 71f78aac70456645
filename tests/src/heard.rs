//! What tracing is told.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use tracing::{Event, Level, Metadata, Subscriber, field, span};

/// Keeps what tracing is told by the crates of Kortyx. Clones keep together.
#[derive(Debug, Clone, Default)]
pub struct Heard(Arc<Mutex<Vec<(Level, String)>>>);

impl Heard {
    /// The words of every event at this level.
    pub fn at(&self, level: Level) -> Vec<String> {
        let heard = self.0.lock().unwrap();
        heard.iter().filter(|(heard, _)| *heard == level).map(|(_, text)| text.clone()).collect()
    }
}

struct Words<'a>(&'a mut String);

impl field::Visit for Words<'_> {
    fn record_debug(&mut self, field: &field::Field, value: &dyn fmt::Debug) {
        use fmt::Write as _;
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("kortyx")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(&mut Words(&mut text));
        self.0.lock().unwrap().push((*event.metadata().level(), text));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
