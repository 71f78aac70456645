//! Four processes that give a hundred answers to one question at once, a thousand questions over; `KORTYX_TEST_RACES` sets another number.

use kortyx_testkit::Race;
use kortyx_tests::driven::Flow;
use libtest_mimic::Trial;

use crate::{STORES, kit_on, trial};

const QUESTIONS: usize = 1_000;
/// As many on stores that do the same as another one, only by another way.
const FEWER: usize = 300;
/// Questions of one run, one after the other.
const EACH: usize = 10;

pub(crate) fn trials() -> Vec<Trial> {
    let name = |store| format!("b094_of_a_hundred_answers_from_four_processes_one_wins_every_time_on_{store}");
    STORES.into_iter().map(|store| trial(name(store), move || raced(store))).collect()
}

async fn raced(store: &'static str) {
    let usual = if ["redis-cluster", "postgres-pgbouncer"].contains(&store) { FEWER } else { QUESTIONS };
    let questions = std::env::var("KORTYX_TEST_RACES").ok().and_then(|races| races.parse().ok()).unwrap_or(usual);
    let race = Race::for_questions(questions).at_once(4);
    let raced = race.run(&kit_on(store, Flow::Asking(EACH))).await.unwrap();
    println!("faults: {store}: {raced:?}");
    assert!(raced.questions >= questions && raced.answers == raced.questions * 100, "{raced:?}");
}
