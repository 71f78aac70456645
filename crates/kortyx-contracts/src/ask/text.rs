//! Free text.

use kortyx_protocol::{InterruptKind, ResumeResponse};

use super::{Ask, Respond, decode, draft::Draft};
use crate::{AnswerError, AskError, Question};

/// Asks for a text that is not empty.
///
/// ```
/// use kortyx_contracts::{Ask, Text};
///
/// let ask = Text::new("What should change?").min_length(3).max_length(2000);
/// # ask.question()?;
/// # Ok::<(), kortyx_contracts::AskError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Text(Draft);

impl Text {
    /// A text with this question.
    pub fn new(question: impl Into<String>) -> Self {
        Self(Draft::new(InterruptKind::Text, Some(question.into())))
    }

    /// A text without a question of its own: what was said before it asks enough.
    pub fn without_question() -> Self {
        Self(Draft::new(InterruptKind::Text, None))
    }

    /// At least this many characters (Unicode scalar values).
    pub fn min_length(self, min: u32) -> Self {
        Self(self.0.set(|ask| ask.min_length = Some(min)))
    }

    /// At most this many characters (Unicode scalar values).
    pub fn max_length(self, max: u32) -> Self {
        Self(self.0.set(|ask| ask.max_length = Some(max)))
    }

    /// Names the schema by which a client chooses how to show it.
    pub fn schema_id(self, id: impl Into<String>) -> Self {
        Self(self.0.set(|ask| ask.schema_id = Some(id.into())))
    }

    /// That schema's version.
    pub fn schema_version(self, version: impl Into<String>) -> Self {
        Self(self.0.set(|ask| ask.schema_version = Some(version.into())))
    }
}

impl Ask for Text {
    type Answer = String;

    fn question(&self) -> Result<Question, AskError> {
        self.0.question()
    }

    fn decode(&self, response: &ResumeResponse) -> Result<String, AnswerError> {
        decode::text(response).map(str::to_owned)
    }
}

impl Respond for Text {
    fn respond(&self, answer: String) -> Result<ResumeResponse, AskError> {
        Ok(ResumeResponse::Text { text: answer })
    }
}
