//! A driver that stands still while another one takes its run over, and then goes on as if nothing had happened.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use kortyx_tests::driven::Event;
use libtest_mimic::Trial;
use tokio::time::sleep;

use crate::{
    trial,
    verdict::{Evidence, verify_repeats},
    world::{Ended, World},
};

/// How many worlds are under way at once.
const AT_ONCE: usize = 3;
const LOOK: Duration = Duration::from_millis(5);

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("b096_a_driver_that_wakes_after_its_run_was_taken_over_changes_nothing", wakes_at_any_point)]
}

async fn wakes_at_any_point() {
    let undisturbed = World::new();
    assert_eq!(undisturbed.run(undisturbed.driver(0).args(&["finish"])).await, Ended::Well);
    let ended = undisturbed.lines().into_iter().find_map(|line| match line.event {
        Event::Ended { points } => Some(points),
        _ => None,
    });
    // Before the first durable point there is no run to take over.
    stream::iter(2..=ended.unwrap()).map(wakes_at).buffer_unordered(AT_ONCE).collect::<()>().await;
}

/// The first process stands still before this durable point until the second one has brought the run to its end.
async fn wakes_at(point: u64) {
    let world = World::new();
    let start = world.driver(0).args(&["finish", "--without-worker"]).kill_at(&format!("stop:{point}"));
    let mut first = world.start(start);
    while !world.lines().iter().any(|line| matches!(line.event, Event::Fired { .. })) {
        sleep(LOOK).await;
    }
    assert_eq!(world.run(world.driver(1).args(&["finish"])).await, Ended::Well);
    let before = Evidence::of(&world).await;
    let runs = before.runs().await;
    assert_eq!(runs.len(), 1);
    before.verify_rich(&runs[0]).await;

    first.go_on();
    assert_eq!(first.ended().await, Ended::Well);
    let after = Evidence::of(&world).await;
    assert_eq!(after.runs().await, runs);
    after.verify_rich(&runs[0]).await;
    after.verify_announced();
    verify_repeats(&after.lines);
    assert_eq!(effects(&after), effects(&before), "the first process did something after it had lost its run");
}

fn effects(evidence: &Evidence) -> usize {
    evidence.lines.iter().filter(|line| matches!(line.event, Event::Effect { .. })).count()
}
