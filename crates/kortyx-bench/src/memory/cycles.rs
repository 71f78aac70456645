//! Cycles a second on one core, and what their parts cost.

use std::{sync::Arc, time::Instant};

use kortyx_memory::MemoryStore;

use super::{
    micros_each,
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

/// Microseconds for each cycle, sample by sample.
#[derive(Default)]
struct Samples {
    whole: Vec<f64>,
    engine: Vec<f64>,
    store: Vec<f64>,
    allocations: Vec<f64>,
}

pub(crate) async fn cycles(options: &Options) -> Result<Vec<Row>, Error> {
    let (samples, count) = options.size((9, 20_000), (3, 2_000));
    let watched = Watched::new(Arc::new(MemoryStore::new()));
    Workload::over(watched.clone()).await?.cycle().await?;
    let engine = EngineAlone::new()?;
    let store = StoreAlone::new(watched.template()?);
    let mut taken = Samples::default();
    // The first one only warms up.
    for _ in 0..=samples {
        taken.whole.push(whole(count, &mut taken.allocations).await?);
        taken.engine.push(engine.micros(count).await?);
        taken.store.push(store.micros(count).await?);
    }
    Ok(rows(&taken))
}

/// Microseconds for each whole cycle, with a store that starts empty and keeps everything.
async fn whole(count: u64, allocations: &mut Vec<f64>) -> Result<f64, Error> {
    let workload = Workload::over(Arc::new(MemoryStore::new())).await?;
    let (allocated, since) = (allocation::count(), Instant::now());
    for _ in 0..count {
        workload.cycle().await?;
    }
    let micros = micros_each(since, count);
    allocations.push(float_of(allocation::count() - allocated) / float(count));
    Ok(micros)
}

fn rows(taken: &Samples) -> Vec<Row> {
    let middle = |samples: &[f64]| median(samples.get(1..).unwrap_or_default());
    let (whole, engine, store) = (middle(&taken.whole), middle(&taken.engine), middle(&taken.store));
    vec![
        Row::new("memory: cycles on one core (stretch 80,000/s)", 1e6 / whole, Unit::PerSecond)
            .target(Target::AtLeast(TARGET)),
        Row::new("memory: a cycle", whole, Unit::Micros),
        Row::new("memory:   of it the engine alone", engine, Unit::Micros),
        Row::new("memory:   of it the store alone", store, Unit::Micros),
        Row::new("memory:   the rest: the agent and its tasks", whole - engine - store, Unit::Micros),
        Row::new("memory: allocations of a cycle", middle(&taken.allocations), Unit::None),
    ]
}
