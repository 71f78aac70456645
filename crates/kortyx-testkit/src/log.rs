//! What happened over all processes, in order, in a file that outlives them.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use kortyx_protocol::{RequestId, ResumeResponse, ResumeToken, RunId, Timestamp};
use kortyx_runtime::{NodeContext, NodeError};
use kortyx_store::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};

/// A file to which every process appends. A line is written at once, so that a kill cannot tear it.
#[derive(Debug, Clone)]
pub struct Log {
    path: PathBuf,
    /// Keys of effects of this process that are not recorded yet.
    unrecorded: Arc<Mutex<BTreeSet<String>>>,
}

/// Something that happened in a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    /// The process.
    pub pid: u32,
    /// When, by the machine's clock.
    pub at: Timestamp,
    /// What.
    pub event: Event,
}

/// What happens in a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A run is about to become durable.
    Began {
        /// The run.
        run_id: RunId,
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
    /// Something that the subject wants to know when the run has ended.
    Noted {
        /// The run.
        run_id: RunId,
        /// What.
        text: String,
    },
    /// The result of the step that had an effect became durable.
    Recorded {
        /// The effect's key.
        key: String,
    },
    /// A driver made what it had done durable.
    Stored {
        /// The run.
        run_id: RunId,
    },
    /// A call of the store, or of the agent, failed.
    Failed {
        /// The call.
        call: String,
        /// Why.
        reason: String,
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
        Self { path: path.as_ref().to_owned(), unrecorded: Arc::default() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that tells a process that stands still to go on.
    pub(crate) fn signal(&self) -> PathBuf {
        self.path.with_extension("go-on")
    }

    /// Changes the outside world in a step with this id, once for each key: that is one line in the log. Call it from a node
    /// where a real workflow would charge a card or send a mail. `name` tells uses of an id apart.
    pub async fn effect(&self, ctx: &NodeContext, id: &str, name: &str) -> Result<(), NodeError> {
        let act = || {
            let key = ctx.idempotency_key(id);
            let done = self.effect_under(ctx.run_id(), name, &key).map(|()| key);
            async { done }
        };
        // The key is the step's result, so that it can be found in what is recorded.
        ctx.step(id, act).await.map(|_: String| ())
    }

    /// Changes the outside world once for this key, from what is a step already, such as a tool or a pass of a model. The key must be
    /// in what the step returns, so that it can be found in what is recorded.
    pub fn effect_under(&self, run_id: &RunId, name: &str, key: &str) -> io::Result<()> {
        self.append(Event::Effect { run_id: run_id.clone(), name: name.to_owned(), key: key.to_owned() })?;
        self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned());
        Ok(())
    }

    /// Keeps a text for [`Subject::verify`](crate::Subject::verify).
    pub fn note(&self, run_id: &RunId, text: impl Into<String>) -> io::Result<()> {
        self.append(Event::Noted { run_id: run_id.clone(), text: text.into() })
    }

    /// The effects of this process whose keys are in these journal entries: once those are stored, their steps are recorded.
    pub(crate) fn recorded_in(&self, entries: &[Bytes]) -> Vec<Event> {
        let holds = |key: &str| entries.iter().any(|entry| contains(entry, key.as_bytes()));
        let mut unrecorded = self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner);
        let found: Vec<String> = unrecorded.iter().filter(|key| holds(key)).cloned().collect();
        unrecorded.retain(|key| !found.contains(key));
        found.into_iter().map(|key| Event::Recorded { key }).collect()
    }

    /// Appends what happened in this process.
    pub fn append(&self, event: Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line { pid: std::process::id(), at: SystemClock.now(), event })?;
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

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
