//! A kill at every journaled point of a loop with three tools, an approval, a question with a contract and a streamed output.

use kortyx_testkit::{Answering, Sweep};
use kortyx_tests::driven::Flow;
use libtest_mimic::Trial;

use crate::{
    trial,
    world::{AHEAD, kit_of},
};

/// The first pass, a tool, the question, its answer, the second pass, the approval, its answer, two tools, the card, the last pass, a step, the end.
const FEWEST: u64 = 12;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("k03_a_kill_before_any_point_of_a_reasoning_loop_repeats_nothing_that_was_stored", || {
            run(Sweep::before())
        }),
        trial("k03_a_kill_after_any_point_of_a_reasoning_loop_loses_nothing_and_repeats_nothing", || {
            run(Sweep::after())
        }),
    ]
}

async fn run(sweep: Sweep) {
    let sweep = sweep.answering(Answering::OneByOne).lease(AHEAD / 2).clock_ahead(AHEAD);
    let swept = sweep.run(&kit_of(Flow::Reasoning)).await.unwrap();
    assert!(swept.points >= FEWEST, "such a run has {} durable points", swept.points);
}
