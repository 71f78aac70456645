//! How large what comes from outside may be.

use serde_json::Value;

/// How large a request may be. Checked before anything of it is used.
///
/// ```
/// use kortyx_protocol::Limits;
///
/// let limits = Limits { body_bytes: 64 * 1024, ..Limits::default() };
/// assert_eq!(limits.messages, 1_000);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body; 4 MiB by default.
    pub body_bytes: usize,
    /// Messages of a chat request; 1,000 by default.
    pub messages: usize,
    /// Levels of arrays and objects in a message's metadata and in a context; 32 by default.
    pub metadata_depth: usize,
    /// Selected ids of one answer; 1,000 by default.
    pub selected: usize,
    /// Bytes of one answer as JSON; 1 MiB by default.
    pub answer_bytes: usize,
    /// Answers of one batch; 1,000 by default.
    pub batch: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * 1024 * 1024,
            messages: 1_000,
            metadata_depth: 32,
            selected: 1_000,
            answer_bytes: 1024 * 1024,
            batch: 1_000,
        }
    }
}

/// Whether arrays and objects nest at most `levels` deep. Looks no deeper than that.
pub(crate) fn nests_within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| nests_within(item, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|field| nests_within(field, levels - 1)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn depth_counts_arrays_and_objects() {
        assert!(nests_within(&json!(1), 0));
        assert!(!nests_within(&json!([]), 0));
        assert!(nests_within(&json!([{"a": [1]}]), 3));
        assert!(!nests_within(&json!([1, {"a": [1]}]), 2));
    }
}
