//! Processes that all die, one after the other, before they have done much.

use libtest_mimic::Trial;

use crate::{
    trial,
    verdict::{Evidence, verify_repeats},
    world::{Ended, World},
};

/// More processes than any run needs when each passes one durable point.
const MOST: u64 = 60;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_run_ends_although_every_process_dies_before_its_second_durable_point", || chain("before:2")),
        // The first durable point of a process that goes on with a run is its lease.
        trial("a_run_ends_although_every_process_dies_after_its_second_durable_point", || chain("after:2")),
        trial("a_run_ends_although_every_process_dies_before_its_fourth_durable_point", || chain("before:4")),
        trial("a_run_ends_although_every_process_dies_after_its_third_durable_point", || chain("after:3")),
    ]
}

async fn chain(kill_at: &'static str) {
    let world = World::new();
    let mut deaths = 0;
    while world.run(world.driver(deaths).args(&["finish"]).kill_at(kill_at)).await == Ended::Killed {
        deaths += 1;
        assert!(deaths < MOST, "the run makes no progress: {:#?}", world.lines());
    }
    assert!(deaths > 4, "only {deaths} processes died");
    let evidence = Evidence::of(&world).await;
    let runs = evidence.runs().await;
    assert_eq!(runs.len(), 1);
    evidence.verify_rich(&runs[0]).await;
    evidence.verify_announced();
    verify_repeats(&evidence.lines);
}
