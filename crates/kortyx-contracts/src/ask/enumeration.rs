//! Choices among the variants of an enum.

use std::{fmt, marker::PhantomData};

use kortyx_protocol::ResumeResponse;

use super::{Ask, Choice, MultiChoice, Respond, decode, draft::Draft};
use crate::{AnswerError, AskError, ChoiceOption, ChoiceOptions, Question};

/// Asks for one variant of an enum; made by [`Choice::of`].
///
/// ```
/// use kortyx_contracts::{Ask, Choice, ChoiceOptions};
/// use kortyx_protocol::ResumeResponse;
///
/// #[derive(ChoiceOptions)]
/// enum Decision {
///     Approve,
///     Revise,
/// }
///
/// let ask = Choice::of::<Decision>("Approve this draft?");
/// let text = match ask.decode(&ResumeResponse::Select { ids: vec!["revise".into()] })? {
///     Decision::Approve => "published",
///     Decision::Revise => "sent back",
/// };
/// assert_eq!(text, "sent back");
/// # Ok::<(), kortyx_contracts::AnswerError>(())
/// ```
#[must_use]
pub struct ChoiceOf<E>(Draft, PhantomData<fn() -> E>);

/// Asks for several variants of an enum; made by [`MultiChoice::of`].
///
/// ```
/// use kortyx_contracts::{ChoiceOptions, MultiChoice};
///
/// #[derive(ChoiceOptions)]
/// enum Channel {
///     Web,
///     Newsletter,
/// }
///
/// let ask = MultiChoice::of::<Channel>("Where to publish?").max(2); // its answer is a `Vec<Channel>`
/// # let _ = ask;
/// ```
#[must_use]
pub struct MultiChoiceOf<E>(Draft, PhantomData<fn() -> E>);

impl<E: ChoiceOptions> ChoiceOf<E> {
    pub(super) fn new(question: impl Into<String>) -> Self {
        Self(Choice::new(question).0.options(options::<E>()), PhantomData)
    }
}

impl<E: ChoiceOptions> MultiChoiceOf<E> {
    pub(super) fn new(question: impl Into<String>) -> Self {
        Self(MultiChoice::new(question).0.options(options::<E>()), PhantomData)
    }

    /// At least this many; 1 by default. With 0 nothing selected is an answer.
    pub fn min(self, min: u32) -> Self {
        Self(self.0.set(|ask| ask.min = Some(min)), PhantomData)
    }

    /// At most this many; as many as there are variants by default.
    pub fn max(self, max: u32) -> Self {
        Self(self.0.set(|ask| ask.max = Some(max)), PhantomData)
    }
}

fn options<E: ChoiceOptions>() -> impl Iterator<Item = ChoiceOption> {
    E::OPTIONS.iter().map(ChoiceOption::from)
}

fn variant<E: ChoiceOptions>(id: &str) -> Result<E, AnswerError> {
    E::from_option_id(id).ok_or_else(|| decode::unknown(id))
}

impl<E: ChoiceOptions> Ask for ChoiceOf<E> {
    type Answer = E;

    fn question(&self) -> Result<Question, AskError> {
        self.0.question()
    }

    fn decode(&self, response: &ResumeResponse) -> Result<E, AnswerError> {
        decode::single(response).and_then(variant)
    }
}

impl<E: ChoiceOptions> Respond for ChoiceOf<E> {
    fn respond(&self, answer: E) -> Result<ResumeResponse, AskError> {
        Ok(ResumeResponse::Select { ids: vec![answer.option_id().to_owned()] })
    }
}

impl<E: ChoiceOptions> Ask for MultiChoiceOf<E> {
    type Answer = Vec<E>;

    fn question(&self) -> Result<Question, AskError> {
        self.0.question()
    }

    fn decode(&self, response: &ResumeResponse) -> Result<Vec<E>, AnswerError> {
        decode::several(response)?.iter().map(|id| variant(id)).collect()
    }
}

impl<E: ChoiceOptions> Respond for MultiChoiceOf<E> {
    fn respond(&self, answer: Vec<E>) -> Result<ResumeResponse, AskError> {
        Ok(ResumeResponse::Select { ids: answer.iter().map(|variant| variant.option_id().to_owned()).collect() })
    }
}

macro_rules! like_its_draft {
    ($($ask:ident),*) => {$(
        impl<E> Clone for $ask<E> {
            fn clone(&self) -> Self {
                Self(self.0.clone(), PhantomData)
            }
        }

        impl<E> fmt::Debug for $ask<E> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($ask)).field(&self.0).finish()
            }
        }
    )*};
}

like_its_draft!(ChoiceOf, MultiChoiceOf);
