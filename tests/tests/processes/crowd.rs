//! Answers to different questions of one run that come from several processes at the same moment.

use std::collections::BTreeSet;

use kortyx::{
    Agent,
    protocol::{RequestId, ResumeHandle, ResumeResponse, RunId, json},
    store::{InterruptStatus, RunStatus},
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
const QUESTIONS: usize = 24;
const ROUNDS: usize = 5;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("answers_given_at_one_moment_to_many_questions_of_one_run_are_all_used", all_used),
        trial("answers_to_many_questions_of_one_run_are_used_although_each_process_dies_at_its_first", all_die),
    ]
}

/// Nobody recovers runs here: whoever drives must see what the others accepted before it lets the run go.
async fn all_used() {
    for _ in 0..ROUNDS {
        let world = world();
        let agent = world.starter().await.unwrap();
        let run_id = begun(&agent, &flows(&world).crowd, QUESTIONS).await;
        let questions = open_questions(&agent, &run_id).await;
        let mut racers = Racers::start(&world, PROCESSES, Kill::Never).await.unwrap();
        let outcomes: Vec<_> =
            racers.give(dealt(&questions)).await.unwrap().into_iter().flat_map(Option::unwrap).collect();
        let places: BTreeSet<_> = outcomes.iter().map(place).collect();
        assert_eq!(places, (1..).take(QUESTIONS).collect(), "{outcomes:?}");
        assert!(racers.end().await.unwrap().into_iter().all(|ended| ended == Ended::Well));
        verify(&world, &agent, &run_id, &questions).await;
    }
}

/// Each process dies when its first answer is accepted, before it can say so or drive.
async fn all_die() {
    for _ in 0..ROUNDS {
        let world = world();
        let agent = world.starter().await.unwrap();
        let run_id = begun(&agent, &flows(&world).crowd, QUESTIONS).await;
        let questions = open_questions(&agent, &run_id).await;
        let mut racers = Racers::start(&world, PROCESSES, Kill::Accepted).await.unwrap();
        assert!(racers.give(dealt(&questions)).await.unwrap().iter().all(Option::is_none), "a process survived");
        assert!(racers.end().await.unwrap().into_iter().all(|ended| ended == Ended::Killed));

        let left = open_questions(&agent, &run_id).await.len();
        // What a process had sent when it died may be accepted after its death.
        assert!(left <= QUESTIONS - PROCESSES, "{left} questions are open");
        let clerk = world.clerk().await.unwrap();
        let mut server = world.member(Task::Serve).ahead(AHEAD).start().unwrap();
        tokio::select! {
            error = world.answer_for_ever(&clerk) => panic!("{error:?}"),
            () = ended(&agent, &run_id) => {}
        }
        assert_eq!(server.end().await.unwrap(), Ended::Well);
        verify(&world, &agent, &run_id, &questions).await;
    }
}

/// Every process gets its share of the questions, with an answer for each.
fn dealt(questions: &[ResumeHandle]) -> Vec<Vec<(ResumeHandle, ResumeResponse)>> {
    let answer = |handle: &ResumeHandle| (handle.clone(), ResumeResponse::text(format!("to {}", handle.request_id)));
    (0..PROCESSES).map(|nth| questions.iter().skip(nth).step_by(PROCESSES).map(answer).collect()).collect()
}

fn place(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Accepted { is_repeat: false, seq, .. } => *seq,
        other => panic!("an answer was not accepted: {other:?}"),
    }
}

async fn ended(agent: &Agent, run_id: &RunId) {
    while !settled(agent, run_id).await.status.is_terminal() {
        tokio::task::yield_now().await;
    }
}

/// The run has ended with the answers that storage holds, in the order of the questions.
async fn verify(world: &World, agent: &Agent, run_id: &RunId, questions: &[ResumeHandle]) {
    let run = agent.get_run(run_id, &Driven::scope()).await.unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Completed);
    let mut answers = Vec::new();
    for question in questions {
        answers.push(answer_of(agent, &question.request_id).await);
    }
    assert_eq!(run.data.unwrap().to_value().unwrap(), json!({ "answers": answers }));
    verify_effects(world, run_id, &["act".to_owned()]).await;
}

async fn answer_of(agent: &Agent, request_id: &RequestId) -> String {
    let question = agent.store().interrupt(request_id).await.unwrap().unwrap();
    assert_eq!(question.status, InterruptStatus::Answered);
    let answer: ResumeResponse = json::from_slice(&question.answer.unwrap()).unwrap();
    let ResumeResponse::Text { text } = answer else { panic!("{answer:?}") };
    text
}
