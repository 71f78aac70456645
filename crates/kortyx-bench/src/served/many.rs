//! Many runs at once, against a raw loop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use kortyx_store::Store;

use super::Raw;
use crate::{
    crowd::{RUNS, at_once},
    error::Error,
    number::Unit,
    pace::{Pace, Race, Watch},
    row::{Row, Target},
    statistics::{Pairs, percentile},
    workload::{Size, Workload},
};

/// From the issue: "p99 at most 3x p50".
const SPREAD: f64 = 3.0;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds {
    pub(super) samples: u32,
    /// Cycles of each run in a sample.
    pub(super) count: u64,
}

/// What a sample shows.
struct Lap {
    pace: Pace,
    /// Microseconds of each pause.
    pauses: Vec<f64>,
    /// Microseconds from each answer to the end of its run.
    resumes: Vec<f64>,
}

/// Our cycles and raw ones, in turn.
pub(super) async fn rows<R: Raw>(
    name: &str,
    size: Size,
    ratio: f64,
    store: &Arc<dyn Store>,
    raw: &R,
    Rounds { samples, count }: Rounds,
) -> Result<Vec<Row>, Error> {
    let workload = Workload::sized(size, store.clone()).await?;
    let numbers = Arc::new(AtomicU64::new(0));
    // The first ones make connections, load scripts and prepare statements.
    measured(&workload, 2).await?;
    raw_pace(raw, &numbers, 2).await?;
    let (mut race, mut pauses, mut resumes) = (Race::default(), Pairs::default(), Pairs::default());
    for _ in 0..samples {
        let lap = measured(&workload, count).await?;
        race.push(lap.pace, raw_pace(raw, &numbers, count).await?);
        pauses.push(percentile(&lap.pauses, 99), percentile(&lap.pauses, 50));
        resumes.push(percentile(&lap.resumes, 99), percentile(&lap.resumes, 50));
    }
    let size = size.name();
    let spread = |what: &str, pairs: &Pairs| {
        Row::new(format!("{name}:   p99 of {what}, against p50"), pairs.measured(), Unit::Micros)
            .against(pairs.reference(), pairs.ratio())
            .target(Target::AtMost(SPREAD))
    };
    Ok(vec![
        race.rates(&format!("{name}: {RUNS} runs at once, {size}, cycles, against a raw loop"))
            .target(Target::AtLeast(ratio)),
        race.processor(&format!("{name}:   processor time of a cycle, without the server's")),
        spread("a pause", &pauses),
        spread("an answer until its run has ended", &resumes),
    ])
}

async fn measured(workload: &Workload, count: u64) -> Result<Lap, Error> {
    let watch = Watch::start();
    let all = at_once(|_| {
        let workload = workload.clone();
        async move {
            let mut times = Vec::new();
            for _ in 0..count {
                let start = Instant::now();
                let handle = workload.pause().await?;
                let paused = Instant::now();
                workload.answer(&handle).await?;
                times.push((paused - start, paused.elapsed()));
            }
            Ok(times)
        }
    })
    .await?;
    let pace = watch.pace(RUNS * count);
    let (pauses, resumes) = all.iter().flatten().map(|(pause, resume)| (micros(*pause), micros(*resume))).unzip();
    Ok(Lap { pace, pauses, resumes })
}

fn micros(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

async fn raw_pace<R: Raw>(raw: &R, numbers: &Arc<AtomicU64>, count: u64) -> Result<Pace, Error> {
    let watch = Watch::start();
    at_once(|_| {
        let (raw, numbers) = (raw.clone(), numbers.clone());
        async move {
            for _ in 0..count {
                raw.cycle(numbers.fetch_add(1, Ordering::Relaxed)).await?;
            }
            Ok(())
        }
    })
    .await?;
    Ok(watch.pace(RUNS * count))
}
