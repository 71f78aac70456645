//! Why a text is not the JSON that was expected.

use std::fmt;

use kortyx_protocol::{FailureCode, JsonError};

/// How much of a path an error's text shows.
const MAX_PATH_CHARS: usize = 200;

/// Why a text is not the JSON that was expected, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialJsonError {
    /// What is wrong.
    pub problem: Problem,
    /// Where, in bytes from the beginning of the text.
    pub offset: usize,
    /// In which value, as a JSON pointer; empty for the whole document and outside of it.
    pub path: String,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text ended, and there was none.
    #[error("no JSON was found")]
    NotFound,
    /// The text ended within the document.
    #[error("the text ends before its JSON does")]
    Ended,
    /// Something else belongs here.
    #[error("{found:?} where {expected} is expected")]
    Unexpected {
        /// What is there.
        found: char,
        /// What belongs there.
        expected: &'static str,
    },
    /// A control character that must be escaped.
    #[error("a raw control character in a string, write it as an escape")]
    ControlCharacter,
    /// A backslash before something that is no escape.
    #[error("an escape that does not exist")]
    Escape,
    /// Half of a surrogate pair, which is no character.
    #[error("half of a surrogate pair")]
    Surrogate,
    /// The bytes are not UTF-8.
    #[error("bytes that are not UTF-8")]
    NotUtf8,
    /// A number that cannot be kept as it is.
    #[error("a number that would be rounded, write it as a string")]
    Inexact,
    /// A key that leads to a declared field, for the second time in its object.
    #[error("a declared field for the second time")]
    Twice,
    /// Another document after the first: which one counts is not for a parser to guess.
    #[error("a second JSON document")]
    Second,
    /// The text is too long.
    #[error("the text has more than {limit} bytes")]
    TooLong {
        /// How long it may be.
        limit: usize,
    },
    /// Arrays and objects nest too deep.
    #[error("arrays and objects nest deeper than {limit} levels")]
    TooDeep {
        /// How deep they may.
        limit: usize,
    },
    /// There are too many keys.
    #[error("the objects have more than {limit} keys")]
    TooManyKeys {
        /// How many there may be.
        limit: usize,
    },
    /// A key is too long.
    #[error("a key of more than {limit} bytes")]
    KeyTooLong {
        /// How long it may be.
        limit: usize,
    },
    /// What the parser takes for JSON is none for `serde_json`.
    #[error("{reason}")]
    Other {
        /// What it says.
        reason: String,
    },
}

impl PartialJsonError {
    /// What `serde_json` says of a document that begins at an offset.
    pub(super) fn of(error: JsonError, offset: usize) -> Self {
        Self { problem: Problem::Other { reason: error.message }, offset, path: error.path }
    }

    /// The code under which it reaches clients.
    pub fn code(&self) -> FailureCode {
        match self.problem {
            Problem::TooLong { .. }
            | Problem::TooDeep { .. }
            | Problem::TooManyKeys { .. }
            | Problem::KeyTooLong { .. } => FailureCode::PayloadTooLarge,
            _ => FailureCode::InvalidModelJson,
        }
    }

    /// Whether nothing is wrong but that the text ended: it may have been cut off, which the model's finish reason tells.
    pub fn is_cut_off(&self) -> bool {
        matches!(self.problem, Problem::Ended)
    }
}

impl fmt::Display for PartialJsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at byte {}", self.problem, self.offset)?;
        match self.path.char_indices().nth(MAX_PATH_CHARS) {
            _ if self.path.is_empty() => Ok(()),
            None => write!(f, ", in {}", self.path),
            Some((end, _)) => write!(f, ", in {}…", self.path.get(..end).unwrap_or_default()),
        }
    }
}

impl std::error::Error for PartialJsonError {}

/// A problem at an offset, before anyone looked in which value that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) problem: Problem,
    pub(super) offset: usize,
}

impl Problem {
    pub(super) fn at(self, offset: usize) -> Fault {
        Fault { problem: self, offset }
    }
}

/// What is at an offset belongs elsewhere.
pub(super) fn unexpected(text: &str, offset: usize, expected: &'static str) -> Fault {
    match text.get(offset..).and_then(|rest| rest.chars().next()) {
        Some(found) => Problem::Unexpected { found, expected }.at(offset),
        None => Problem::Ended.at(offset),
    }
}
