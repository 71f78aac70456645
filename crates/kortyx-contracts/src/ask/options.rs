//! What any ask can be given: a time, a default, data for clients, a place for cancellation.

use std::time::Duration;

use kortyx_protocol::{RawJson, ResumeResponse};
use serde::Serialize;

use super::{Ask, BoxAsk, Respond};
use crate::{
    AnswerError, AskError, Question,
    check::within,
    limits::{MAX_META_BYTES, MAX_META_DEPTH},
    option::exact,
    schema::text_depth,
};

/// Options of any ask. They wrap it, so give the ask's own parts first.
///
/// ```
/// use std::time::Duration;
///
/// use kortyx_contracts::{Ask, AskExt, Choice};
///
/// let ask = Choice::new("Approve this draft?")
///     .option("approve", "Approve")
///     .option("revise", "Revise")
///     .expires_in(Duration::from_secs(3600))
///     .default_on_expiry("revise")
///     .optional_cancel(); // the answer is now an `Option<String>`
/// assert_eq!(ask.question()?.expires_in(), Some(Duration::from_secs(3600)));
/// # Ok::<(), kortyx_contracts::AskError>(())
/// ```
pub trait AskExt: Ask + Sized {
    /// How long it may be answered, from when it is published. At least a millisecond; parts of one are cut off.
    fn expires_in(self, after: Duration) -> Configured<Self> {
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let setting = if millis == 0 { Err(AskError::NoTime) } else { Ok(Setting::ExpiresIn(millis)) };
        Configured { ask: self, setting }
    }

    /// The answer that counts when time is up without one. It must fit the question like any other answer.
    fn default_on_expiry(self, answer: impl Into<Self::Answer>) -> Configured<Self>
    where
        Self: Respond,
    {
        let setting = self.respond(answer.into()).map(Setting::Default);
        Configured { ask: self, setting }
    }

    /// Data for clients, public: any JSON, nested at most 32 deep.
    fn meta(self, meta: impl Serialize) -> Configured<Self> {
        Configured { ask: self, setting: checked_meta(&meta).map(Setting::Meta) }
    }

    /// Lets the code see a cancellation, as `None`. Without it a cancellation ends the run.
    fn optional_cancel(self) -> OptionalCancel<Self> {
        OptionalCancel(self)
    }

    /// The ask behind a pointer, for lists of different asks with one answer type.
    fn boxed(self) -> BoxAsk<Self::Answer>
    where
        Self: 'static,
    {
        Box::new(self)
    }
}

impl<A: Ask> AskExt for A {}

/// An ask with one more option; made by [`AskExt`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Configured<A> {
    ask: A,
    setting: Result<Setting, AskError>,
}

#[derive(Debug, Clone)]
enum Setting {
    ExpiresIn(u64),
    Default(ResumeResponse),
    Meta(RawJson),
}

/// An ask whose cancellation is an answer; made by [`AskExt::optional_cancel`].
#[derive(Debug, Clone)]
#[must_use]
pub struct OptionalCancel<A>(A);

fn checked_meta(meta: &impl Serialize) -> Result<RawJson, AskError> {
    let raw = exact(meta).map_err(|source| AskError::Json { part: "meta", source })?;
    within("meta", raw.get().len(), MAX_META_BYTES, "bytes")?;
    within("meta", text_depth(raw.get()), MAX_META_DEPTH, "levels")?;
    Ok(raw)
}

impl<A: Ask> Ask for Configured<A> {
    type Answer = A::Answer;

    fn question(&self) -> Result<Question, AskError> {
        let mut question = self.ask.question()?;
        match self.setting.clone()? {
            Setting::ExpiresIn(millis) => question.set_expires_in_ms(millis),
            Setting::Meta(meta) => question.set_meta(meta),
            Setting::Default(default) => {
                question.validate(&default).map_err(|issues| AskError::Default { issues })?;
                question.set_default(default);
            }
        }
        Ok(question)
    }

    fn decode(&self, response: &ResumeResponse) -> Result<Self::Answer, AnswerError> {
        self.ask.decode(response)
    }
}

impl<A: Respond> Respond for Configured<A> {
    fn respond(&self, answer: Self::Answer) -> Result<ResumeResponse, AskError> {
        self.ask.respond(answer)
    }
}

impl<A: Ask> Ask for OptionalCancel<A> {
    type Answer = Option<A::Answer>;

    fn question(&self) -> Result<Question, AskError> {
        let mut question = self.0.question()?;
        question.set_optional_cancel();
        Ok(question)
    }

    fn decode(&self, response: &ResumeResponse) -> Result<Self::Answer, AnswerError> {
        match response {
            ResumeResponse::Cancel => Ok(None),
            response => self.0.decode(response).map(Some),
        }
    }
}

impl<A: Respond> Respond for OptionalCancel<A> {
    fn respond(&self, answer: Self::Answer) -> Result<ResumeResponse, AskError> {
        answer.map_or(Ok(ResumeResponse::Cancel), |answer| self.0.respond(answer))
    }
}
