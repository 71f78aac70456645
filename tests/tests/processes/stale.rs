//! A driver that stands still while another one takes its run over, and then goes on as if nothing had happened.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use kortyx_testkit::{Answering, Ended, Event, Kill, Line, Task};
use libtest_mimic::Trial;
use tokio::time::sleep;

use crate::{
    trial,
    world::{run, verified_one, world},
};

/// How many worlds are under way at once.
const AT_ONCE: usize = 3;
const LOOK: Duration = Duration::from_millis(5);
/// Enough for the second process to be given a later question's answer, and to hold the run when it dies.
const SOME: Kill = Kill::After(5);
const FINISH: Task = Task::Finish { answering: Answering::OneByOne, recovers: true };

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("b096_a_driver_that_wakes_after_its_run_has_ended_elsewhere_changes_nothing", || sweep(Kill::Never)),
        trial("b096_a_driver_that_wakes_while_another_holds_its_run_changes_nothing", || sweep(SOME)),
    ]
}

async fn sweep(second: Kill) {
    let undisturbed = world();
    assert_eq!(run(&undisturbed, FINISH, 0, Kill::Never).await, Ended::Well);
    let ended = undisturbed.lines().unwrap().into_iter().find_map(|line| match line.event {
        Event::Ended { points } => Some(points),
        _ => None,
    });
    // Before the first durable point there is no run to take over.
    let worlds = (2..=ended.unwrap()).map(|point| wakes_at(point, second));
    stream::iter(worlds).buffer_unordered(AT_ONCE).collect::<()>().await;
}

/// The first process stands still before this durable point until the second one has ended or died. A third one goes on where
/// the second one died.
async fn wakes_at(point: u64, second: Kill) {
    let world = world();
    let task = Task::Finish { answering: Answering::OneByOne, recovers: false };
    let mut first = world.member(task).kill(Kill::Stop(point)).start().unwrap();
    while !world.lines().unwrap().iter().any(is_fired) {
        sleep(LOOK).await;
    }
    let ended = run(&world, FINISH, 1, second).await;
    assert!(second != Kill::Never || ended == Ended::Well);

    let before = world.lines().unwrap();
    let stale = before.iter().find(|line| is_fired(line)).unwrap().pid;
    first.go_on(world.log()).unwrap();
    assert_eq!(run(&world, FINISH, 2, Kill::Never).await, Ended::Well);
    assert_eq!(first.ended().await.unwrap(), Ended::Well);

    let lines = verified_one(&world).await;
    let since = &lines[before.len()..];
    assert!(!since.iter().any(|line| line.pid == stale && has_acted(line)), "it went on without its run: {since:#?}");
}

fn is_fired(line: &Line) -> bool {
    matches!(line.event, Event::Fired { .. })
}

/// What was durable before may be logged late; an effect is not.
fn has_acted(line: &Line) -> bool {
    matches!(line.event, Event::Effect { .. })
}
