//! Child processes: a clean environment, output in a log, a time limit.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::Error;
use crate::interrupt;

/// How often a running child is looked at.
const POLL: Duration = Duration::from_millis(20);
/// How long a child has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With exit code 0.
    Well,
    /// With another exit code, or by a signal.
    Badly,
    /// It was still running at its limit and was stopped.
    TimedOut,
}

/// The cargo that runs this program, with the environment that a shell would give it.
pub(crate) fn cargo() -> Command {
    command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A command without what `cargo run` set for this program and without settings of the person who runs it.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(leaks) {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

fn leaks(name: &str) -> bool {
    let of_this_package = name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    let of_the_library = name.starts_with("KORTYX_") && !name.starts_with("KORTYX_TEST_");
    of_this_package || of_the_library || name == "REDIS_URL"
}

/// Runs a command to its end and returns what it printed to standard output.
pub(crate) fn output(mut command: Command) -> Result<String, Error> {
    let output = command.output().map_err(Error::run(command.get_program().to_string_lossy()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Command { command: line(&command), stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
}

/// Runs a command with standard error, and standard output unless `stdout` takes it, in the file `log`.
///
/// Output goes to files, not pipes, so that a grandchild that outlives a killed child cannot keep us waiting.
pub(crate) fn logged(mut command: Command, log: &Path, stdout: Option<&Path>, limit: Duration) -> Result<Ended, Error> {
    let stderr = create(log)?;
    let stdout = match stdout {
        Some(path) => create(path)?,
        None => stderr.try_clone().map_err(Error::file(log))?,
    };
    let program = command.get_program().display().to_string();
    let child = command.stdout(stdout).stderr(stderr).spawn().map_err(Error::run(&program))?;
    match wait(child, &program, Some(limit))? {
        Some(status) if status.success() => Ok(Ended::Well),
        Some(_) => Ok(Ended::Badly),
        None => Ok(Ended::TimedOut),
    }
}

/// Runs a command to its end, however long it takes.
pub(crate) fn status(mut command: Command) -> Result<ExitStatus, Error> {
    let program = command.get_program().display().to_string();
    let child = command.spawn().map_err(Error::run(&program))?;
    wait(child, &program, None)?.ok_or(Error::Interrupted)
}

/// Keeps a command out of reach of the terminal's Ctrl-C.
pub(crate) fn own_group(command: &mut Command) {
    command.process_group(0);
}

/// Waits for a child's end. It is stopped at its limit, and when this program is asked to end.
fn wait(mut child: Child, program: &str, limit: Option<Duration>) -> Result<Option<ExitStatus>, Error> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(Error::run(program))? {
            return Ok(Some(status));
        }
        let interrupted = interrupt::happened();
        if interrupted || limit.is_some_and(|limit| start.elapsed() >= limit) {
            end(&mut child, Signal::TERM, GRACE);
            return if interrupted { Err(Error::Interrupted) } else { Ok(None) };
        }
        thread::sleep(POLL);
    }
}

/// Asks a child to end with a signal, kills it when it has not after a while, and waits for its end.
pub(crate) fn end(child: &mut Child, signal: Signal, grace: Duration) {
    let start = Instant::now();
    // The id is the child's for as long as nobody has waited for its end.
    if let (Ok(None), Some(id)) = (child.try_wait(), i32::try_from(child.id()).ok().and_then(Pid::from_raw)) {
        let _ = kill_process(id, signal);
    }
    while let Ok(None) = child.try_wait() {
        if start.elapsed() >= grace {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        thread::sleep(POLL);
    }
}

/// The last lines of a log as they stand under a failure, or nothing. Backtraces are left out: they would push out what went wrong.
pub(crate) fn tail(log: &Path, lines: usize) -> String {
    // Programs may print anything, so what is not UTF-8 is replaced.
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<_> = text.lines().filter(|line| !is_frame(line)).collect();
    let last = all.iter().skip(all.len().saturating_sub(lines));
    last.fold(String::new(), |tail, line| tail + "\n     | " + line)
}

/// Whether a line is one of a backtrace: `  12: function` or `      at file:line:column`.
fn is_frame(line: &str) -> bool {
    let words = line.trim_start();
    let indent = line.len() - words.len();
    let is_numbered = words.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    (indent >= 2 && is_numbered) || (indent >= 10 && words.starts_with("at "))
}

/// Creates a file and the folders that it lies in.
pub(crate) fn create(path: &Path) -> Result<File, Error> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::file(folder))?;
    }
    File::create(path).map_err(Error::file(path))
}

/// A command as people would type it.
pub(crate) fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn settings_of_the_package_and_the_library_do_not_reach_children() {
        assert!(leaks("CARGO_PKG_NAME"));
        assert!(leaks("CARGO_MANIFEST_DIR"));
        assert!(leaks("KORTYX_SQLITE_PATH"));
        assert!(leaks("REDIS_URL"));
    }

    #[test]
    fn settings_of_cargo_and_of_tests_reach_children() {
        assert!(!leaks("CARGO_TARGET_DIR"));
        assert!(!leaks("CARGO_TERM_COLOR"));
        assert!(!leaks("KORTYX_TEST_STORE"));
    }

    #[test]
    fn a_child_past_its_limit_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let mut sleeper = command("sleep");
        sleeper.arg("60");

        let ended = logged(sleeper, &folder.path().join("log"), None, Duration::ZERO).unwrap();

        assert_eq!(ended, Ended::TimedOut);
    }

    #[test]
    fn a_child_that_does_not_end_when_asked_is_killed() {
        let mut stubborn = command("sh");
        stubborn.args(["-c", "trap '' TERM; echo; while :; do sleep 1; done"]);
        let mut child = stubborn.stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();

        end(&mut child, Signal::TERM, Duration::from_millis(100));

        assert_eq!(child.try_wait().unwrap().unwrap().signal(), Some(9));
    }

    #[test]
    fn both_outputs_of_a_child_reach_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("deep").join("log");
        let mut shell = command("sh");
        shell.args(["-c", "echo one; echo two >&2; exit 3"]);

        let ended = logged(shell, &log, None, Duration::from_mins(1)).unwrap();

        assert_eq!(ended, Ended::Badly);
        assert_eq!(fs::read_to_string(log).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn the_tail_of_a_log_shows_what_went_wrong_and_not_how_it_was_reached() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let frames = "   4: tests::it\n             at ./tests/it.rs:45:69\n  12: core::ops::function\n";
        fs::write(&log, format!("thread 'it' panicked at it.rs:1:1:\nnot 3: 4\nstack backtrace:\n{frames}at last\n"))
            .unwrap();

        let tail = tail(&log, 4);

        let lines = ["thread 'it' panicked at it.rs:1:1:", "not 3: 4", "stack backtrace:", "at last"];
        assert_eq!(tail, lines.map(|line| format!("\n     | {line}")).concat());
    }

    #[test]
    fn a_failed_command_is_named_with_what_it_printed() {
        let mut shell = command("sh");
        shell.args(["-c", "echo no such thing >&2; exit 1"]);

        let error = output(shell).unwrap_err();

        assert_eq!(error.to_string(), "`sh -c echo no such thing >&2; exit 1` failed: no such thing");
    }
}
