//! What telemetry is told.

use std::sync::{Arc, Mutex};

use kortyx::{Fact, TelemetrySink};

/// A sink that keeps every fact. Clones keep together.
#[derive(Debug, Clone, Default)]
pub struct Facts(Arc<Mutex<Vec<Fact>>>);

impl Facts {
    /// A sink that was told nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every fact so far, in order.
    pub fn all(&self) -> Vec<Fact> {
        self.0.lock().unwrap().clone()
    }

    /// How many facts are like this.
    pub fn count(&self, is_like: impl Fn(&Fact) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|fact| is_like(fact)).count()
    }
}

impl TelemetrySink for Facts {
    fn record(&self, fact: &Fact) {
        self.0.lock().unwrap().push(fact.clone());
    }
}
