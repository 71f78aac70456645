//! Contracts of outputs: what a model or a workflow has to deliver.

use std::{fmt, marker::PhantomData};

use kortyx_protocol::{Issue, RawJson};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ContractInfo, named_contract};
use crate::{
    ContractError, OutputError,
    ask::decode::typed,
    excerpt::{MAX_REASON_CHARS, cut},
    schema::{Direction, TypeSchema},
};

/// A named, versioned type of output.
///
/// ```
/// use kortyx_contracts::{OutputContract, OutputError};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use serde_json::json;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Summary {
///     points: Vec<String>,
/// }
///
/// const SUMMARY: OutputContract<Summary> =
///     OutputContract::new("summary").description("The main points").schema_id("acme.summary").version("1");
///
/// let summary = SUMMARY.decode(&json!({"points": ["one"]}))?;
/// assert_eq!(summary.points, ["one"]);
///
/// let Err(OutputError::Invalid { issues, .. }) = SUMMARY.decode(&json!({"points": "one"})) else { panic!("a text") };
/// assert_eq!((issues[0].path.as_str(), issues[0].code.as_str()), ("/points", "type"));
/// # Ok::<(), OutputError>(())
/// ```
#[must_use]
pub struct OutputContract<T> {
    info: ContractInfo,
    types: PhantomData<fn() -> T>,
}

named_contract!(OutputContract<T>);

impl<T: JsonSchema + 'static> OutputContract<T> {
    /// Refuses a contract that breaks a rule or whose schema cannot be used.
    pub fn check(&self) -> Result<(), ContractError> {
        self.info.check()?;
        self.type_schema().map(drop)
    }

    /// JSON Schema (2020-12) of the output.
    pub fn schema(&self) -> Result<RawJson, ContractError> {
        Ok(self.type_schema()?.raw)
    }

    /// Refuses a value that does not fit.
    pub fn validate(&self, value: &Value) -> Result<(), OutputError> {
        self.info.check()?;
        let issues = self.type_schema()?.validator.validate(value);
        if issues.is_empty() { Ok(()) } else { Err(self.refuse(issues)) }
    }

    fn refuse(&self, issues: Vec<Issue>) -> OutputError {
        OutputError::Invalid { contract: self.info.name.to_owned(), issues }
    }

    fn type_schema(&self) -> Result<TypeSchema, ContractError> {
        self.info.schema::<T>("output", Direction::Read)
    }
}

impl<T: JsonSchema + DeserializeOwned + 'static> OutputContract<T> {
    /// The value as its type.
    pub fn decode(&self, value: &Value) -> Result<T, OutputError> {
        self.validate(value)?;
        typed(value)
            .map_err(|error| self.refuse(vec![Issue::new("", "decode", cut(&error.to_string(), MAX_REASON_CHARS))]))
    }
}
