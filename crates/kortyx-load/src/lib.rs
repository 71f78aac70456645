#![doc = include_str!("../README.md")]

use std::{io, path::PathBuf, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// How often a chat of the workflow `talk` asks.
pub const ROUNDS: usize = 3;
/// Pieces of text before each of its questions.
pub const PIECES: usize = 20;
/// Pieces of text that the workflow `megabytes` says, each of [`PIECE_BYTES`].
pub const MANY: usize = 2_048;
/// The size of such a piece.
pub const PIECE_BYTES: usize = 8 * 1024;

/// What a server is started with, as JSON in its only argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// The file of its SQLite store; without one it keeps runs in memory.
    pub file: Option<PathBuf>,
    /// After how much silence a stream says that it lives.
    pub keep_alive: Duration,
    /// How long the headers of a request, and its body, may take to arrive.
    pub read: Duration,
    /// How long what has ended is kept.
    pub retention: Duration,
}

/// What a server prints, a line each, after the line with its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// How many effects happened.
    pub effects: u64,
    /// How many runs execute right now.
    pub driven: usize,
}

/// Asks a server for a [`Report`].
pub const REPORT: &str = "report";
/// Lets every run of the workflow `hold` go on.
pub const RELEASE: &str = "release";

/// Lets this process open as many files and connections as it may. How many that is.
pub fn raise_descriptors() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}
