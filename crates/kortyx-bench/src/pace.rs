//! How fast cycles go, against the raw ones.

use std::time::{Duration, Instant};

use crate::{
    number::{Unit, float},
    process,
    row::Row,
    statistics::Pairs,
};

/// A beginning.
pub(crate) struct Watch {
    since: Instant,
    processor: Duration,
}

/// How fast cycles went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Cycles a second.
    rate: f64,
    /// Microseconds of all processors for each.
    processor: f64,
}

/// Paces of what is measured and of a raw loop, taken in turn.
#[derive(Default)]
pub(crate) struct Race {
    rates: Pairs,
    processor: Pairs,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self { since: Instant::now(), processor: process::process_time() }
    }

    /// The pace of so many cycles since then.
    pub(crate) fn pace(&self, cycles: u64) -> Pace {
        let processor = process::process_time().saturating_sub(self.processor);
        Pace {
            rate: float(cycles) / self.since.elapsed().as_secs_f64(),
            processor: processor.as_secs_f64() * 1e6 / float(cycles),
        }
    }
}

impl Race {
    pub(crate) fn push(&mut self, measured: Pace, raw: Pace) {
        self.rates.push(measured.rate, raw.rate);
        self.processor.push(measured.processor, raw.processor);
    }

    /// Cycles a second.
    pub(crate) fn rates(&self, measure: &str) -> Row {
        row(measure, &self.rates, Unit::PerSecond)
    }

    /// Processor time of a cycle.
    pub(crate) fn processor(&self, measure: &str) -> Row {
        row(measure, &self.processor, Unit::Micros)
    }
}

fn row(measure: &str, pairs: &Pairs, unit: Unit) -> Row {
    Row::new(measure, pairs.measured(), unit).against(pairs.reference(), pairs.ratio())
}
