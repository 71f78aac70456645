//! Choices whose options the client finds.

use kortyx_protocol::{InterruptKind, ResumeResponse};

use super::{Ask, Respond, decode, draft::Draft};
use crate::{AnswerError, AskError, Question};

/// Asks for one of the things that a schema names: a job, a file, a customer. The client lists them; the answer is an id.
///
/// ```
/// use kortyx_contracts::{Ask, Picker};
///
/// let ask = Picker::new("acme.jobs").version("2").with_question("Which job?");
/// let several = Picker::new("acme.jobs").multiple().max(3); // its answer is a `Vec<String>`
/// # ask.question()?;
/// # several.question()?;
/// # Ok::<(), kortyx_contracts::AskError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Picker(Draft);

/// A [`Picker`] of several; the answer is their ids, distinct, in the order of selection.
#[derive(Debug, Clone)]
#[must_use]
pub struct MultiPicker(Draft);

impl Picker {
    /// A picker of what this schema names.
    pub fn new(schema_id: impl Into<String>) -> Self {
        Self(Draft::new(InterruptKind::Choice, None).set(|ask| {
            ask.picker = true;
            ask.schema_id = Some(schema_id.into());
        }))
    }

    /// Lets a person pick several.
    pub fn multiple(self) -> MultiPicker {
        MultiPicker(self.0.set(|ask| ask.kind = InterruptKind::MultiChoice))
    }
}

impl MultiPicker {
    /// At least this many; 1 by default. With 0 nothing picked is an answer.
    pub fn min(self, min: u32) -> Self {
        Self(self.0.set(|ask| ask.min = Some(min)))
    }

    /// At most this many.
    pub fn max(self, max: u32) -> Self {
        Self(self.0.set(|ask| ask.max = Some(max)))
    }
}

macro_rules! picker {
    ($($picker:ident),*) => {$(
        impl $picker {
            /// The question for a person to read.
            pub fn with_question(self, question: impl Into<String>) -> Self {
                Self(self.0.set(|ask| ask.question = Some(question.into())))
            }

            /// The schema's version.
            pub fn version(self, version: impl Into<String>) -> Self {
                Self(self.0.set(|ask| ask.schema_version = Some(version.into())))
            }
        }
    )*};
}

picker!(Picker, MultiPicker);

impl Ask for Picker {
    type Answer = String;

    fn question(&self) -> Result<Question, AskError> {
        self.0.question()
    }

    fn decode(&self, response: &ResumeResponse) -> Result<String, AnswerError> {
        decode::single(response).map(str::to_owned)
    }
}

impl Respond for Picker {
    fn respond(&self, answer: String) -> Result<ResumeResponse, AskError> {
        Ok(ResumeResponse::Select { ids: vec![answer] })
    }
}

impl Ask for MultiPicker {
    type Answer = Vec<String>;

    fn question(&self) -> Result<Question, AskError> {
        self.0.question()
    }

    fn decode(&self, response: &ResumeResponse) -> Result<Vec<String>, AnswerError> {
        decode::several(response).map(<[String]>::to_vec)
    }
}

impl Respond for MultiPicker {
    fn respond(&self, answer: Vec<String>) -> Result<ResumeResponse, AskError> {
        Ok(ResumeResponse::Select { ids: answer })
    }
}
