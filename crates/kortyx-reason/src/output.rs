//! The final object of a call: its schema, and reading it from what the model said.

use std::sync::Arc;

use kortyx_contracts::{ContractError, OutputContract, OutputError};
use kortyx_protocol::{Issue, RawJson};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    outputs::check_fields,
    partial::{Field, FieldError, Fields, PartialJson, PartialJsonError, Wrapping},
};

/// What a call is to return beside the text.
pub(crate) struct Output<T> {
    pub(crate) schema: Option<Result<RawJson, ContractError>>,
    pub(crate) read: fn(&str) -> Result<T, Unfit>,
}

/// How the final object is streamed while the model writes it.
#[derive(Clone)]
pub(crate) struct Streamed {
    pub(crate) data_type: Arc<str>,
    declared: Vec<Field>,
    fields: Result<Fields, FieldError>,
}

impl Streamed {
    pub(crate) fn new(data_type: Arc<str>, declared: Vec<Field>) -> Self {
        let fields = Fields::new(declared.iter().cloned());
        Self { data_type, declared, fields }
    }

    /// What is wrong with the fields, for objects of this schema.
    pub(crate) fn check(&self, schema: &RawJson) -> Result<(), String> {
        let schema = schema.to_value().map_err(|error| error.to_string())?;
        check_fields(&self.declared, &self.fields, &schema).map_err(|error| error.to_string())
    }

    /// A reader of a text with an object of this schema.
    pub(crate) fn json(&self, schema: &RawJson) -> PartialJson {
        let wrapping = Wrapping::for_schema(&schema.to_value().unwrap_or_default());
        PartialJson::new(self.fields.clone().unwrap_or_default(), wrapping)
    }
}

/// Why a text is not the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unfit {
    NotJson(String),
    Schema(Vec<Issue>),
}

impl Output<()> {
    /// The text alone.
    pub(crate) fn none() -> Self {
        Self { schema: None, read: |_| Ok(()) }
    }
}

impl<T: DeserializeOwned + JsonSchema + 'static> Output<T> {
    const CONTRACT: OutputContract<T> =
        OutputContract::new("output").description("The answer").schema_id("kortyx.output").version("1");

    /// A value of this type.
    pub(crate) fn of() -> Self {
        Self { schema: Some(Self::CONTRACT.schema()), read: Self::read_text }
    }

    fn read_text(text: &str) -> Result<T, Unfit> {
        let value = Self::json(text).map_err(|error| Unfit::NotJson(error.to_string()))?;
        Self::CONTRACT.decode(&value).map_err(|error| match error {
            OutputError::Invalid { issues, .. } => Unfit::Schema(issues),
            other => Unfit::Schema(vec![Issue::new("", "schema", other.to_string())]),
        })
    }

    /// The JSON in a text, without what models like to put around it.
    fn json(text: &str) -> Result<Value, PartialJsonError> {
        let schema = Self::CONTRACT.schema().ok().and_then(|schema| schema.to_value().ok());
        PartialJson::read(text, Wrapping::for_schema(&schema.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_surrounds_the_json_is_taken_off_and_what_is_within_stays() {
        let list = |text: &str| Output::<Vec<u8>>::read_text(text);
        assert_eq!(list("```json\n[1]\n```\n"), Ok(vec![1]));
        assert_eq!(list("The numbers: [2]."), Ok(vec![2]));
        assert_eq!(Output::<String>::read_text("\"```\""), Ok("```".to_owned()));
        let said = Unfit::NotJson("'1' where `,` or the end of the array or object is expected, at byte 3".to_owned());
        assert_eq!(list("[1 1]"), Err(said));
    }
}
