//! Processes that all die, one after the other, before they have done much.

use kortyx_testkit::{Answering, Ended, Kill, Task};
use libtest_mimic::Trial;

use crate::{
    trial,
    world::{run, verified_one, world},
};

/// More processes than any run needs when each passes one durable point.
const MOST: u32 = 60;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_run_ends_although_every_process_dies_before_its_second_durable_point", || chain(Kill::Before(2))),
        // The first durable point of a process that goes on with a run is its lease.
        trial("a_run_ends_although_every_process_dies_after_its_second_durable_point", || chain(Kill::After(2))),
        trial("a_run_ends_although_every_process_dies_before_its_fourth_durable_point", || chain(Kill::Before(4))),
        trial("a_run_ends_although_every_process_dies_after_its_third_durable_point", || chain(Kill::After(3))),
    ]
}

async fn chain(kill: Kill) {
    let world = world();
    let task = Task::Finish { answering: Answering::OneByOne, recovers: true };
    let mut deaths = 0;
    while run(&world, task, deaths, kill).await == Ended::Killed {
        deaths += 1;
        assert!(deaths < MOST, "the run makes no progress: {:#?}", world.lines());
    }
    assert!(deaths > 4, "only {deaths} processes died");
    verified_one(&world).await;
}
