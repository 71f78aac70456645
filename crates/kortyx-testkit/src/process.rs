//! Processes of a harness, seen from outside.

use std::{
    fs::{self, OpenOptions},
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{Error, Log, error::Doing as _};

/// What a process gets from a kill.
const SIGKILL: i32 = 9;

/// A process that was started. It is killed when this is dropped.
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<Lines<BufReader<ChildStdout>>>,
    errors: PathBuf,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, well.
    Well,
    /// By `SIGKILL`.
    Killed,
}

impl Process {
    pub(crate) fn start(mut command: Command, errors: PathBuf) -> Result<Self, Error> {
        let stderr = OpenOptions::new().append(true).create(true).open(&errors).doing("opening a file for errors")?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).kill_on_drop(true);
        let mut child = command.spawn().doing("starting a process")?;
        let stdout = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        Ok(Self { stdin: child.stdin.take(), stdout, child, errors })
    }

    /// Writes a line to it. It may be dead.
    pub async fn say(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            drop(stdin.write_all(format!("{line}\n").as_bytes()).await);
        }
    }

    /// The next line that it writes; `None` once it has ended.
    pub async fn hear(&mut self) -> Result<Option<String>, Error> {
        match &mut self.stdout {
            Some(stdout) => stdout.next_line().await.doing("reading what a process says"),
            None => Ok(None),
        }
    }

    /// Ends it as it ends by itself.
    pub async fn end(&mut self) -> Result<Ended, Error> {
        self.stdin = None;
        self.ended().await
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> Result<Ended, Error> {
        let status = self.child.wait().await.doing("waiting for a process")?;
        self.judged(status)
    }

    /// Kills it, wherever it is. That it has ended before is an error.
    pub async fn kill(&mut self) -> Result<(), Error> {
        if let Some(status) = self.child.try_wait().doing("looking at a process")? {
            return Err(self.error(status));
        }
        self.child.kill().await.doing("killing a process")
    }

    /// Sends it `SIGSTOP`: it stands still until it [goes on](Self::go_on).
    pub fn stop(&self) -> Result<(), Error> {
        self.signal(Signal::STOP)
    }

    /// Has it go on after it stopped itself, or was stopped.
    pub fn go_on(&self, log: &Log) -> Result<(), Error> {
        fs::write(log.signal(), "").doing("telling a process to go on")?;
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), Error> {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pid = pid.ok_or("it has ended").doing("sending a signal to a process")?;
        kill_process(pid, signal).doing("sending a signal to a process")
    }

    fn judged(&self, status: ExitStatus) -> Result<Ended, Error> {
        match status {
            status if status.success() => Ok(Ended::Well),
            status if status.signal() == Some(SIGKILL) => Ok(Ended::Killed),
            status => Err(self.error(status)),
        }
    }

    fn error(&self, status: ExitStatus) -> Error {
        Error::Process { status: status.to_string(), errors: fs::read_to_string(&self.errors).unwrap_or_default() }
    }
}
