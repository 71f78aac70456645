//! A kill at every durable point of a rich run, one at a time.

use kortyx_testkit::{Answering, Sweep};
use libtest_mimic::Trial;

use crate::{
    trial,
    world::{AHEAD, kit},
};

/// A rich run has at least so many durable points, whoever answers.
const FEWEST: u64 = 20;

pub(crate) fn trials() -> Vec<Trial> {
    use Answering::{Elsewhere, OneByOne, Together};
    let sweep = |name, sweep, answering| trial(name, move || run(sweep, answering));
    let (before, after) = (Sweep::before, Sweep::after);
    vec![
        sweep("a_kill_before_any_durable_point_repeats_nothing_that_was_stored", before(), OneByOne),
        sweep("a_kill_after_any_durable_point_loses_nothing_and_repeats_nothing", after(), OneByOne),
        sweep("a_kill_before_any_durable_point_with_parallel_answers_loses_neither", before(), Together),
        sweep("a_kill_after_any_durable_point_with_parallel_answers_loses_neither", after(), Together),
        sweep("b089_a_driver_killed_before_any_durable_point_loses_no_answer_given_elsewhere", before(), Elsewhere),
        sweep("b089_a_driver_killed_after_any_durable_point_loses_no_answer_given_elsewhere", after(), Elsewhere),
    ]
}

async fn run(sweep: Sweep, answering: Answering) {
    // Whoever answers from elsewhere may answer both of two questions before the run goes on, as one who answers together does.
    let others = usize::from(answering != Answering::OneByOne);
    let sweep = sweep.answering(answering).others(others).lease(AHEAD / 2).clock_ahead(AHEAD);
    let swept = sweep.run(&kit()).await.unwrap();
    assert!(swept.points >= FEWEST, "a rich run has {} durable points", swept.points);
}
