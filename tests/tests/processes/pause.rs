//! What a paused run costs.

use std::time::Duration;

use kortyx::Agent;
use kortyx_tests::driven::Flows;
use libtest_mimic::Trial;
use tokio::{runtime::Handle, time::sleep};

use crate::{
    trial,
    world::{begun, flows, world},
};

const RUNS: usize = 100;
/// How long the number of tasks must stay the same.
const REST: Duration = Duration::from_millis(50);

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a_hundred_paused_runs_hold_no_task", paused_runs)]
}

async fn paused_runs() {
    let world = world();
    let (agent, flows) = (world.starter().await.unwrap(), flows(&world));
    // What the store opens when it is first used stays open.
    pause(&agent, &flows).await;
    let before = idle_tasks(&agent).await;
    for _ in 0..RUNS {
        pause(&agent, &flows).await;
    }
    assert_eq!(idle_tasks(&agent).await, before);
}

async fn pause(agent: &Agent, flows: &Flows) {
    begun(agent, &flows.asking, 1).await;
}

/// How many tasks there are once no run is under way and their number has come to rest.
async fn idle_tasks(agent: &Agent) -> usize {
    let mut tasks = usize::MAX;
    loop {
        let now = Handle::current().metrics().num_alive_tasks();
        if agent.driven_runs() == 0 && now == tasks {
            return tasks;
        }
        tasks = now;
        sleep(REST).await;
    }
}
