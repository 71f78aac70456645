//! Four processes that answer one question at once, twenty-five times each.

use std::collections::BTreeMap;

use kortyx::{
    Agent,
    protocol::{ResumeHandle, ResumeResponse, RunId, json},
    store::RunStatus,
};
use kortyx_testkit::{Ended, Kill, Outcome, Racers, Task, World};
use kortyx_tests::driven::Driven;
use libtest_mimic::Trial;
use serde_json::json;

use crate::{
    trial,
    world::{AHEAD, begun, flows, open_questions, settled, verify_effects, world},
};

const PROCESSES: usize = 4;
const EACH: usize = 25;
const ALL: usize = PROCESSES * EACH;
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
    let world = world();
    let (agent, run_id) = begin(&world, rounds).await;
    let mut racers = Racers::start(&world, PROCESSES, Kill::Never).await.unwrap();
    let mut winners = Vec::new();
    for _ in 0..rounds {
        let handle = open(&agent, &run_id).await;
        let heard = race_for(&mut racers, &handle, answer).await;
        let outcomes: Vec<_> = heard.into_iter().flat_map(Option::unwrap).collect();
        winners.push(judge(&outcomes, answer));
    }
    assert!(racers.end().await.unwrap().into_iter().all(|ended| ended == Ended::Well));
    verify(&world, &agent, &run_id, &winners).await;
}

/// The process whose answer is accepted dies before it can do or say anything; another one goes on.
async fn killed_winners() {
    for _ in 0..3 {
        let world = world();
        let (agent, run_id) = begin(&world, 1).await;
        let mut racers = Racers::start(&world, PROCESSES, Kill::Accepted).await.unwrap();
        let handle = open(&agent, &run_id).await;
        let outcomes = race_for(&mut racers, &handle, |nth| format!("{nth}")).await;
        let dead = outcomes.iter().position(Option::is_none).unwrap();
        for (nth, outcomes) in outcomes.iter().enumerate() {
            let refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused { code, .. } if code == CONFLICT);
            assert!(
                outcomes.as_ref().map_or(nth == dead, |all| all.len() == EACH && all.iter().all(refused)),
                "{outcomes:?}"
            );
        }
        for (nth, ended) in racers.end().await.unwrap().into_iter().enumerate() {
            assert_eq!(ended, if nth == dead { Ended::Killed } else { Ended::Well });
        }

        let question = agent.store().interrupt(&handle.request_id).await.unwrap().unwrap();
        let accepted: ResumeResponse = json::from_slice(&question.answer.unwrap()).unwrap();
        let text = text(&accepted);
        assert!(text_of_process(dead).contains(&text), "{text} is no answer of the process that died");
        assert_eq!(agent.store().run(&run_id).await.unwrap().unwrap().status, RunStatus::Running);
        let mut other = world.member(Task::Serve).ahead(AHEAD).start().unwrap();
        settled(&agent, &run_id).await;
        assert_eq!(other.end().await.unwrap(), Ended::Well);
        verify(&world, &agent, &run_id, &[text]).await;
    }
}

async fn begin(world: &World, rounds: usize) -> (Agent, RunId) {
    let agent = world.starter().await.unwrap();
    let run_id = begun(&agent, &flows(world).asking, rounds).await;
    (agent, run_id)
}

/// The run's open question, once there is one.
async fn open(agent: &Agent, run_id: &RunId) -> ResumeHandle {
    settled(agent, run_id).await;
    let open = open_questions(agent, run_id).await;
    let [handle] = open.as_slice() else { panic!("{open:?}") };
    handle.clone()
}

/// Has all processes answer the question at once.
async fn race_for(
    racers: &mut Racers,
    handle: &ResumeHandle,
    answer: impl Fn(usize) -> String,
) -> Vec<Option<Vec<Outcome>>> {
    let of_process = |process: usize| {
        (0..EACH).map(|nth| (handle.clone(), ResumeResponse::text(answer(process * EACH + nth)))).collect()
    };
    racers.give((0..PROCESSES).map(of_process).collect()).await.unwrap()
}

fn text(answer: &ResumeResponse) -> String {
    let ResumeResponse::Text { text } = answer else { panic!("{answer:?}") };
    text.clone()
}

fn text_of_process(process: usize) -> Vec<String> {
    (0..EACH).map(|nth| format!("{}", process * EACH + nth)).collect()
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
    let equal = (0..ALL).filter(|nth| ResumeResponse::text(answer(*nth)) == **winner).count();
    assert_eq!(receipts.len(), equal, "{counts:?}");
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), conflicts(ALL - equal));
    text(winner)
}

fn conflicts(count: usize) -> Vec<(&'static str, usize)> {
    if count == 0 { Vec::new() } else { vec![(CONFLICT, count)] }
}

/// The run has ended with these answers, and each had its effect once.
async fn verify(world: &World, agent: &Agent, run_id: &RunId, winners: &[String]) {
    let run = agent.get_run(run_id, &Driven::scope()).await.unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(run.data.unwrap().to_value().unwrap(), json!({ "answers": winners }));
    let acts: Vec<String> = (0..winners.len()).map(|round| format!("act-{round}")).collect();
    verify_effects(world, run_id, &acts).await;
}
