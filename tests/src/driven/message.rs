//! What a test tells the driver program, and what the program says.

use kortyx::protocol::{ResumeHandle, Timestamp};
use serde::{Deserialize, Serialize};

/// Answers that are given at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Race {
    /// The answers, each with its question.
    pub answers: Vec<(ResumeHandle, String)>,
    /// When to start, in milliseconds of the machine's clock, so that processes start together.
    pub at: Timestamp,
}

/// What became of one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Outcome {
    /// It was accepted, now or before.
    Accepted {
        /// The answer.
        answer: String,
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
        answer: String,
        /// Why.
        code: String,
    },
}
