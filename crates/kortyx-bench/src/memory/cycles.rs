//! Cycles a second on one core, and what their parts cost.

use std::sync::Arc;

use kortyx_memory::MemoryStore;
use kortyx_store::Store;

use super::{
    Stopwatch,
    parts::{EngineAlone, StoreAlone},
};
use crate::{
    allocation,
    error::Error,
    number::{Unit, float, float_of},
    options::Options,
    row::{Row, Target},
    statistics::median,
    watched::Watched,
    workload::Workload,
};

/// From the issue: the fastest comparable library does about 80,000, without durability, validation or expiry.
const TARGET: f64 = 50_000.0;

/// What was measured of each cycle, sample by sample; times in microseconds.
#[derive(Default)]
struct Samples {
    whole: Times,
    returning: Times,
    engine: Vec<f64>,
    store: Vec<f64>,
}

/// Microseconds of a cycle.
#[derive(Default)]
struct Times {
    clock: Vec<f64>,
    processor: Vec<f64>,
}

pub(crate) async fn cycles(options: &Options) -> Result<Vec<Row>, Error> {
    let (samples, count) = options.size((9, 20_000), (3, 2_000));
    let watched = Watched::new(Arc::new(MemoryStore::new()));
    Workload::over(watched.clone()).await?.cycle().await?;
    let (engine, store) = (EngineAlone::new()?, StoreAlone::new(watched.template()?));
    let mut taken = Samples::default();
    // The first one only warms up.
    for _ in 0..=samples {
        taken.whole.take(Workload::over(empty()).await?, count).await?;
        taken.engine.push(engine.micros(count).await?);
        taken.store.push(store.micros(count).await?);
        taken.returning.take(Workload::returning_over(empty()).await?, count).await?;
    }
    Ok(rows(&taken))
}

/// How often a cycle asks for memory.
pub(crate) async fn allocations(options: &Options) -> Result<Vec<Row>, Error> {
    let count: u64 = options.size(20_000, 2_000);
    let workload = Workload::over(empty()).await?;
    workload.cycle().await?;
    let before = allocation::count()?;
    for _ in 0..count {
        workload.cycle().await?;
    }
    let each = float_of(allocation::count()? - before) / float(count);
    Ok(vec![Row::new("memory: allocations of a cycle", each, Unit::None)])
}

/// A store that keeps everything.
fn empty() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

impl Times {
    /// Measures so many cycles.
    async fn take(&mut self, workload: Workload, count: u64) -> Result<(), Error> {
        let watch = Stopwatch::start();
        for _ in 0..count {
            workload.cycle().await?;
        }
        self.clock.push(watch.clock(count));
        self.processor.push(watch.processor(count));
        Ok(())
    }
}

/// The middle of the samples after the first.
fn middle(samples: &[f64]) -> f64 {
    median(samples.get(1..).unwrap_or_default())
}

fn rows(taken: &Samples) -> Vec<Row> {
    let rate = |measure, micros: &[f64]| Row::new(measure, 1e6 / middle(micros), Unit::PerSecond);
    let (whole, engine, store) = (middle(&taken.whole.processor), middle(&taken.engine), middle(&taken.store));
    let target = Target::AtLeast(TARGET);
    vec![
        rate("memory: cycles on one core (stretch 80,000/s)", &taken.whole.clock).target(target),
        rate("memory:   by processor time, as if nothing else ran", &taken.whole.processor).target(target),
        rate("memory:   with the state in the run's data too, by processor time", &taken.returning.processor),
        Row::new("memory: processor time of a cycle", whole, Unit::Micros),
        Row::new("memory:   of it the engine alone", engine, Unit::Micros),
        Row::new("memory:   of it the store alone", store, Unit::Micros),
        Row::new("memory:   the rest: the agent and its tasks", whole - engine - store, Unit::Micros),
    ]
}
