//! What a harness reports: a broken invariant, or what kept it from judging.

use std::{error::Error as StdError, fmt};

/// Any error of a subject.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a harness did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A promise was broken.
    #[error("{invariant}: {detail}")]
    Broken {
        /// Which.
        invariant: Invariant,
        /// Where it shows.
        detail: String,
    },
    /// A process ended as none should.
    #[error("a process ended with {status}: {errors}")]
    Process {
        /// How it ended.
        status: String,
        /// What it wrote to its standard error.
        errors: String,
    },
    /// The harness could not do its work.
    #[error("{doing} failed")]
    Failed {
        /// What it was doing.
        doing: &'static str,
        /// Why it could not.
        #[source]
        source: BoxError,
    },
}

/// The promises that the harnesses check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// Every answer that was accepted is stored, numbered without gaps, and the run has used it.
    AnswersAreUsed,
    /// Of the answers to one question one is accepted, its repeats get its receipt, the others a conflict.
    OneAnswerWins,
    /// An effect happens under one key, and its record is written once.
    StepsHappenOnce,
    /// A run that became durable ends, and ends well.
    RunsEnd,
    /// Storage knows every question that anybody outside learned of, with the same token.
    TokensAreKnown,
    /// When everything has ended and retention allows nothing to stay, nothing stays.
    NothingIsLeft,
    /// Calls fail only while a server is away, and soon after.
    ErrorsEnd,
    /// A process dies where it was to die, and only there.
    DeathsHappen,
    /// What the subject itself checks.
    Subject,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AnswersAreUsed => "an accepted answer was not used",
            Self::OneAnswerWins => "a question has not exactly one accepted answer",
            Self::StepsHappenOnce => "a step happened twice",
            Self::RunsEnd => "a run did not end well",
            Self::TokensAreKnown => "storage does not know what was announced",
            Self::NothingIsLeft => "something is left that nothing would remove",
            Self::ErrorsEnd => "calls fail although the server is there",
            Self::DeathsHappen => "a process did not die where it was to die",
            Self::Subject => "the subject's own check failed",
        })
    }
}

/// A broken promise.
pub(crate) fn broken<T>(invariant: Invariant, detail: impl Into<String>) -> Result<T, Error> {
    Err(Error::Broken { invariant, detail: detail.into() })
}

/// Breaks with this detail unless something holds.
pub(crate) fn holds(is_so: bool, invariant: Invariant, detail: impl FnOnce() -> String) -> Result<(), Error> {
    if is_so { Ok(()) } else { broken(invariant, detail()) }
}

/// Says what was being done when something failed.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, Error>;
}

impl<T, E: Into<BoxError>> Doing<T> for Result<T, E> {
    fn doing(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error::Failed { doing, source: error.into() })
    }
}
