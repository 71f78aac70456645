//! What a paused run costs.

use std::time::Duration;

use kortyx::{
    Agent, ExecuteOptions,
    protocol::{ExecutionResult, SessionId},
};
use kortyx_tests::driven::{Flows, SESSION};
use libtest_mimic::Trial;
use serde_json::json;
use tokio::{runtime::Handle, time::sleep};

use crate::{trial, world::World};

const RUNS: usize = 100;
/// How long the number of tasks must stay the same.
const REST: Duration = Duration::from_millis(50);

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a_hundred_paused_runs_hold_no_task", paused_runs)]
}

async fn paused_runs() {
    let world = World::new();
    let (agent, flows) = world.starter().await;
    // What the store opens when it is first used stays open.
    pause(&agent, &flows).await;
    let before = idle_tasks(&agent).await;
    for _ in 0..RUNS {
        pause(&agent, &flows).await;
    }
    assert_eq!(idle_tasks(&agent).await, before);
}

async fn pause(agent: &Agent, flows: &Flows) {
    let options = ExecuteOptions::new().session(SessionId::new(SESSION).unwrap());
    let result = agent.execute(&flows.asking, json!(1), options).await.unwrap();
    assert!(matches!(result, ExecutionResult::Suspended { .. }), "{result:?}");
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
