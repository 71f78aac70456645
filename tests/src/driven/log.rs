//! What happened over all processes, in order, in a file that outlives them.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use kortyx::protocol::{RequestId, ResumeResponse, ResumeToken, RunId};
use serde::{Deserialize, Serialize};

/// A file to which every process appends. A line is written at once, so that a kill cannot tear it.
#[derive(Debug, Clone)]
pub struct Log {
    path: PathBuf,
}

/// Something that happened in a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    /// The process.
    pub pid: u32,
    /// What.
    pub event: Event,
}

/// What happens in a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A run is about to become durable.
    Began {
        /// The run.
        run_id: RunId,
        /// Which of the test's runs it is.
        number: i64,
    },
    /// A question became durable.
    Published {
        /// The question.
        request_id: RequestId,
    },
    /// Somebody outside learned of a question.
    Announced {
        /// The question.
        request_id: RequestId,
        /// Its secret, when they learned that too.
        token: Option<ResumeToken>,
    },
    /// Somebody outside learned that an answer was accepted.
    Accepted {
        /// The question.
        request_id: RequestId,
        /// The answer's place among those of its run.
        seq: u64,
        /// The answer.
        answer: ResumeResponse,
    },
    /// The outside world was changed.
    Effect {
        /// The run.
        run_id: RunId,
        /// What was done.
        name: String,
        /// The world does nothing when it has seen this key before.
        key: String,
    },
    /// A driver made what it had done durable.
    Stored {
        /// The run.
        run_id: RunId,
    },
    /// The kill switch fired: the process dies here, or stands still.
    Fired {
        /// At which durable point of the process.
        point: u64,
        /// The transition.
        transition: String,
    },
    /// The process ended by itself.
    Ended {
        /// How many durable points it passed.
        points: u64,
    },
}

impl Log {
    /// The log in this file, which the first line creates.
    pub fn at(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that tells a process that stands still to go on.
    pub fn signal(&self) -> PathBuf {
        self.path.with_extension("go-on")
    }

    /// Appends what happened in this process.
    pub fn append(&self, event: Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line { pid: std::process::id(), event })?;
        line.push(b'\n');
        OpenOptions::new().append(true).create(true).open(&self.path)?.write_all(&line)
    }

    /// All that happened so far. A line that is being written is not there yet.
    pub fn read(&self) -> io::Result<Vec<Line>> {
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let (written, _) = text.rsplit_once('\n').unwrap_or_default();
        written.lines().map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
    }
}
