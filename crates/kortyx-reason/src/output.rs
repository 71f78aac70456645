//! The final object of a call: its schema, and reading it from what the model said.

use kortyx_contracts::{ContractError, OutputContract, OutputError};
use kortyx_protocol::{Issue, RawJson, json};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What a call is to return beside the text.
pub(crate) struct Output<T> {
    pub(crate) schema: Option<Result<RawJson, ContractError>>,
    pub(crate) read: fn(&str) -> Result<T, Unfit>,
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
        let value: Value = json::from_str(unfenced(text)).map_err(|error| Unfit::NotJson(error.to_string()))?;
        Self::CONTRACT.decode(&value).map_err(|error| match error {
            OutputError::Invalid { issues, .. } => Unfit::Schema(issues),
            other => Unfit::Schema(vec![Issue::new("", "schema", other.to_string())]),
        })
    }
}

/// The text without the fence that models like to put around JSON.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.map_or(text, |inner| inner.strip_prefix("json").unwrap_or(inner).trim())
}

#[cfg(test)]
mod tests {
    use super::unfenced;

    #[test]
    fn a_fence_around_json_is_taken_off_and_one_within_stays() {
        assert_eq!(unfenced("```json\n{\"a\":1}\n```\n"), "{\"a\":1}");
        assert_eq!(unfenced("```\n[1]\n```"), "[1]");
        assert_eq!(unfenced("\"```\""), "\"```\"");
    }
}
