//! Four processes that give a hundred answers to one question at once, up to a thousand
//! questions over; `KORTYX_TEST_RACES` sets one number for all stores.

use kortyx_testkit::Race;
use kortyx_tests::driven::Flow;
use libtest_mimic::Trial;

use crate::{kit_on, trial};

/// How many questions each store gets; fewer through the pooler, behind which is the same store.
const QUESTIONS: [(&str, usize); 5] =
    [("sqlite", 1_000), ("redis", 1_000), ("redis-cluster", 1_000), ("postgres", 1_000), ("postgres-pgbouncer", 200)];
/// Questions of one run, one after the other.
const EACH: usize = 10;

pub(crate) fn trials() -> Vec<Trial> {
    let trial_on = |(store, questions)| {
        let name = format!("b094_of_a_hundred_answers_from_four_processes_one_wins_every_time_on_{store}");
        trial(name, move || raced(store, questions))
    };
    QUESTIONS.into_iter().map(trial_on).collect()
}

async fn raced(store: &'static str, usual: usize) {
    let questions = std::env::var("KORTYX_TEST_RACES").ok().and_then(|races| races.parse().ok()).unwrap_or(usual);
    let race = Race::for_questions(questions).at_once(4);
    let raced = race.run(&kit_on(store, Flow::Asking(EACH))).await.unwrap();
    println!("faults: {store}: {raced:?}");
    assert!(raced.questions >= questions && raced.answers == raced.questions * 100, "{raced:?}");
}
