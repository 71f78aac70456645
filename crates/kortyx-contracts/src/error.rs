//! What can be wrong with a question, a contract, or an answer that reaches the code.

use kortyx_protocol::{FailureCode, Issue, JsonError};

use crate::SchemaError;

/// Why a question cannot be asked. Every variant is a mistake in the code that asks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The question for a person to read is missing or blank.
    #[error("the question is empty: say what is asked")]
    EmptyQuestion,
    /// A choice without options. A `Picker` is what has none.
    #[error("the choice has no options: add at least one, or use a picker whose client finds them")]
    NoOptions,
    /// An option whose id is missing or blank.
    #[error("option {index} has an empty id")]
    EmptyOptionId {
        /// Its place, from 0.
        index: usize,
    },
    /// Two options with one id.
    #[error("two options have the id `{id}`")]
    DuplicateOptionId {
        /// The id.
        id: String,
    },
    /// A name that must say something is blank.
    #[error("the {part} is empty")]
    EmptyPart {
        /// Which.
        part: &'static str,
    },
    /// Something is over its limit (see [`limits`](crate::limits)).
    #[error("the {part} has {size} {unit}, more than {limit}")]
    OverLimit {
        /// What.
        part: &'static str,
        /// How big it is.
        size: usize,
        /// How big it may be.
        limit: usize,
        /// Of what.
        unit: &'static str,
    },
    /// The lower bound is over the upper one.
    #[error("{lower} {min} is over {upper} {max}")]
    Bounds {
        /// The lower bound's name.
        lower: &'static str,
        /// Its value.
        min: u32,
        /// The upper bound's name.
        upper: &'static str,
        /// Its value.
        max: u32,
    },
    /// A bound that no answer can meet, or that is no bound.
    #[error("{bound} {value} is over {limit}, the number of options")]
    BoundOverOptions {
        /// Its name.
        bound: &'static str,
        /// Its value.
        value: u32,
        /// How many options there are.
        limit: usize,
    },
    /// An upper bound of zero, which allows no answer.
    #[error("{bound} 0 allows no answer")]
    ZeroBound {
        /// Its name.
        bound: &'static str,
    },
    /// The time to answer is under a millisecond.
    #[error("the time to answer is zero: give at least a millisecond")]
    NoTime,
    /// The default answer does not fit its own question.
    #[error("the default answer does not fit its question: {}", list(issues))]
    Default {
        /// What is wrong with it.
        issues: Vec<Issue>,
    },
    /// A part of the question is not JSON.
    #[error("the {part} cannot be written as JSON")]
    Json {
        /// Which part.
        part: &'static str,
        /// Why.
        source: JsonError,
    },
    /// A contract's request does not fit its own schema.
    #[error("the request of contract `{contract}` does not fit its schema: {}", list(issues))]
    Request {
        /// The contract.
        contract: String,
        /// What is wrong with the request.
        issues: Vec<Issue>,
    },
    /// The contract itself is wrong.
    #[error(transparent)]
    Contract(#[from] ContractError),
}

/// Why a contract cannot be used. Every variant is a mistake in its definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// The name is not a letter followed by letters, digits, `_` or `-`, or it is too long.
    #[error("contract name `{name}` is not valid: at most 40 characters, a letter, then letters, digits, `_` or `-`")]
    Name {
        /// The name, shortened.
        name: String,
    },
    /// A part that must say something is missing or blank.
    #[error("contract `{contract}` has no {part}")]
    Missing {
        /// The contract.
        contract: String,
        /// Which part.
        part: &'static str,
    },
    /// A part is too long.
    #[error("the {part} of contract `{contract}` has more than {limit} bytes")]
    TooLong {
        /// The contract.
        contract: String,
        /// Which part.
        part: &'static str,
        /// How long it may be.
        limit: usize,
    },
    /// A type's schema cannot be used.
    #[error("the {part} schema of contract `{contract}` cannot be used")]
    Schema {
        /// The contract.
        contract: String,
        /// Which schema.
        part: &'static str,
        /// Why.
        source: SchemaError,
    },
}

/// Why an output is not what its contract promises.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The value does not fit.
    #[error("the output does not fit contract `{contract}`: {}", list(issues))]
    Invalid {
        /// The contract.
        contract: String,
        /// What is wrong with the value.
        issues: Vec<Issue>,
    },
    /// The contract itself is wrong.
    #[error(transparent)]
    Contract(#[from] ContractError),
}

/// Why an accepted answer does not become the type that the code expects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The question was cancelled, and the code has no place for that: see
    /// [`optional_cancel`](crate::AskExt::optional_cancel).
    #[error("the question was cancelled")]
    Cancelled,
    /// The answer has another form.
    #[error("the answer is {found}, where {expected} is expected")]
    Form {
        /// What the code expects.
        expected: &'static str,
        /// What the answer is.
        found: &'static str,
    },
    /// The answer names an option that the code does not know.
    #[error("the answer `{id}` is none of the options that the code knows")]
    UnknownOption {
        /// The option's id, shortened.
        id: String,
    },
    /// The value fits the contract's schema, but its type refuses it.
    #[error("the answer does not decode: {message}")]
    Decode {
        /// What the type says.
        message: String,
    },
}

impl AskError {
    /// The code under which it reaches clients.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::OverLimit { .. } => FailureCode::PayloadTooLarge,
            _ => FailureCode::ExecutionFailed,
        }
    }
}

impl OutputError {
    /// The code under which it reaches clients.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::Invalid { .. } => FailureCode::InvalidOutput,
            Self::Contract(_) => FailureCode::ExecutionFailed,
        }
    }
}

impl AnswerError {
    /// The code under which it reaches clients.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::Cancelled => FailureCode::InterruptCancelled,
            _ => FailureCode::ContractMismatch,
        }
    }
}

/// Issues in one line.
fn list(issues: &[Issue]) -> String {
    let parts: Vec<String> =
        issues
            .iter()
            .map(|issue| {
                if issue.path.is_empty() { issue.message.clone() } else { format!("{}: {}", issue.path, issue.message) }
            })
            .collect();
    parts.join("; ")
}
