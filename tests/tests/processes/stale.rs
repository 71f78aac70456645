//! A driver that stands still while another one takes its run over, and then goes on as if nothing had happened.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use kortyx_tests::driven::{Event, Line};
use libtest_mimic::Trial;
use tokio::time::sleep;

use crate::{
    trial,
    verdict::{Evidence, verify_repeats},
    world::{Ended, Start, World},
};

/// How many worlds are under way at once.
const AT_ONCE: usize = 3;
const LOOK: Duration = Duration::from_millis(5);
/// Enough for the second process to be given a later question's answer, and to hold the run when it dies.
const SOME: &str = "after:5";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("b096_a_driver_that_wakes_after_its_run_has_ended_elsewhere_changes_nothing", || sweep(None)),
        trial("b096_a_driver_that_wakes_while_another_holds_its_run_changes_nothing", || sweep(Some(SOME))),
    ]
}

async fn sweep(second_dies: Option<&'static str>) {
    let undisturbed = World::new();
    assert_eq!(undisturbed.run(undisturbed.driver(0).args(&["finish"])).await, Ended::Well);
    let ended = undisturbed.lines().into_iter().find_map(|line| match line.event {
        Event::Ended { points } => Some(points),
        _ => None,
    });
    // Before the first durable point there is no run to take over.
    let worlds = (2..=ended.unwrap()).map(|point| wakes_at(point, second_dies));
    stream::iter(worlds).buffer_unordered(AT_ONCE).collect::<()>().await;
}

/// The first process stands still before this durable point until the second one has ended or died. A third one goes on where
/// the second one died.
async fn wakes_at(point: u64, second_dies: Option<&str>) {
    let world = World::new();
    let start = world.driver(0).args(&["finish", "--without-worker"]).kill_at(&format!("stop:{point}"));
    let mut first = world.start(start);
    while !world.lines().iter().any(is_fired) {
        sleep(LOOK).await;
    }
    let second = world.driver(1).args(&["finish"]);
    let second = world.run(second_dies.into_iter().fold(second, Start::kill_at)).await;
    assert!(second_dies.is_some() || second == Ended::Well);

    let before = world.lines();
    let stale = before.iter().find(|line| is_fired(line)).unwrap().pid;
    first.go_on(&world.log());
    assert_eq!(world.run(world.driver(2).args(&["finish"])).await, Ended::Well);
    assert_eq!(first.ended().await, Ended::Well);

    let evidence = Evidence::of(&world).await;
    let runs = evidence.runs().await;
    assert_eq!(runs.len(), 1);
    evidence.verify_rich(&runs[0]).await;
    evidence.verify_announced();
    verify_repeats(&evidence.lines);
    let since = &evidence.lines[before.len()..];
    assert!(!since.iter().any(|line| line.pid == stale && has_acted(line)), "it went on without its run: {since:#?}");
}

fn is_fired(line: &Line) -> bool {
    matches!(line.event, Event::Fired { .. })
}

/// What was durable before may be logged late; an effect is not.
fn has_acted(line: &Line) -> bool {
    matches!(line.event, Event::Effect { .. })
}
