//! Round trips, as a relay counts them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kortyx_store::Store;
use tokio::time::sleep;

use crate::{
    error::Error,
    number::{Unit, float},
    options::Options,
    row::{Row, Target},
    statistics::median,
    wire::Wire,
    workload::{Size, Workload},
};

/// From the issue: "at most 1 to pause and 3 to resume and finish".
const TO_PAUSE: f64 = 1.0;
const TO_RESUME: f64 = 3.0;

/// Longer than what a store sends after it has told its caller.
const SETTLED: Duration = Duration::from_millis(5);

/// How often a run waits for the server.
pub(super) struct Trips {
    pub(super) to_pause: f64,
    pub(super) to_resume: f64,
}

/// Rows for all sizes, of a store behind the relay.
pub(super) async fn rows(
    name: &str,
    store: &Arc<dyn Store>,
    wire: &Wire,
    options: &Options,
) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for size in Size::ALL {
        let Trips { to_pause, to_resume } = count(store, wire, size, options).await?;
        let row = |what: &str, trips, bound| {
            let measure = format!("{name}: round trips to {what}, {}", size.name());
            Row::new(measure, trips, Unit::None).target(Target::AtMost(bound))
        };
        rows.push(row("pause", to_pause, TO_PAUSE));
        rows.push(row("resume and finish", to_resume, TO_RESUME));
    }
    Ok(rows)
}

/// Counts one run after another. The middle of all counts: a driver may ask for a sign of life at any time.
pub(super) async fn count(store: &Arc<dyn Store>, wire: &Wire, size: Size, options: &Options) -> Result<Trips, Error> {
    let workload = Workload::sized(size, store.clone()).await?;
    // The first ones make connections, load scripts and prepare statements.
    for _ in 0..3 {
        workload.cycle().await?;
    }
    let (mut pauses, mut resumes) = (Vec::new(), Vec::new());
    for _ in 0..options.size(25, 9) {
        settle(wire).await;
        let began = Instant::now();
        let handle = workload.pause().await?;
        pauses.push(float(wire.trips_since(began)));
        settle(wire).await;
        let began = Instant::now();
        workload.answer(&handle).await?;
        resumes.push(float(wire.trips_since(began)));
    }
    Ok(Trips { to_pause: median(&pauses), to_resume: median(&resumes) })
}

/// Lets pass what nobody waits for.
async fn settle(wire: &Wire) {
    sleep(SETTLED).await;
    wire.take();
}
