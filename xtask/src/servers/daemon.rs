//! A server process: started, waited for, watched, stopped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::home::Home;
use crate::error::Error;
use crate::{interrupt, process};

/// Stops the server when this program is killed.
const GUARD: &str = include_str!("guard.sh");
/// Longer than any server needs to get ready or to stop, on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);
/// How often a server is asked whether it is ready.
const POLL: Duration = Duration::from_millis(50);
/// How much of its log is shown when it fails, in lines.
const TAIL: usize = 30;

/// A running server. It stops when this is dropped, and also when this program dies without dropping it.
#[derive(Debug)]
pub(super) struct Daemon {
    name: String,
    child: Child,
    stop: Stop,
    guard: Child,
    log: PathBuf,
    home: Home,
}

/// How a server is asked to stop without waiting for its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Interrupt,
    Terminate,
    Kill,
}

impl Daemon {
    /// Starts a server, with its output in a log of its name.
    pub(super) fn spawn(name: &str, mut command: Command, stop: Stop, logs: &Path, home: Home) -> Result<Self, Error> {
        let log = logs.join(name).with_extension("log");
        let output = process::create(&log)?;
        let errors = output.try_clone().map_err(Error::file(&log))?;
        let program = command.get_program().display().to_string();
        let mut child = command.stdout(output).stderr(errors).spawn().map_err(Error::run(program))?;
        match guard(&child, stop, &home) {
            Ok(guard) => Ok(Self { name: name.to_owned(), child, stop, guard, log, home }),
            Err(error) => {
                process::end(&mut child, stop.signal().0, LIMIT / 4);
                Err(error)
            }
        }
    }

    /// Where it lives.
    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// Waits until `probe` says that it can be used. A probe that fails is tried again.
    pub(super) fn wait(&mut self, mut probe: impl FnMut(&Home) -> Result<bool, Error>) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            let answer = probe(&self.home);
            // Asked afterwards: what answered may be a stranger who took the port of a server that is gone.
            if let Some(died) = self.died() {
                return Err(died);
            }
            match answer {
                Ok(true) => return Ok(()),
                _ if interrupt::happened() => return Err(Error::Interrupted),
                answer if start.elapsed() >= LIMIT => {
                    let last = answer.err().map(|error| format!("; last {error}")).unwrap_or_default();
                    return Err(Error::NotReady { server: self.name.clone(), limit: LIMIT, log: self.tail() + &last });
                }
                _ => thread::sleep(POLL),
            }
        }
    }

    /// How it ended, when it did.
    pub(super) fn died(&mut self) -> Option<Error> {
        let status = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let (server, log) = (self.name.clone(), self.tail());
        let taken = log.to_lowercase().contains("address already in use");
        Some(if taken { Error::PortTaken { server } } else { Error::Died { server, status, log } })
    }

    /// Lets it die, as a crash would.
    #[cfg(test)]
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }

    fn tail(&self) -> String {
        process::tail(&self.log, TAIL)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        process::end(&mut self.child, self.stop.signal().0, LIMIT / 4);
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }
}

impl Stop {
    fn signal(self) -> (Signal, &'static str) {
        match self {
            Self::Interrupt => (Signal::INT, "INT"),
            Self::Terminate => (Signal::TERM, "TERM"),
            Self::Kill => (Signal::KILL, "KILL"),
        }
    }
}

fn guard(server: &Child, stop: Stop, home: &Home) -> Result<Child, Error> {
    let mut shell = process::command("sh");
    shell.args(["-c", GUARD, "kortyx-guard", stop.signal().1]).arg(server.id().to_string()).arg(home.path());
    process::own_group(&mut shell);
    // It keeps nothing open that somebody may wait for.
    shell.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.spawn().map_err(Error::run("sh"))
}
