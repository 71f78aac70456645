//! Processes that give many answers at once.

use std::time::Duration;

use futures_util::future::join_all;
use kortyx::{
    Agent, ExecuteOptions, Workflow,
    protocol::{ExecutionResult, ResumeHandle, RunId, SessionId},
    store::{Clock as _, InterruptQuery, SystemClock},
};
use kortyx_tests::driven::{Outcome, Race, SESSION};
use serde_json::json;

use crate::world::{Ended, Process, Start, World};

/// How long the processes get to read what they are told before they start together.
const HEAD_START: Duration = Duration::from_millis(30);

/// Processes that wait for answers to give.
pub(crate) struct Racers(Vec<Process>);

impl Racers {
    /// Starts them, and waits until they are ready.
    pub(crate) async fn start(world: &World, count: usize, kill_at: Option<&str>) -> Self {
        let racer = async || {
            let start = world.driver(0).args(&["race"]);
            let mut process = world.start(kill_at.into_iter().fold(start, Start::kill_at));
            assert_eq!(process.hear().await.as_deref(), Some("ready"));
            process
        };
        Self(join_all((0..count).map(|_| racer())).await)
    }

    /// Has each give its answers, all at once. What each said became of them; nothing if it died.
    pub(crate) async fn give(&mut self, answers: Vec<Vec<(ResumeHandle, String)>>) -> Vec<Option<Vec<Outcome>>> {
        let at = SystemClock.now().saturating_add(HEAD_START);
        for (racer, answers) in self.0.iter_mut().zip(answers) {
            racer.say(&serde_json::to_string(&Race { answers, at }).unwrap()).await;
        }
        let heard = join_all(self.0.iter_mut().map(Process::hear)).await;
        heard.into_iter().map(|line| line.map(|line| serde_json::from_str(&line).unwrap())).collect()
    }

    /// Ends them. How each ended.
    pub(crate) async fn end(mut self) -> Vec<Ended> {
        join_all(self.0.iter_mut().map(Process::end)).await
    }
}

/// Begins a run of a workflow whose input says how often it asks, and waits until it has asked.
pub(crate) async fn begun(agent: &Agent, workflow: &Workflow, questions: usize) -> RunId {
    let options = ExecuteOptions::new().session(SessionId::new(SESSION).unwrap());
    let result = agent.execute(workflow, json!(questions), options).await.unwrap();
    let ExecutionResult::Suspended { run_id, .. } = result else { panic!("{result:?}") };
    run_id
}

/// What answers the open questions of a run, oldest first.
pub(crate) async fn open_questions(agent: &Agent, run_id: &RunId) -> Vec<ResumeHandle> {
    let query = InterruptQuery { run_id: Some(run_id.clone()), limit: 200, ..InterruptQuery::default() };
    let page = agent.list_interrupts(query).await.unwrap();
    page.interrupts.iter().map(|question| question.handle().clone()).collect()
}
