//! Why a change of a structured stream is refused.

use std::{error::Error, fmt};

use crate::text::shorten;

/// Why a change of a structured stream is refused. Texts from outside are shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReduceError {
    /// The path is empty.
    EmptyPath,
    /// The path has an empty segment, a number with a leading zero, or too many segments.
    MalformedPath {
        /// The path.
        path: String,
    },
    /// The path leads through something that has no such inside.
    PathConflict {
        /// The path.
        path: String,
        /// How many of its segments lead to the conflict.
        depth: usize,
        /// What the next segment needs there: `array` or `object`.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// An index is beyond the end of its array.
    Gap {
        /// The path.
        path: String,
        /// The length of the array.
        length: usize,
    },
    /// `append` to something that is no array.
    NotAnArray {
        /// The path.
        path: String,
    },
    /// `text-delta` to something that is no text.
    NotAText {
        /// The path.
        path: String,
    },
    /// The data would nest too deep to be sent.
    TooDeep {
        /// The path; empty for the whole data.
        path: String,
    },
    /// The stream has ended.
    AfterFinal {
        /// The stream.
        stream_id: String,
    },
    /// The chunk belongs to another stream.
    OtherStream {
        /// This stream.
        expected: String,
        /// The chunk's stream.
        found: String,
    },
}

impl ReduceError {
    pub(super) fn malformed(path: &str) -> Self {
        Self::MalformedPath { path: shorten(path) }
    }

    pub(super) fn conflict(path: &str, depth: usize, expected: &'static str, found: &'static str) -> Self {
        Self::PathConflict { path: shorten(path), depth, expected, found }
    }

    pub(super) fn gap(path: &str, length: usize) -> Self {
        Self::Gap { path: shorten(path), length }
    }

    pub(super) fn not_an_array(path: &str) -> Self {
        Self::NotAnArray { path: shorten(path) }
    }

    pub(super) fn not_a_text(path: &str) -> Self {
        Self::NotAText { path: shorten(path) }
    }

    pub(super) fn too_deep(path: &str) -> Self {
        Self::TooDeep { path: shorten(path) }
    }

    pub(super) fn after_final(stream_id: &str) -> Self {
        Self::AfterFinal { stream_id: shorten(stream_id) }
    }

    pub(super) fn other_stream(expected: &str, found: &str) -> Self {
        Self::OtherStream { expected: shorten(expected), found: shorten(found) }
    }
}

impl fmt::Display for ReduceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyPath => f.write_str("the path must not be empty"),
            Self::MalformedPath { path } => {
                write!(f, "the path {path:?} must be names and plain numbers, separated by single dots, not too many")
            }
            Self::PathConflict { path, depth, expected, found } => {
                write!(f, "the path {path:?} needs an {expected} after {depth} segments, where there is {found}")
            }
            Self::Gap { path, length } => {
                write!(f, "the path {path:?} indexes beyond the end of an array of {length} items")
            }
            Self::NotAnArray { path } => write!(f, "append at {path:?} needs an array"),
            Self::NotAText { path } => write!(f, "text-delta at {path:?} needs a text"),
            Self::TooDeep { path } => write!(f, "the data at {path:?} would nest too deep"),
            Self::AfterFinal { stream_id } => write!(f, "the structured stream {stream_id:?} has ended"),
            Self::OtherStream { expected, found } => {
                write!(f, "the chunk belongs to the structured stream {found:?}, not to {expected:?}")
            }
        }
    }
}

impl Error for ReduceError {}
