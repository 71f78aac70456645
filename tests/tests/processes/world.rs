//! A place that processes share, the log of what they did, and the processes.

use std::{sync::Arc, time::Duration};

use kortyx::{
    Agent, Workflow,
    protocol::{ExecutionResult, ResumeHandle, RunId},
    store::{InterruptQuery, RunRecord, RunStatus},
};
use kortyx_testkit::{Ended, Evidence, Kill, Kit, Line, Task, World};
use kortyx_tests::{
    driven::{Driven, Flow, Flows},
    place::Place,
};
use serde_json::json;
use tokio::time::sleep;

/// How often to look whether something has happened.
const LOOK: Duration = Duration::from_millis(5);

/// More than a lease lasts.
pub(crate) const AHEAD: Duration = Duration::from_mins(1);

/// The workflows on the store of the lane; in a file on the lane of memory.
pub(crate) fn kit() -> Kit {
    kit_of(Flow::Rich)
}

/// As [`kit`], with runs of another workflow.
pub(crate) fn kit_of(flow: Flow) -> Kit {
    let subject = Driven::at(|directory| {
        let file = || Place::Sqlite { path: directory.join("kortyx.db"), is_synced: true };
        Place::fresh(directory, true).unwrap_or_else(file)
    });
    Kit::new(Arc::new(subject.of(flow))).unwrap().program(env!("CARGO_BIN_EXE_driver"))
}

/// A place of its own for every test.
pub(crate) fn world() -> World {
    kit().world().unwrap()
}

/// Runs a process to its end. Its clock is ahead by so many minutes, so that it finds leases of those before it run out.
pub(crate) async fn run(world: &World, task: Task, minutes_ahead: u32, kill: Kill) -> Ended {
    world.member(task).ahead(AHEAD * minutes_ahead).kill(kill).run().await.unwrap()
}

/// What the processes of a world left behind: one run, which has ended well, and nothing that breaks a promise.
pub(crate) async fn verified_one(world: &World) -> Vec<Line> {
    let evidence = Evidence::of(world).await.unwrap();
    assert_eq!(evidence.check_runs().await.unwrap(), 1);
    evidence.check_announced().unwrap();
    evidence.check_steps().unwrap();
    evidence.check_repeats(0).unwrap();
    evidence.lines().to_vec()
}

/// Waits until a run neither runs nor should.
pub(crate) async fn settled(agent: &Agent, run_id: &RunId) -> RunRecord {
    loop {
        let run = agent.store().run(run_id).await.unwrap().unwrap();
        if run.status != RunStatus::Running {
            return run;
        }
        sleep(LOOK).await;
    }
}

/// The workflows of a world, as its processes have them.
pub(crate) fn flows(world: &World) -> Flows {
    Flows::new(world.log()).unwrap()
}

/// Begins a run of a workflow whose input says how often it asks, and waits until it has asked.
pub(crate) async fn begun(agent: &Agent, workflow: &Workflow, questions: usize) -> RunId {
    let result = agent.execute(workflow, json!(questions), Driven::options(0)).await.unwrap();
    let ExecutionResult::Suspended { run_id, .. } = result else { panic!("{result:?}") };
    run_id
}

/// What answers the open questions of a run, oldest first.
pub(crate) async fn open_questions(agent: &Agent, run_id: &RunId) -> Vec<ResumeHandle> {
    let query = InterruptQuery { run_id: Some(run_id.clone()), limit: 200, ..InterruptQuery::default() };
    let page = agent.list_interrupts(query).await.unwrap();
    page.interrupts.iter().map(|question| question.handle().clone()).collect()
}

/// Exactly these effects of the run happened, each under a key of its own.
pub(crate) async fn verify_effects(world: &World, run_id: &RunId, wanted: &[String]) {
    let evidence = Evidence::of(world).await.unwrap();
    assert_eq!(evidence.check_effects(run_id).unwrap(), wanted.iter().cloned().collect());
    evidence.check_steps().unwrap();
}
