//! What a harness tells its processes, and what they say.

use std::{path::PathBuf, time::Duration};

use kortyx_protocol::{ResumeHandle, ResumeResponse, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Kill;

/// The variable that makes a process a harness's.
pub(crate) const VARIABLE: &str = "KORTYX_TESTKIT_MEMBER";
/// The line that a member writes once it waits for lines.
pub(crate) const READY: &str = "ready";
/// The line that has a member of a storm begin no more runs.
pub(crate) const DRAIN: &str = "drain";

/// What a process of a harness is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) place: String,
    pub(crate) log: PathBuf,
    pub(crate) ahead: Duration,
    pub(crate) lease: Duration,
    pub(crate) kill: Kill,
    pub(crate) task: Task,
}

/// What a process of a harness does.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Task {
    /// Begins a run unless the log names one that is stored, and goes on until it has ended.
    Finish {
        /// Who answers its questions.
        answering: Answering,
        /// It also recovers runs of others.
        recovers: bool,
    },
    /// Gives the answers that it reads, each line of them at once, and says what became of them.
    Race,
    /// Begins, answers and recovers runs beside others, until its input ends.
    Storm {
        /// How many runs it begins or answers at once.
        at_once: u32,
        /// How long it rests after each, on average.
        rest: Duration,
        /// How many questions of all processes may be open before it begins no more.
        open: u32,
    },
    /// Recovers runs, until its input ends.
    Serve,
}

/// Who answers the questions of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answering {
    /// The process that drives it, the oldest first, and the next when the run waits again.
    OneByOne,
    /// The process that drives it, all that are open at once.
    Together,
    /// Another process.
    Elsewhere,
}

/// Answers that are given at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Volley {
    /// The answers, each with its question.
    pub(crate) answers: Vec<(ResumeHandle, ResumeResponse)>,
    /// When to start, in milliseconds of the machine's clock, so that processes start together.
    pub(crate) at: Timestamp,
}

/// What became of one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Outcome {
    /// It was accepted, now or before.
    Accepted {
        /// The answer.
        answer: ResumeResponse,
        /// It had been accepted before.
        is_repeat: bool,
        /// Its place among the run's answers.
        seq: u64,
        /// When it was accepted.
        at: Timestamp,
    },
    /// It was not, or nobody knows.
    Refused {
        /// The answer.
        answer: ResumeResponse,
        /// Why.
        code: String,
    },
}
