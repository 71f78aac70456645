//! The ask of a schema that is known only while the program runs.

use kortyx_protocol::{InterruptKind, RawJson, ResumeResponse};
use serde_json::Value;

use super::{Ask, decode, draft::Draft};
use crate::{
    AnswerError, AskError, ContractError, Question, SchemaValidator,
    check::within,
    limits::{MAX_CONTRACT_NAME_CHARS, MAX_DEPTH},
    question::Asked,
    schema::text_depth,
};

/// Asks for a value that fits a JSON Schema, where no type stands for it: the schema comes from a tool or from data.
///
/// Clients see it as the contract of this name. Where types are known, use an
/// [`InterruptContract`](crate::InterruptContract).
///
/// ```
/// use kortyx_contracts::{Ask, SchemaAsk};
/// use kortyx_protocol::ResumeResponse;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "required": ["seats"], "properties": {"seats": {"type": "integer", "maximum": 9}}});
/// let ask = SchemaAsk::new("booking", &json!({"train": "ICE 7"}), &schema).schema("acme.booking", "1");
///
/// let question = ask.question()?;
/// assert_eq!(question.identity(), "custom:booking@acme.booking/1");
/// assert!(question.validate(&ResumeResponse::Value { value: json!({"seats": 10}) }).is_err());
/// # Ok::<(), kortyx_contracts::AskError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct SchemaAsk(Draft);

impl SchemaAsk {
    /// Asks under this name, with this request, for a value that fits this schema.
    pub fn new(name: &str, request: &Value, response_schema: &Value) -> Self {
        match asked(name, request, response_schema) {
            Ok(asked) => Self(Draft::new(InterruptKind::Custom, None).set(|ask| *ask = asked)),
            Err(mistake) => Self(Draft::refused(InterruptKind::Custom, mistake)),
        }
    }

    /// The name and the version of the schemas, which replay compares.
    pub fn schema(self, id: impl Into<String>, version: impl Into<String>) -> Self {
        let (id, version) = (id.into(), version.into());
        Self(self.0.set(|ask| (ask.schema_id, ask.schema_version) = (Some(id), Some(version))))
    }
}

impl Ask for SchemaAsk {
    type Answer = Value;

    fn question(&self) -> Result<Question, AskError> {
        self.0.question()
    }

    fn decode(&self, response: &ResumeResponse) -> Result<Value, AnswerError> {
        decode::value(response)
    }
}

fn asked(name: &str, request: &Value, response_schema: &Value) -> Result<Asked, AskError> {
    if name.trim().is_empty() {
        return Err(AskError::EmptyPart { part: "contract name" });
    }
    within("contract name", name.chars().count(), MAX_CONTRACT_NAME_CHARS, "characters")?;
    let request = RawJson::of(request).map_err(|source| AskError::Json { part: "request", source })?;
    within("request", text_depth(request.get()), MAX_DEPTH, "levels")?;
    let schema = RawJson::of(response_schema).map_err(|source| AskError::Json { part: "response schema", source })?;
    SchemaValidator::compile_raw(&schema).map_err(|source| ContractError::Schema {
        contract: name.to_owned(),
        part: "response",
        source,
    })?;
    Ok(Asked {
        contract: Some(name.to_owned()),
        request: Some(request),
        response_schema: Some(schema),
        ..Asked::new(InterruptKind::Custom)
    })
}
