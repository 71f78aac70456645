//! `cargo xtask test-matrix`: every check and every test of the workspace, lane by lane.

mod jobs;
mod lane;
mod programs;
mod runner;
mod table;
mod tally;

pub(crate) use tally::Tally;

use std::time::Instant;

use crate::console;
use crate::error::Error;
use crate::interrupt;
use crate::workspace::Workspace;
use lane::{LANES, Lane};
use runner::Runner;
use table::Row;

/// Prints the lanes, and the servers and programs that they need.
pub(crate) fn list() {
    let width = LANES.iter().map(|lane| lane.name.len()).max().unwrap_or_default();
    for lane in LANES {
        let servers = lane.needs.iter().map(|server| format!("{} ({})", server.name(), server.variable()));
        let needs: Vec<_> = servers.chain(lane.programs.iter().map(|program| program.name().to_owned())).collect();
        let needs = if needs.is_empty() { String::new() } else { format!("; needs {}", needs.join(", ")) };
        console::say(format_args!("{:<width$} {}{needs}", lane.name, lane.about));
    }
}

/// Runs the named lanes, or all, prints their table and returns their sum.
pub(crate) fn run(names: &[String], install: bool) -> Result<Tally, Error> {
    let lanes = select(names)?;
    interrupt::watch().map_err(Error::Signals)?;
    let workspace = Workspace::load()?;
    let mut runner = Runner::new(&workspace, &lanes)?;
    if install {
        runner.provision(&lanes);
    }
    let mut rows = Vec::new();
    for (place, lane) in lanes.iter().enumerate() {
        let start = Instant::now();
        let tally = runner.lane(lane);
        rows.push(Row { name: lane.name, tally, elapsed: start.elapsed() });
        if interrupt::happened() {
            break;
        }
        let later = lanes.iter().skip(place + 1).flat_map(|lane| lane.needs).copied();
        runner.keep(&later.collect::<Vec<_>>());
    }
    runner.await_provision();
    console::say(table::render(&rows));
    let total: Tally = rows.iter().map(|row| row.tally).sum();
    // What was cut short is no success, even when nothing was under way.
    if interrupt::happened() && total.failed == 0 { Err(Error::Interrupted) } else { Ok(total) }
}

/// The named lanes in the order of the table, so that the cheap ones come first; all when none is named.
fn select(names: &[String]) -> Result<Vec<&'static Lane>, Error> {
    if let Some(name) = names.iter().find(|name| LANES.iter().all(|lane| lane.name != **name)) {
        let known: Vec<_> = LANES.iter().map(|lane| lane.name).collect();
        return Err(Error::UnknownLane { name: name.clone(), known: known.join(", ") });
    }
    Ok(LANES.iter().filter(|lane| names.is_empty() || names.iter().any(|name| name == lane.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(names: &[&str]) -> Vec<&'static str> {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        select(&names).unwrap().into_iter().map(|lane| lane.name).collect()
    }

    #[test]
    fn every_lane_runs_when_none_is_named() {
        assert_eq!(selected(&[]).len(), LANES.len());
    }

    #[test]
    fn named_lanes_run_once_in_the_order_of_the_table() {
        assert_eq!(selected(&["sqlite", "lint", "sqlite"]), ["lint", "sqlite"]);
    }

    #[test]
    fn an_unknown_lane_is_refused_with_the_known_ones() {
        let message = select(&["lintt".into()]).unwrap_err().to_string();

        assert!(message.contains("`lintt`") && message.contains("lint, docs"), "{message}");
    }
}
