//! Processes that die while a run works on after its response.

use kortyx_testkit::{Answering, Sweep};
use kortyx_tests::driven::Flow;
use libtest_mimic::Trial;

use crate::{
    trial,
    world::{AHEAD, kit_of},
};

/// Opening, taking, completing the response, working, the pause, the answer, delivering, billing, the end.
const FEWEST: u64 = 9;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_kill_before_any_durable_point_leaves_the_work_after_a_response_to_others", || run(Sweep::before())),
        trial("a_kill_after_any_durable_point_leaves_the_work_after_a_response_to_others", || run(Sweep::after())),
    ]
}

/// Each time another process goes on, finds the question that is asked after the response, and answers it.
async fn run(sweep: Sweep) {
    let sweep = sweep.answering(Answering::OneByOne).lease(AHEAD / 2).clock_ahead(AHEAD);
    let swept = sweep.run(&kit_of(Flow::Background)).await.unwrap();
    assert!(swept.points >= FEWEST, "such a run has {} durable points", swept.points);
}
