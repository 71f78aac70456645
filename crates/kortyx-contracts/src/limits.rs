//! How big questions and answers may be. What is over a limit is refused with the limit's name and value.

/// Most options of one question, and most ids of one answer.
pub const MAX_OPTIONS: usize = 1000;

/// Longest question, in bytes.
pub const MAX_QUESTION_BYTES: usize = 64 * 1024;

/// Longest option id, and longest id in the answer to a picker, in bytes.
pub const MAX_OPTION_ID_BYTES: usize = 1024;

/// Longest label or description of an option, in bytes.
pub const MAX_OPTION_TEXT_BYTES: usize = 16 * 1024;

/// Longest schema id or version, in bytes.
pub const MAX_SCHEMA_NAME_BYTES: usize = 512;

/// Longest name of a contract, in characters.
pub const MAX_CONTRACT_NAME_CHARS: usize = 40;

/// Deepest nesting of a question's `meta`.
pub const MAX_META_DEPTH: usize = 32;

/// Longest `meta` of a question, as JSON, in bytes.
pub const MAX_META_BYTES: usize = 256 * 1024;

/// Longest answer to a text question, in characters; `max_length` lowers it.
pub const MAX_TEXT_LENGTH: u32 = 1024 * 1024;

/// Deepest nesting of a schema, of a contract's request and of a structured answer.
pub const MAX_DEPTH: usize = 100;

/// Longest schema, as JSON, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 1024 * 1024;

/// Most issues reported for one answer.
pub const MAX_ISSUES: usize = 32;
