//! Workers that are killed at random for two minutes under load, and drivers that stand still until their leases have run out.

use std::{env, time::Duration};

use kortyx_testkit::Storm;
use kortyx_tests::driven::Flow;
use libtest_mimic::Trial;

use crate::{STORES, kit_on, trial};

/// How often a process is killed, on average.
const INTERVAL: Duration = Duration::from_millis(1_500);
/// Longer than a lease lasts.
const STANDSTILL: Duration = Duration::from_secs(3);

pub(crate) fn trials() -> Vec<Trial> {
    STORES
        .into_iter()
        .map(|store| trial(format!("workers_killed_at_random_lose_nothing_on_{store}"), move || killed(store)))
        .collect()
}

async fn killed(store: &'static str) {
    let lasts = lasts();
    let kills = Storm::lasting(lasts).kills_every(INTERVAL).settles(Duration::from_mins(2));
    // A process that stands still while it writes a file holds up everybody.
    let faults = if store == "sqlite" { kills } else { kills.stops_for(STANDSTILL).lease(STANDSTILL / 3) };
    let stormed = faults.run(&kit_on(store, Flow::Rich)).await.unwrap();
    println!("faults: {store}, workers killed for {lasts:?}: {stormed:?}");
    let seconds = usize::try_from(lasts.as_secs()).unwrap();
    assert!(stormed.kills + stormed.stops >= seconds / 8 && stormed.runs >= seconds / 15, "{stormed:?}");
}

/// Two minutes, or so many seconds as the environment says.
fn lasts() -> Duration {
    let seconds = env::var("KORTYX_TEST_FAULT_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(120))
}
