//! How large a document may be.

use super::Problem;

/// How large a document may be. What is over a limit is refused where it goes over.
///
/// ```
/// use kortyx_reason::partial::PartialLimits;
///
/// let limits = PartialLimits { bytes: 64 * 1024, ..PartialLimits::default() };
/// assert_eq!(limits.depth, PartialLimits::MAX_DEPTH);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialLimits {
    /// Bytes of the text, with all that surrounds the JSON; 4 MiB by default.
    pub bytes: usize,
    /// Levels of arrays and objects; [`MAX_DEPTH`](Self::MAX_DEPTH) by default and at most.
    pub depth: usize,
    /// Keys of all objects together; 100,000 by default.
    pub keys: usize,
    /// Bytes of one key, as written; 1,024 by default.
    pub key_bytes: usize,
}

impl PartialLimits {
    /// The most levels: a stream of structured data takes no deeper one.
    pub const MAX_DEPTH: usize = 96;

    pub(super) fn check_depth(&self, levels: usize) -> Result<(), Problem> {
        let limit = self.depth.min(Self::MAX_DEPTH);
        if levels > limit { Err(Problem::TooDeep { limit }) } else { Ok(()) }
    }

    pub(super) fn check_keys(&self, keys: usize) -> Result<(), Problem> {
        if keys > self.keys { Err(Problem::TooManyKeys { limit: self.keys }) } else { Ok(()) }
    }
}

impl Default for PartialLimits {
    fn default() -> Self {
        Self { bytes: 4 * 1024 * 1024, depth: Self::MAX_DEPTH, keys: 100_000, key_bytes: 1024 }
    }
}
