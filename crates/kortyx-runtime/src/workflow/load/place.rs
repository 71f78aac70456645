//! Where in a text something stands.

use std::fmt;

use serde_saphyr::Location;

/// A line and a column, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) column: u64,
}

impl Place {
    /// `None` for a location that the parser does not know.
    pub(super) fn of(location: Location) -> Option<Self> {
        (location != Location::UNKNOWN).then(|| Self { line: location.line(), column: location.column() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
