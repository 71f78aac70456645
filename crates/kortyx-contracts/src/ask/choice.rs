//! Choices among options that the node lists.

use kortyx_protocol::{InterruptKind, ResumeResponse};

use super::{Ask, ChoiceOf, MultiChoiceOf, Respond, decode, draft::Draft};
use crate::{AnswerError, AskError, ChoiceOption, ChoiceOptions, Question};

/// Asks for exactly one of the listed options; the answer is its id.
///
/// ```
/// use kortyx_contracts::{Ask, Choice, ChoiceOption};
///
/// let ask = Choice::new("Approve this draft?")
///     .option("approve", "Approve")
///     .option_with(ChoiceOption::new("revise", "Revise").description("Send it back with a note"));
/// assert_eq!(ask.question()?.options().len(), 2);
/// # Ok::<(), kortyx_contracts::AskError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Choice(pub(super) Draft);

/// Asks for several of the listed options; the answer is their ids, distinct, in the order of selection.
///
/// ```
/// use kortyx_contracts::{Ask, MultiChoice};
///
/// let ask = MultiChoice::new("Where to publish?").option("web", "Web").option("mail", "Newsletter").min(1).max(2);
/// # ask.question()?;
/// # Ok::<(), kortyx_contracts::AskError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct MultiChoice(pub(super) Draft);

impl Choice {
    /// A choice with this question and no options yet.
    pub fn new(question: impl Into<String>) -> Self {
        Self(Draft::new(InterruptKind::Choice, Some(question.into())))
    }

    /// A choice among the variants of an enum; the answer is the variant.
    pub fn of<E: ChoiceOptions>(question: impl Into<String>) -> ChoiceOf<E> {
        ChoiceOf::new(question)
    }
}

impl MultiChoice {
    /// A choice with this question and no options yet.
    pub fn new(question: impl Into<String>) -> Self {
        Self(Draft::new(InterruptKind::MultiChoice, Some(question.into())))
    }

    /// A choice among the variants of an enum; the answer is the variants.
    pub fn of<E: ChoiceOptions>(question: impl Into<String>) -> MultiChoiceOf<E> {
        MultiChoiceOf::new(question)
    }

    /// At least this many; 1 by default. With 0 nothing selected is an answer.
    pub fn min(self, min: u32) -> Self {
        Self(self.0.set(|ask| ask.min = Some(min)))
    }

    /// At most this many; as many as there are options by default.
    pub fn max(self, max: u32) -> Self {
        Self(self.0.set(|ask| ask.max = Some(max)))
    }
}

macro_rules! static_choice {
    ($($choice:ident),*) => {$(
        impl $choice {
            /// Adds an option: what the answer names, and what a person reads.
            pub fn option(self, id: impl Into<String>, label: impl Into<String>) -> Self {
                self.option_with(ChoiceOption::new(id, label))
            }

            /// Adds an option with a description or a value.
            pub fn option_with(self, option: ChoiceOption) -> Self {
                Self(self.0.option(option))
            }

            /// Adds several options.
            pub fn options(self, options: impl IntoIterator<Item = ChoiceOption>) -> Self {
                Self(self.0.options(options))
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
    )*};
}

static_choice!(Choice, MultiChoice);

impl Ask for Choice {
    type Answer = String;

    fn question(&self) -> Result<Question, AskError> {
        self.0.question()
    }

    fn decode(&self, response: &ResumeResponse) -> Result<String, AnswerError> {
        decode::single(response).map(str::to_owned)
    }
}

impl Respond for Choice {
    fn respond(&self, answer: String) -> Result<ResumeResponse, AskError> {
        Ok(ResumeResponse::Select { ids: vec![answer] })
    }
}

impl Ask for MultiChoice {
    type Answer = Vec<String>;

    fn question(&self) -> Result<Question, AskError> {
        self.0.question()
    }

    fn decode(&self, response: &ResumeResponse) -> Result<Vec<String>, AnswerError> {
        decode::several(response).map(<[String]>::to_vec)
    }
}

impl Respond for MultiChoice {
    fn respond(&self, answer: Vec<String>) -> Result<ResumeResponse, AskError> {
        Ok(ResumeResponse::Select { ids: answer })
    }
}
