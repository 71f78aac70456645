//! A kill at every durable point of a rich run, one at a time.

use futures_util::{StreamExt as _, stream};
use kortyx_tests::driven::{Event, Line};
use libtest_mimic::Trial;

use crate::{
    elsewhere, trial,
    verdict::{Evidence, verify_parallel_repeats, verify_repeats},
    world::{Ended, World},
};

/// How many worlds are under way at once.
const AT_ONCE: usize = 3;
/// A rich run has at least so many durable points, whoever answers.
const FEWEST: u64 = 20;

/// Who answers, as the driver program calls it.
const ONE_BY_ONE: &str = "one-by-one";
const TOGETHER: &str = "together";
const ELSEWHERE: &str = "elsewhere";

pub(crate) fn trials() -> Vec<Trial> {
    let sweep = |name, answering, side| trial(name, move || sweep(answering, side));
    vec![
        sweep("a_kill_before_any_durable_point_repeats_nothing_that_was_stored", ONE_BY_ONE, "before"),
        sweep("a_kill_after_any_durable_point_loses_nothing_and_repeats_nothing", ONE_BY_ONE, "after"),
        sweep("a_kill_before_any_durable_point_with_parallel_answers_loses_neither", TOGETHER, "before"),
        sweep("a_kill_after_any_durable_point_with_parallel_answers_loses_neither", TOGETHER, "after"),
        sweep("b089_a_driver_killed_before_any_durable_point_loses_no_answer_given_elsewhere", ELSEWHERE, "before"),
        sweep("b089_a_driver_killed_after_any_durable_point_loses_no_answer_given_elsewhere", ELSEWHERE, "after"),
    ]
}

async fn sweep(answering: &'static str, side: &'static str) {
    // A switch that never fires counts alike.
    let undisturbed = World::new();
    assert_eq!(finish(&undisturbed, answering, 0, Some(&format!("{side}:0"))).await, Ended::Well);
    let points = undisturbed.lines().iter().find_map(passed).unwrap();
    assert!(points >= FEWEST, "a rich run has {points} durable points");

    let worlds = (1..=points + 1).map(|point| killed_at(answering, side, point));
    let killed: Vec<bool> = stream::iter(worlds).buffered(AT_ONCE).collect().await;
    let survivors: Vec<_> = (1..).zip(&killed).filter(|(_, killed)| !**killed).map(|(point, _)| point).collect();
    assert_eq!(survivors, [points + 1], "the process must die at each of its {points} durable points and at no other");
}

fn passed(line: &Line) -> Option<u64> {
    match line.event {
        Event::Ended { points } => Some(points),
        _ => None,
    }
}

/// Kills a process at this point and has another one finish. Whether the first was killed.
async fn killed_at(answering: &str, side: &str, point: u64) -> bool {
    let world = World::new();
    let first = finish(&world, answering, 0, Some(&format!("{side}:{point}"))).await;
    if first == Ended::Killed {
        assert_eq!(finish(&world, answering, 1, None).await, Ended::Well);
    }
    verify(&world, answering).await;
    first == Ended::Killed
}

async fn finish(world: &World, answering: &str, minutes_ahead: u64, kill_at: Option<&str>) -> Ended {
    let mut start = world.driver(minutes_ahead).args(&["finish", "--answering", answering]);
    if let Some(point) = kill_at {
        start = start.kill_at(point);
    }
    if answering != ELSEWHERE {
        return world.run(start).await;
    }
    let (clerk, log) = (world.clerk().await, world.log());
    tokio::select! {
        ended = world.run(start) => ended,
        () = elsewhere::answer_for_ever(&clerk, &log) => unreachable!("it goes on for ever"),
    }
}

async fn verify(world: &World, answering: &str) {
    let evidence = Evidence::of(world).await;
    let runs = evidence.runs().await;
    let [run_id] = runs.as_slice() else { panic!("there is not one run: {runs:?}") };
    evidence.verify_rich(run_id).await;
    evidence.verify_announced();
    // Whoever answers from elsewhere may answer both questions before the run goes on.
    let verify_repeats = if answering == ONE_BY_ONE { verify_repeats } else { verify_parallel_repeats };
    verify_repeats(&evidence.lines);
}
