//! The rules that the engine keeps for a tool.

use std::time::Duration;

/// How long a tool may take when its policy does not say: a minute.
const TIMEOUT: Duration = Duration::from_mins(1);

/// How long its result may be, as JSON, when its policy does not say: 256 KiB.
const MAX_RESULT_BYTES: usize = 256 * 1024;

/// How many questions a call may ask when its policy does not say.
const MAX_QUESTIONS: usize = 8;

/// Whether a person has to approve a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// No.
    #[default]
    Never,
    /// Yes.
    Always,
    /// The tool says so for each call, once.
    Decide,
}

/// What becomes of a tool's error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnError {
    /// The model reads it and goes on.
    #[default]
    TellModel,
    /// The call to reason fails. Nothing is recorded: when the node runs again, so does the tool.
    EndRun,
}

/// The rules that the engine keeps for a tool.
///
/// ```
/// use std::time::Duration;
///
/// use kortyx_reason::{Approval, ToolPolicy};
///
/// let policy = ToolPolicy::new().approval(Approval::Always).timeout(Duration::from_secs(5)).redact("/card/number");
/// # let _ = policy;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct ToolPolicy {
    pub(crate) approval: Approval,
    pub(crate) approval_expires_in: Option<Duration>,
    pub(crate) timeout: Duration,
    pub(crate) max_result_bytes: usize,
    pub(crate) max_questions: usize,
    pub(crate) on_error: OnError,
    pub(crate) redact: Vec<String>,
}

impl Default for ToolPolicy {
    /// No approval, a minute, 256 KiB, 8 questions; errors go to the model.
    fn default() -> Self {
        Self {
            approval: Approval::default(),
            approval_expires_in: None,
            timeout: TIMEOUT,
            max_result_bytes: MAX_RESULT_BYTES,
            max_questions: MAX_QUESTIONS,
            on_error: OnError::default(),
            redact: Vec::new(),
        }
    }
}

impl ToolPolicy {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a person has to approve a call.
    pub fn approval(mut self, approval: Approval) -> Self {
        self.approval = approval;
        self
    }

    /// How long an approval may be given, from when it is asked. Where nothing is said, it is the application's time for questions.
    pub fn approval_expires_in(mut self, time: Duration) -> Self {
        self.approval_expires_in = Some(time);
        self
    }

    /// How long a call may take. Then it is dropped, which counts as an error of the tool. The time of people does not count: a
    /// call that has asked and is made again has its whole time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long a result may be, as JSON. A longer one is not given to the model, which counts as an error of the tool.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_result_bytes = bytes;
        self
    }

    /// How many questions a call may ask in all; see [`ToolContext::ask`](super::ToolContext::ask). One more counts as an error of the
    /// tool.
    pub fn max_questions(mut self, questions: usize) -> Self {
        self.max_questions = questions;
        self
    }

    /// What becomes of an error.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Hides what is at this JSON pointer, in arguments and results, from clients and from the person who approves.
    ///
    /// The tool, the model and the code that reasons see it.
    pub fn redact(mut self, pointer: impl Into<String>) -> Self {
        self.redact.push(pointer.into());
        self
    }
}
