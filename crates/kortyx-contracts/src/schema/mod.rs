//! JSON Schema (2020-12): compiled once, kept for the next answer.

mod cache;
mod depth;
mod issues;
mod types;

use std::{fmt, sync::Arc};

use jsonschema::{Draft, PatternOptions, Validator};
use kortyx_protocol::{Issue, RawJson, json};
use serde_json::Value;

use crate::{
    excerpt::{MAX_REASON_CHARS, cut},
    limits::{MAX_DEPTH, MAX_SCHEMA_BYTES},
};
pub(crate) use depth::{text_depth, value_fits};
pub(crate) use types::{Direction, TypeSchema};

/// A compiled JSON Schema. Cheap to clone, shared by all who compile the same schema.
///
/// Schemas are draft 2020-12 whatever their `$schema` says. Formats such as `date-time` are checked. Patterns run in time
/// linear in the answer, so look-around and back-references are refused. References are resolved inside the schema only:
/// nothing is ever read from a file or the network.
///
/// ```
/// use kortyx_contracts::SchemaValidator;
/// use serde_json::json;
///
/// let schema = SchemaValidator::compile(&json!({"type": "object", "required": ["date"]}))?;
/// assert!(schema.validate(&json!({"date": "2026-01-01"})).is_empty());
///
/// let issues = schema.validate(&json!({}));
/// assert_eq!((issues[0].path.as_str(), issues[0].code.as_str()), ("/date", "required"));
/// # Ok::<(), kortyx_contracts::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct SchemaValidator(Arc<Validator>);

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is nested deeper than [`MAX_DEPTH`](crate::limits::MAX_DEPTH).
    #[error("the schema is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// It is longer than [`MAX_SCHEMA_BYTES`](crate::limits::MAX_SCHEMA_BYTES).
    #[error("the schema has more than {MAX_SCHEMA_BYTES} bytes")]
    TooLong,
    /// It is not JSON, or holds a number that would be rounded.
    #[error("the schema is not JSON: {reason}")]
    Json {
        /// Why.
        reason: String,
    },
    /// It is JSON, but not a valid schema, or one that refers to what is outside of it.
    #[error("the schema is not valid: {reason}")]
    Invalid {
        /// Why, shortened.
        reason: String,
    },
}

impl SchemaValidator {
    /// Compiles a schema, or finds it compiled.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        if !value_fits(schema, MAX_DEPTH) {
            return Err(SchemaError::TooDeep);
        }
        let text = json::canonical(schema).map_err(not_json)?;
        cache::shared().get(&text, || build(schema, text.len()))
    }

    /// Compiles a schema that is kept as text, or finds it compiled.
    pub fn compile_raw(schema: &RawJson) -> Result<Self, SchemaError> {
        let text = schema.get();
        cache::shared().get(text, || {
            if text_depth(text) > MAX_DEPTH {
                return Err(SchemaError::TooDeep);
            }
            build(&schema.to_value().map_err(not_json)?, text.len())
        })
    }

    /// Whether a value is valid.
    pub fn is_valid(&self, value: &Value) -> bool {
        value_fits(value, MAX_DEPTH) && self.0.is_valid(value)
    }

    /// Everything that is wrong with a value, at most [`MAX_ISSUES`](crate::limits::MAX_ISSUES); nothing when it is valid.
    ///
    /// The path points at the field, the code is the schema keyword, and the message repeats no value.
    pub fn validate(&self, value: &Value) -> Vec<Issue> {
        if !value_fits(value, MAX_DEPTH) {
            return vec![Issue::new("", "depth", format!("the value is nested deeper than {MAX_DEPTH} levels"))];
        }
        if self.0.is_valid(value) { Vec::new() } else { issues::all(self.0.iter_errors(value)) }
    }
}

impl fmt::Debug for SchemaValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SchemaValidator(…)")
    }
}

fn build(schema: &Value, bytes: usize) -> Result<SchemaValidator, SchemaError> {
    if bytes > MAX_SCHEMA_BYTES {
        return Err(SchemaError::TooLong);
    }
    jsonschema::options()
        .offline()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map(|validator| SchemaValidator(Arc::new(validator)))
        .map_err(|error| SchemaError::Invalid { reason: cut(&error.to_string(), MAX_REASON_CHARS) })
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` takes")]
fn not_json(error: kortyx_protocol::JsonError) -> SchemaError {
    SchemaError::Json { reason: cut(&error.to_string(), MAX_REASON_CHARS) }
}
