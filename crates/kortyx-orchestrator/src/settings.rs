//! How an agent behaves.

use std::time::Duration;

use kortyx_protocol::Limits;

/// What becomes of a message without resume metadata while a run of its session waits for a person.
///
/// Such a message is never taken for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WaitingPolicy {
    /// It starts a new run; the open questions stay open.
    #[default]
    StartNew,
    /// The waiting runs are cancelled, their questions with them, and it starts a new run.
    Supersede,
    /// It is refused with `CONFLICT`; nothing changes.
    Refuse,
}

/// What becomes of a fresh chat turn whose client went away.
///
/// A run that holds an accepted answer always goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnDisconnect {
    /// It is cancelled.
    #[default]
    Cancel,
    /// It goes on without a reader.
    GoOn,
}

/// The settings of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// How long a question may be answered when its author does not say.
    pub(crate) question_ttl: Duration,
    /// How long a lease lasts without renewal.
    pub(crate) lease_ttl: Duration,
    /// How long a caller waits for a run that somebody else drives.
    pub(crate) wait: Duration,
    /// How long a failed storage operation keeps a run back before others may take it.
    pub(crate) cool_down: Duration,
    /// How often a driver looks for answers to questions that it published while other work goes on.
    pub(crate) attention: Duration,
    /// How many chunks wait for a slow reader.
    pub(crate) chat_buffer: usize,
    /// Whether storage keeps what runs say.
    pub(crate) keep_output: bool,
    /// How long what a run says may wait until storage holds it.
    pub(crate) output_delay: Duration,
    pub(crate) waiting: WaitingPolicy,
    pub(crate) on_disconnect: OnDisconnect,
    /// Whether it drives runs, or leaves them to others.
    pub(crate) drives: bool,
    pub(crate) default_workflow: Option<String>,
    pub(crate) limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            question_ttl: Duration::from_mins(15),
            lease_ttl: Duration::from_secs(30),
            wait: Duration::from_secs(30),
            cool_down: Duration::from_secs(1),
            attention: Duration::from_secs(1),
            chat_buffer: 64,
            keep_output: true,
            output_delay: Duration::from_millis(100),
            waiting: WaitingPolicy::default(),
            on_disconnect: OnDisconnect::default(),
            drives: true,
            default_workflow: None,
            limits: Limits::default(),
        }
    }
}
