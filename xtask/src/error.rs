//! What can go wrong in the automation itself.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A failure of the automation, as opposed to a failed check or test.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// `cargo metadata` did not describe the workspace.
    #[error("cannot read the workspace")]
    Metadata(#[source] cargo_metadata::Error),
    /// A program could not be started or waited for.
    #[error("cannot run `{program}`")]
    Run {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A command whose output is needed ended with a failure.
    #[error("`{command}` failed: {stderr}")]
    Command {
        /// The command line.
        command: String,
        /// What it printed to standard error.
        stderr: String,
    },
    /// A log could not be written or read.
    #[error("cannot access `{}`", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// `--lane` names no lane.
    #[error("unknown lane `{name}`, the lanes are: {known}")]
    UnknownLane {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The table of lanes names a package that the workspace does not have.
    #[error("the lane table names the package `{0}`, which is no member of the workspace")]
    UnknownPackage(String),
    /// Somebody asked this program to end.
    #[error("interrupted")]
    Interrupted,
    /// Signals cannot be listened to.
    #[error("cannot listen to signals")]
    Signals(#[source] io::Error),
    /// A server is neither installed nor given.
    #[error("{software} is not installed: {advice}")]
    NotInstalled {
        /// What is missing.
        software: String,
        /// What to do.
        advice: String,
    },
    /// A server refuses to run as root, and there is nobody else.
    #[error("Postgres does not run as root, and there is no account `{0}`")]
    NoAccount(String),
    /// The system gave no port.
    #[error("no free port")]
    Port(#[source] io::Error),
    /// Somebody took the port of a server before it did.
    #[error("another program took the port of {server}")]
    PortTaken {
        /// The server.
        server: String,
    },
    /// A server ended by itself.
    #[error("{server} ended ({status}); the end of its log:{log}")]
    Died {
        /// The server.
        server: String,
        /// How it ended.
        status: String,
        /// Its last lines.
        log: String,
    },
    /// A server runs and cannot be used.
    #[error("{server} was not ready after {limit:?}; the end of its log:{log}")]
    NotReady {
        /// The server.
        server: String,
        /// How long it had.
        limit: Duration,
        /// Its last lines.
        log: String,
    },
    /// The system gave no random bytes.
    #[error("no random bytes")]
    Random(#[source] getrandom::Error),
}

impl Error {
    /// An error of one file or folder.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// An error of starting or waiting for a program.
    pub(crate) fn run(program: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let program = program.into();
        move |source| Self::Run { program, source }
    }
}
