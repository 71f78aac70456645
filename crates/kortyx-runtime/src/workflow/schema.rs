//! The input or output schema of a workflow.

use std::fmt;

use kortyx_contracts::{SchemaError, SchemaValidator};
use kortyx_protocol::{Issue, RawJson};
use serde_json::Value;

/// A JSON Schema, compiled.
pub(super) struct Schema {
    value: Value,
    validator: SchemaValidator,
}

impl Schema {
    pub(super) fn compile(value: Value) -> Result<Self, SchemaError> {
        let validator = SchemaValidator::compile(&value)?;
        Ok(Self { value, validator })
    }

    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    pub(super) fn validate(&self, json: &RawJson) -> Result<(), Vec<Issue>> {
        let value = json.to_value().map_err(|error| vec![Issue::new(error.path, "json", error.message)])?;
        let issues = self.validator.validate(&value);
        if issues.is_empty() { Ok(()) } else { Err(issues) }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
