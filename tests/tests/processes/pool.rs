//! Processes that share fifty runs and are killed at random.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    time::{Duration, Instant},
};

use kortyx::{Agent, store::RunStatus};
use libtest_mimic::Trial;
use tokio::time::sleep;

use crate::{
    trial,
    verdict::{Evidence, stored_runs},
    world::{Ended, Process, Start, World},
};

const PROCESSES: u64 = 4;
const RUNS: i64 = 50;
const KILLING: Duration = Duration::from_secs(10);
/// Short, so that runs of dead processes are soon taken over.
const LEASE: Duration = Duration::from_millis(400);

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("fifty_runs_of_four_processes_that_are_killed_at_random_all_end_well", killed_at_random)]
}

async fn killed_at_random() {
    let world = World::new();
    let start = |own: u64| world.start(member(&world, own));
    let mut members: Vec<Process> = (0..PROCESSES).map(start).collect();
    let killing = Instant::now();
    let mut kills = 0;
    while killing.elapsed() < KILLING {
        sleep(Duration::from_millis(40 + random() % 200)).await;
        let victim = random() % PROCESSES;
        let member = &mut members[usize::try_from(victim).unwrap()];
        member.kill().await;
        *member = start(victim);
        kills += 1;
    }
    assert!(kills > 20, "only {kills} processes were killed");

    let agent = world.clerk().await;
    all_ended(&world, &agent).await;
    for mut member in members {
        assert_eq!(member.end().await, Ended::Well);
    }
    let evidence = Evidence::of(&world).await;
    let runs = evidence.runs().await;
    assert_eq!(i64::try_from(runs.len()).unwrap(), RUNS, "a run began twice");
    for run_id in &runs {
        evidence.verify_rich(run_id).await;
    }
    evidence.verify_announced();
}

fn member(world: &World, own: u64) -> Start {
    let (own, of, runs) = (own.to_string(), PROCESSES.to_string(), RUNS.to_string());
    world.driver(0).lease(LEASE).args(&["pool", "--own", &own, "--of", &of, "--runs", &runs])
}

/// Waits until every run is there and has ended.
async fn all_ended(world: &World, agent: &Agent) {
    let mut ended = BTreeSet::new();
    while ended.len() < usize::try_from(RUNS).unwrap() {
        sleep(Duration::from_millis(100)).await;
        for (number, run_id) in stored_runs(agent, &world.lines()).await {
            let run = agent.store().run(&run_id).await.unwrap().unwrap();
            assert_ne!(run.status, RunStatus::Parked, "a run was set aside: {run:?}");
            if run.status.is_terminal() {
                ended.insert(number);
            }
        }
    }
}

/// A different number every time.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
