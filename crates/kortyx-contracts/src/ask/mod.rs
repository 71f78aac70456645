//! Asks: what a node puts to a person, and the type of the answer.

mod choice;
mod contract;
pub(crate) mod decode;
mod draft;
mod enumeration;
mod options;
mod picker;
mod schema;
mod text;

use std::sync::Arc;

use kortyx_protocol::ResumeResponse;

use crate::{AnswerError, AskError, Question};

pub use choice::{Choice, MultiChoice};
pub use contract::ContractAsk;
pub use enumeration::{ChoiceOf, MultiChoiceOf};
pub use options::{AskExt, Configured, OptionalCancel};
pub use picker::{MultiPicker, Picker};
pub use schema::SchemaAsk;
pub use text::Text;

/// A question whose answer has a type.
///
/// ```
/// use kortyx_contracts::{Ask, AskExt, Choice, Text};
/// use kortyx_protocol::ResumeResponse;
///
/// fn answer<A: Ask>(ask: &A, response: &ResumeResponse) -> A::Answer {
///     ask.question().unwrap().validate(response).unwrap();
///     ask.decode(response).unwrap()
/// }
///
/// let picked: String =
///     answer(&Choice::new("Approve?").option("yes", "Yes"), &ResumeResponse::Select { ids: vec!["yes".into()] });
/// let typed: Option<String> = answer(&Text::new("Why?").optional_cancel(), &ResumeResponse::Cancel);
/// assert_eq!((picked.as_str(), typed), ("yes", None));
/// ```
pub trait Ask: Send + Sync {
    /// What the code gets.
    type Answer: Send + 'static;

    /// The question to store, or what is wrong with it. Every mistake that a builder was given comes out here.
    fn question(&self) -> Result<Question, AskError>;

    /// Reads an answer that fits the stored question.
    ///
    /// It does not judge the answer again: the stored question did, and it may differ from what this code asks by now.
    fn decode(&self, response: &ResumeResponse) -> Result<Self::Answer, AnswerError>;
}

/// An ask whose answer can be written in code, as a default.
pub trait Respond: Ask {
    /// The answer as a person would send it: what [`Ask::decode`] reads as the same.
    fn respond(&self, answer: Self::Answer) -> Result<ResumeResponse, AskError>;
}

/// Any ask with this answer, for lists of different ones.
pub type BoxAsk<Answer> = Box<dyn Ask<Answer = Answer>>;

macro_rules! forward_ask {
    ($($pointer:ty),*) => {$(
        impl<A: Ask + ?Sized> Ask for $pointer {
            type Answer = A::Answer;

            fn question(&self) -> Result<Question, AskError> {
                (**self).question()
            }

            fn decode(&self, response: &ResumeResponse) -> Result<Self::Answer, AnswerError> {
                (**self).decode(response)
            }
        }

        impl<A: Respond + ?Sized> Respond for $pointer {
            fn respond(&self, answer: Self::Answer) -> Result<ResumeResponse, AskError> {
                (**self).respond(answer)
            }
        }
    )*};
}

forward_ask!(&A, Box<A>, Arc<A>);
