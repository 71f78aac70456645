//! Runs lanes, step by step, and says what happens.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::Tally;
use super::jobs::{self, Job, Tests};
use super::lane::{APART, Chosen, Env, Lane, Step};
use super::programs::Programs;
use crate::console::{describe, say};
use crate::error::Error;
use crate::features::{MACROS, feature_sets};
use crate::interrupt;
use crate::layers;
use crate::process::{self, Ended};
use crate::servers::{self, Server, Servers};
use crate::workspace::{Member, Workspace};

/// Longer than any cargo command takes, building from nothing on two cores.
const CARGO_LIMIT: Duration = Duration::from_mins(30);
/// How much of a failed command's output is shown.
const TAIL: usize = 80;

/// Runs lanes of one workspace.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    workspace: &'a Workspace,
    /// Every package whose tests some lane of this run needs.
    tested: Vec<&'a Member>,
    /// Built when the first lane needs them.
    programs: Option<Programs>,
    servers: Servers,
    /// What installs programs and servers, beside the lanes that need none.
    installing: Option<JoinHandle<()>>,
    /// The URLs of the servers of the current lane, each with its variable.
    urls: Vec<(&'static str, String)>,
    /// Where output goes.
    logs: PathBuf,
}

impl<'a> Runner<'a> {
    /// Prepares to run these lanes and forgets the output of an earlier run.
    pub(super) fn new(workspace: &'a Workspace, lanes: &[&Lane]) -> Result<Self, Error> {
        let mut tested = Vec::new();
        for lane in lanes {
            tested.extend(lane.tested(workspace)?);
        }
        let logs = workspace.target.join("xtask").join("test-matrix");
        if logs.exists() {
            fs::remove_dir_all(&logs).map_err(Error::file(&logs))?;
        }
        let servers = Servers::new(logs.join("servers"));
        Ok(Self { workspace, tested, programs: None, servers, installing: None, urls: Vec::new(), logs })
    }

    /// Begins to install the programs and servers of these lanes that the system lacks. Lanes without tests run meanwhile. When it
    /// fails, the lanes that need them say so once more.
    pub(super) fn provision(&mut self, lanes: &[&Lane]) {
        let needs: Vec<_> = lanes.iter().flat_map(|lane| lane.needs).copied().collect();
        let programs: Vec<_> = lanes.iter().flat_map(|lane| lane.programs).copied().collect();
        let logs = self.logs.join("provision");
        self.installing = Some(thread::spawn(move || {
            if let Err(error) = servers::provision(&needs, &programs, &logs) {
                say(format_args!("   FAIL  {}", describe(&error)));
            }
        }));
    }

    /// Waits until what the system lacked is installed, or cannot be.
    pub(super) fn await_provision(&mut self) {
        if self.installing.take().is_some_and(|installing| installing.join().is_err()) {
            say("   FAIL  what installs programs and servers panicked");
        }
    }

    /// Stops the servers that are not among these.
    pub(super) fn keep(&mut self, needs: &[Server]) {
        self.servers.keep(needs);
    }

    /// Runs one lane. What keeps a step from running is a failure of the step; the others run.
    ///
    /// Without its programs and servers a lane fails, and so it does when one of the servers ends before it.
    pub(super) fn lane(&mut self, lane: &Lane) -> Tally {
        say(format_args!("\n== {}: {}", lane.name, lane.about));
        if lane.has_tests() {
            self.await_provision();
        }
        if let Err(error) = servers::installed(lane.programs) {
            return failed(&error);
        }
        match self.servers.urls(lane.needs) {
            Ok(urls) => self.urls = urls,
            Err(error) => return failed(&error),
        }
        for server in lane.needs {
            say(format_args!("   ...   {} runs", server.name()));
        }
        let mut sum = Tally::default();
        let mut tests = Vec::new();
        for step in lane.steps {
            if interrupt::happened() {
                break;
            }
            sum += self.step(lane, step, &mut tests).unwrap_or_else(|error| failed(&error));
        }
        for tally in jobs::run(tests, lane.at_once()) {
            sum += tally;
            if !tally.ran() && !interrupt::happened() {
                say("   FAIL  no test ran");
                sum += Tally::one_failed();
            }
        }
        sum += self.servers.died().iter().map(failed).sum();
        sum
    }

    /// Makes a check. The programs of a step with tests are left to run beside those of the lane's other steps.
    fn step(&mut self, lane: &Lane, step: &Step, tests: &mut Vec<Tests>) -> Result<Tally, Error> {
        match step {
            Step::Check { name, args, env } => self.check(lane, name, args, env),
            Step::Layers => self.layers(),
            Step::FeatureSets => self.feature_sets(lane),
            Step::Doctests => self.doctests(lane),
            Step::Tests(chosen) => {
                tests.push(self.tests(lane, chosen)?);
                Ok(Tally::default())
            }
        }
    }

    fn check<A: AsRef<str>>(&self, lane: &Lane, name: &str, args: &[A], env: Env) -> Result<Tally, Error> {
        let mut cargo = process::cargo();
        cargo.args(args.iter().map(AsRef::as_ref)).envs(env.iter().copied()).current_dir(&self.workspace.root);
        let log = self.log(lane, name);
        let (ended, seconds) = timed(cargo, &log, CARGO_LIMIT)?;
        if ended == Ended::Well {
            say(format_args!("   ok    {name} ({seconds:.1} s)"));
        } else {
            say(format_args!("   FAIL  {name} ({seconds:.1} s{})", killed(ended)));
            say(tail_of(&log));
        }
        Ok(Tally::of(ended == Ended::Well))
    }

    fn layers(&self) -> Result<Tally, Error> {
        let verdicts = layers::verdicts(self.workspace)?;
        for verdict in &verdicts {
            say(format_args!("   {}  {}", if verdict.faults.is_empty() { "ok  " } else { "FAIL" }, verdict.rule));
            verdict.faults.iter().for_each(|fault| say(format_args!("     | {fault}")));
        }
        Ok(verdicts.iter().map(|verdict| Tally::of(verdict.faults.is_empty())).sum())
    }

    /// Clippy does what a check does and also finds code that a feature set leaves unused. All sets build procedural macros alike.
    fn feature_sets(&self, lane: &Lane) -> Result<Tally, Error> {
        let mut sum = Tally::default();
        for set in self.workspace.members.iter().filter(|member| member.published).flat_map(feature_sets) {
            let mut args = vec!["clippy", "--no-deps", "--package", MACROS, "--package", &set.package];
            args.extend(set.args.iter().map(String::as_str));
            args.extend(["--", "--deny", "warnings"]);
            sum += self.check(lane, &format!("{} with {}", set.package, set.label), &args, &[])?;
        }
        Ok(sum)
    }

    fn doctests(&self, lane: &Lane) -> Result<Tally, Error> {
        let mut cargo = process::cargo();
        cargo.args(["test", "--workspace", "--doc", "--no-fail-fast"]).current_dir(&self.workspace.root);
        let log = self.log(lane, "examples");
        let (ended, seconds) = timed(cargo, &log, CARGO_LIMIT)?;
        let mut tally = Tally::of_programs(&read(&log)?);
        if ended != Ended::Well && tally.failed == 0 {
            tally += Tally::one_failed();
        }
        conclude("examples in the documentation", tally, ended, seconds, &log, "");
        Ok(tally)
    }

    /// The programs with these tests, and a failure when one of them could not be built.
    fn tests(&mut self, lane: &Lane, chosen: &Chosen) -> Result<Tests, Error> {
        let programs = match self.programs.take() {
            Some(programs) => programs,
            None => self.build()?,
        };
        let jobs = self.jobs(&programs, lane, chosen);
        self.programs = Some(programs);
        jobs
    }

    fn jobs(&mut self, programs: &Programs, lane: &Lane, chosen: &Chosen) -> Result<Tests, Error> {
        let members = chosen.packages.resolve(self.workspace)?;
        let is_meant = |one: &str| chosen.target.map_or(!APART.contains(&one), |target| target == one);
        let missing = members.iter().flat_map(|member| programs.missing(member));
        let missing: Vec<_> =
            missing.filter(|(_, target)| is_meant(target)).map(|(name, target)| format!("{name} {target}")).collect();
        let mut failures = Tally::default();
        if !missing.is_empty() {
            say(format_args!("   FAIL  did not compile: {}", missing.join(", ")));
            failures += Tally::one_failed();
        }
        let mut jobs = Vec::new();
        for member in members {
            for program in programs.of(member).into_iter().filter(|program| is_meant(&program.target)) {
                let only = chosen.only.map(|only| format!(" {only}")).unwrap_or_default();
                let name = format!("{} {}{only}{}", member.name, program.target, variant(chosen.env));
                let mut command = programs.command(program, member);
                command.args(chosen.only);
                for server in Server::ALL {
                    command.env_remove(server.variable());
                }
                command.envs(self.servers.with_new_database(&self.urls)?).envs(chosen.env.iter().copied());
                let log = self.log(lane, &name);
                jobs.push(Job { name, command, log });
            }
        }
        Ok((failures, jobs))
    }

    fn build(&self) -> Result<Programs, Error> {
        let log = self.logs.join("build.log");
        let start = Instant::now();
        let programs = Programs::build(self.workspace, &self.tested, &log, CARGO_LIMIT)?;
        let seconds = start.elapsed().as_secs_f64();
        if programs.ended == Ended::Well {
            say(format_args!("   ...   built the test programs of all lanes ({seconds:.1} s)"));
        } else {
            say(format_args!("   ...   some test programs cannot be built ({seconds:.1} s{})", killed(programs.ended)));
            say(tail_of(&log));
        }
        Ok(programs)
    }

    fn log(&self, lane: &Lane, name: &str) -> PathBuf {
        let name = name.replace(|character: char| !character.is_ascii_alphanumeric(), "-");
        self.logs.join(lane.name).join(name).with_extension("log")
    }
}

pub(super) fn failed(error: &Error) -> Tally {
    say(format_args!("   FAIL  {}", describe(error)));
    Tally::one_failed()
}

/// What tells a run of tests from others in its lane, whose name tells the store.
fn variant(env: Env) -> String {
    let settings = env.iter().filter(|(name, _)| *name != "KORTYX_TEST_STORE");
    settings.fold(String::new(), |variant, (name, value)| format!("{variant} {name}={value}"))
}

/// Says how tests ended, and what they have to say beside that, in one piece: others may end at the same time.
pub(super) fn conclude(name: &str, tally: Tally, ended: Ended, seconds: f64, log: &Path, said: &str) {
    let verdict = if tally.failed == 0 { "ok  " } else { "FAIL" };
    let tail = if tally.failed == 0 { String::new() } else { format!("\n{}", tail_of(log)) };
    say(format_args!("   {verdict}  {name}: {tally} ({seconds:.1} s{}){tail}{said}", killed(ended)));
}

pub(super) fn timed(command: Command, log: &Path, limit: Duration) -> Result<(Ended, f64), Error> {
    let start = Instant::now();
    let ended = process::logged(command, log, None, limit)?;
    Ok((ended, start.elapsed().as_secs_f64()))
}

fn killed(ended: Ended) -> &'static str {
    if ended == Ended::TimedOut { ", killed at its limit" } else { "" }
}

fn tail_of(log: &Path) -> String {
    let tail = process::tail(log, TAIL);
    format!("{}\n     | all of it: {}", tail.trim_start_matches('\n'), log.display())
}

/// Tests may print anything, so what is not UTF-8 is replaced.
pub(super) fn read(log: &Path) -> Result<String, Error> {
    let bytes = fs::read(log).map_err(Error::file(log))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_the_same_tests_in_one_lane_are_told_apart_by_what_they_are_run_with() {
        assert_eq!(variant(&[("KORTYX_TEST_STORE", "redis")]), "");
        assert_eq!(variant(&[("KORTYX_TEST_STORE", "redis"), ("KORTYX_TEST_CODEC", "1")]), " KORTYX_TEST_CODEC=1");
    }
}
