//! Four processes that answer one question at once, twenty-five times each.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use kortyx::{
    Agent, ExecuteOptions,
    protocol::{ExecutionResult, ResumeHandle, ResumeResponse, RunId, SessionId, json},
    store::{Clock as _, InterruptQuery, RunStatus, SystemClock},
};
use kortyx_tests::driven::{Outcome, Race, SESSION};
use libtest_mimic::Trial;
use serde_json::json;

use crate::{
    trial,
    verdict::verify_effects,
    world::{Ended, Process, Start, World, scope, settled},
};

const PROCESSES: usize = 4;
const EACH: usize = 25;
const ALL: usize = PROCESSES * EACH;
/// How long the processes get to read what they are told before they start together.
const HEAD_START: Duration = Duration::from_millis(30);
const CONFLICT: &str = "INTERRUPT_ALREADY_RESOLVED";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("b094_of_a_hundred_answers_from_four_processes_one_is_accepted", || race(5, |nth| format!("{nth}"))),
        trial("b094_a_hundred_equal_answers_from_four_processes_get_one_receipt", || race(3, |_| "yes".into())),
        trial("b094_repeats_among_a_hundred_answers_get_the_first_receipt", || race(4, |nth| format!("{}", nth % 10))),
        trial("b094_the_answer_of_a_winner_killed_at_once_takes_effect", killed_winners),
    ]
}

/// Races for one question after the other of one run.
async fn race(rounds: usize, answer: fn(usize) -> String) {
    let world = World::new();
    let (agent, run_id) = begin(&world, rounds).await;
    let mut racers = join_all((0..PROCESSES).map(|_| racer(&world, None))).await;
    let mut winners = Vec::new();
    for _ in 0..rounds {
        let handle = open(&agent, &run_id).await;
        let heard = give(&mut racers, &handle, answer).await;
        let outcomes: Vec<_> = heard.into_iter().flat_map(Option::unwrap).collect();
        winners.push(judge(&outcomes, answer));
    }
    join_all(racers.iter_mut().map(Process::end)).await.into_iter().for_each(|ended| assert_eq!(ended, Ended::Well));
    verify(&world, &agent, &run_id, &winners).await;
}

/// The process whose answer is accepted dies before it can do or say anything; another one goes on.
async fn killed_winners() {
    for _ in 0..3 {
        let world = World::new();
        let (agent, run_id) = begin(&world, 1).await;
        let mut racers = join_all((0..PROCESSES).map(|_| racer(&world, Some("accepted")))).await;
        let handle = open(&agent, &run_id).await;
        let outcomes = give(&mut racers, &handle, |nth| format!("{nth}")).await;
        let dead = outcomes.iter().position(Option::is_none).unwrap();
        for (nth, outcomes) in outcomes.iter().enumerate() {
            let refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused { code, .. } if code == CONFLICT);
            assert!(
                outcomes.as_ref().map_or(nth == dead, |all| all.len() == EACH && all.iter().all(refused)),
                "{outcomes:?}"
            );
        }
        for (nth, racer) in racers.iter_mut().enumerate() {
            assert_eq!(racer.end().await, if nth == dead { Ended::Killed } else { Ended::Well });
        }

        let question = agent.store().interrupt(&handle.request_id).await.unwrap().unwrap();
        let accepted: ResumeResponse = json::from_slice(&question.answer.unwrap()).unwrap();
        let ResumeResponse::Text { text } = accepted else { panic!("{accepted:?}") };
        assert!(text_of_process(dead).contains(&text), "{text} is no answer of the process that died");
        assert_eq!(agent.store().run(&run_id).await.unwrap().unwrap().status, RunStatus::Running);
        let mut other = world.start(world.driver(1).args(&["serve"]));
        settled(&agent, &run_id).await;
        assert_eq!(other.end().await, Ended::Well);
        verify(&world, &agent, &run_id, &[text]).await;
    }
}

async fn begin(world: &World, rounds: usize) -> (Agent, RunId) {
    let (agent, flows) = world.starter().await;
    let options = ExecuteOptions::new().session(SessionId::new(SESSION).unwrap());
    let result = agent.execute(&flows.asking, json!(rounds), options).await.unwrap();
    let ExecutionResult::Suspended { run_id, .. } = result else { panic!("{result:?}") };
    (agent, run_id)
}

/// The run's open question, once there is one.
async fn open(agent: &Agent, run_id: &RunId) -> ResumeHandle {
    settled(agent, run_id).await;
    let query = InterruptQuery { run_id: Some(run_id.clone()), limit: 2, ..InterruptQuery::default() };
    let page = agent.list_interrupts(query).await.unwrap();
    let [question] = page.interrupts.as_slice() else { panic!("{page:?}") };
    question.handle().clone()
}

async fn racer(world: &World, kill_at: Option<&str>) -> Process {
    let start = world.driver(0).args(&["race"]);
    let mut process = world.start(kill_at.into_iter().fold(start, Start::kill_at));
    assert_eq!(process.hear().await.as_deref(), Some("ready"));
    process
}

fn text_of_process(process: usize) -> Vec<String> {
    (0..EACH).map(|nth| format!("{}", process * EACH + nth)).collect()
}

/// Has all processes answer at once. What each said; nothing if it died.
async fn give(
    racers: &mut [Process],
    handle: &ResumeHandle,
    answer: impl Fn(usize) -> String,
) -> Vec<Option<Vec<Outcome>>> {
    let at = SystemClock.now().saturating_add(HEAD_START);
    for (process, racer) in racers.iter_mut().enumerate() {
        let answers = (0..EACH).map(|nth| answer(process * EACH + nth)).collect();
        racer.say(&serde_json::to_string(&Race { handle: handle.clone(), answers, at }).unwrap()).await;
    }
    let heard = join_all(racers.iter_mut().map(Process::hear)).await;
    heard.into_iter().map(|line| line.map(|line| serde_json::from_str(&line).unwrap())).collect()
}

/// One answer was accepted, its repeats got its receipt, every other one is a conflict. Returns the answer.
fn judge(outcomes: &[Outcome], answer: impl Fn(usize) -> String) -> String {
    let mut firsts = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut receipts = Vec::new();
    for outcome in outcomes {
        match outcome {
            Outcome::Accepted { answer, is_repeat, seq, at } => {
                receipts.push((answer, seq, at));
                if !is_repeat {
                    firsts.push(answer);
                }
            }
            Outcome::Refused { code, .. } => *counts.entry(code).or_default() += 1,
        }
    }
    let [winner] = firsts.as_slice() else { panic!("{} answers were accepted first", firsts.len()) };
    assert!(receipts.iter().all(|receipt| *receipt == receipts[0]), "receipts differ: {receipts:?}");
    let equal = (0..ALL).filter(|nth| answer(*nth) == **winner).count();
    assert_eq!(receipts.len(), equal, "{counts:?}");
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), conflicts(ALL - equal));
    (*winner).clone()
}

fn conflicts(count: usize) -> Vec<(&'static str, usize)> {
    if count == 0 { Vec::new() } else { vec![(CONFLICT, count)] }
}

/// The run has ended with these answers, and each had its effect once.
async fn verify(world: &World, agent: &Agent, run_id: &RunId, winners: &[String]) {
    let run = agent.get_run(run_id, &scope()).await.unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(run.data.unwrap().to_value().unwrap(), json!({ "answers": winners }));
    let acts: Vec<String> = (0..winners.len()).map(|round| format!("act-{round}")).collect();
    verify_effects(&world.lines(), run_id, &acts.iter().map(String::as_str).collect::<Vec<_>>());
}
