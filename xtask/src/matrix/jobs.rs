//! Runs test programs side by side, and says how each ended.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::Tally;
use super::runner::{conclude, failed, read, timed};
use crate::error::Error;
use crate::interrupt;
use crate::process::Ended;

/// Longer than any test program takes.
const LIMIT: Duration = Duration::from_mins(15);
/// A test program to run.
#[derive(Debug)]
pub(super) struct Job {
    /// What it is called in the lane.
    pub(super) name: String,
    pub(super) command: Command,
    /// Where its output goes.
    pub(super) log: PathBuf,
}

/// The programs of a step, and what counts beside them.
pub(super) type Tests = (Tally, Vec<Job>);

/// Runs the programs of several steps, so many at a time, and gives the counts of each step. They begin in order; none begins after
/// an interruption.
pub(super) fn run(steps: Vec<Tests>, at_once: usize) -> Vec<Tally> {
    let (tallies, jobs): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
    let tallies: Vec<_> = tallies.into_iter().map(Mutex::new).collect();
    let jobs = tallies.iter().zip(jobs).flat_map(|(tally, jobs)| jobs.into_iter().map(move |job| (tally, job)));
    let waiting = Mutex::new(jobs);
    let work = || {
        while !interrupt::happened() {
            let Some((tally, job)) = locked(&waiting, Iterator::next) else { break };
            let counts = job.run().unwrap_or_else(|error| failed(&error));
            locked(tally, |tally| *tally += counts);
        }
    };
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(work);
        }
    });
    tallies.into_iter().map(|tally| tally.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Nothing under these locks panics.
fn locked<T, R>(mutex: &Mutex<T>, act: impl FnOnce(&mut T) -> R) -> R {
    act(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Job {
    fn run(self) -> Result<Tally, Error> {
        let Self { name, command, log } = self;
        let (ended, seconds) = timed(command, &log, LIMIT)?;
        let output = read(&log)?;
        let tally = match (Tally::of_program(&output), ended) {
            (Some(tally), Ended::Well) => tally,
            (Some(tally), _) if tally.failed > 0 => tally,
            // It died, was killed, or never said how many tests it ran.
            (tally, _) => [tally.unwrap_or_default(), Tally::one_failed()].into_iter().sum(),
        };
        let is_said = |line: &&str| {
            ["conformance: ", "faults: ", "openapi: ", "load: "].iter().any(|start| line.starts_with(start))
        };
        let said = output.lines().filter(is_said).map(|line| format!("\n         {line}"));
        conclude(&name, tally, ended, seconds, &log, &said.collect::<String>());
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::process;

    fn job(folder: &std::path::Path, name: &str, script: &str) -> Job {
        let mut command = process::command("sh");
        command.args(["-c", script]).current_dir(folder);
        Job { name: name.to_owned(), command, log: folder.join(name) }
    }

    fn summary(passed: u64) -> String {
        format!("echo 'test result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured'")
    }

    #[test]
    fn each_step_gets_the_counts_of_its_own_programs() {
        let folder = tempfile::tempdir().unwrap();
        let job = |name: &str, script: &str| job(folder.path(), name, script);
        let dies = format!("{}; exit 101", summary(5));

        let tallies = run(
            vec![
                (Tally::default(), vec![job("a", &summary(1)), job("b", &summary(2))]),
                (Tally::one_failed(), Vec::new()),
                (Tally::default(), vec![job("c", &dies), job("d", "true")]),
            ],
            1,
        );

        assert_eq!(tallies[0], Tally { passed: 3, ..Tally::default() });
        assert_eq!(tallies[1], Tally::one_failed());
        assert_eq!(tallies[2], Tally { passed: 5, failed: 2, ..Tally::default() });
    }

    #[test]
    fn two_programs_run_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        let meets = |own: &str, other: &str| {
            let wait = format!(
                "touch {own}; for _ in $(seq 600); do [ -e {other} ] && break; sleep 0.1; done; test -e {other}"
            );
            job(folder.path(), own, &format!("{wait} && {}", summary(1)))
        };

        let steps = [meets("one", "two"), meets("two", "one")].map(|job| (Tally::default(), vec![job]));
        let tallies = run(steps.into(), 2);

        assert_eq!(tallies, [Tally { passed: 1, ..Tally::default() }; 2]);
        assert!(fs::exists(folder.path().join("two")).unwrap());
    }
}
