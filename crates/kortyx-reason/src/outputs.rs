//! What a model may deliver while it works, and what it ends with.

use std::sync::Arc;

use kortyx_contracts::{ContractError, ContractInfo, OutputContract, OutputError};
use kortyx_protocol::RawJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    ToolDeclaration,
    partial::{Field, FieldError, Fields, Wrapping},
};

/// What the names of the tools begin with by which a model emits.
pub const EMIT_PREFIX: &str = "kortyx_emit__";

/// What the names of the tools begin with by which a model returns.
pub const RETURN_PREFIX: &str = "kortyx_return__";

/// The contracts of what a model may emit and of what it ends with.
///
/// Each becomes a tool of the model, `kortyx_emit__<name>` or `kortyx_return__<name>`, with the contract's description and schema. What
/// does not fit goes back to the model, within the steps of the call.
///
/// ```
/// use kortyx_contracts::OutputContract;
/// use kortyx_reason::{Outputs, partial::Field};
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// # #[derive(Deserialize, JsonSchema)]
/// # struct Card { title: String, body: String }
/// # #[derive(Deserialize, JsonSchema)]
/// # struct Verdict { good: bool }
///
/// const CARD: OutputContract<Card> =
///     OutputContract::new("card").description("Shows a card").schema_id("acme.card").version("1");
/// const VERDICT: OutputContract<Verdict> =
///     OutputContract::new("verdict").description("Ends with a verdict").schema_id("acme.verdict").version("1");
///
/// let outputs = Outputs::new()
///     .emit(&CARD)
///     .fields([Field::set("title"), Field::text_delta("body")])
///     .returns(&VERDICT);
/// # let _ = outputs;
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Outputs {
    contracts: Vec<Declared>,
}

/// A contract to deliver with.
#[derive(Clone)]
pub(crate) struct Declared {
    pub(crate) info: ContractInfo,
    /// It ends the call.
    pub(crate) returns: bool,
    /// Clients hear of it.
    pub(crate) is_streamed: bool,
    schema: Result<RawJson, ContractError>,
    accept: AcceptWith,
    paths: Vec<Field>,
    fields: Result<Fields, FieldError>,
}

/// Says whether a value fits a contract.
type AcceptWith = Arc<dyn Fn(&Value) -> Result<(), OutputError> + Send + Sync>;

impl Outputs {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// The model may emit this, any number of times. Each is validated and streamed to the client as structured data.
    pub fn emit<T: DeserializeOwned + JsonSchema + 'static>(self, contract: &OutputContract<T>) -> Self {
        self.with(*contract, false)
    }

    /// The model ends with this. Of several such contracts it chooses one; a final answer in words no longer counts.
    pub fn returns<T: DeserializeOwned + JsonSchema + 'static>(self, contract: &OutputContract<T>) -> Self {
        self.with(*contract, true)
    }

    /// Fields of the contract that was added last that are streamed while the model writes them.
    ///
    /// What is emitted is streamed in any case, as a whole when nothing is declared here. What is returned is streamed when this is
    /// called. A path that the contract's schema does not have is an error when the call begins.
    pub fn fields(mut self, fields: impl IntoIterator<Item = Field>) -> Self {
        if let Some(last) = self.contracts.last_mut() {
            last.paths = fields.into_iter().collect();
            last.fields = Fields::new(last.paths.iter().cloned());
            last.is_streamed = true;
        }
        self
    }

    fn with<T: DeserializeOwned + JsonSchema + 'static>(mut self, contract: OutputContract<T>, returns: bool) -> Self {
        self.contracts.push(Declared {
            info: contract.info(),
            returns,
            is_streamed: !returns,
            schema: contract.check().and_then(|()| contract.schema()),
            accept: Arc::new(move |value| contract.decode(value).map(drop)),
            paths: Vec::new(),
            fields: Ok(Fields::default()),
        });
        self
    }

    /// The tools that stand for the contracts, or what is wrong with one.
    pub(crate) fn declarations(&self) -> Result<Vec<ToolDeclaration>, String> {
        self.contracts.iter().map(Declared::declaration).collect()
    }

    /// The contract that a tool stands for.
    pub(crate) fn find(&self, tool: &str) -> Option<&Declared> {
        let (name, returns) = delivery_of(tool)?;
        self.contracts.iter().find(|contract| contract.info.name == name && contract.returns == returns)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.contracts.is_empty()
    }

    /// The tools by which the model may end the call.
    pub(crate) fn endings(&self) -> impl Iterator<Item = String> {
        self.contracts.iter().filter(|contract| contract.returns).map(Declared::tool)
    }
}

impl Declared {
    fn tool(&self) -> String {
        format!("{}{}", if self.returns { RETURN_PREFIX } else { EMIT_PREFIX }, self.info.name)
    }

    fn declaration(&self) -> Result<ToolDeclaration, String> {
        let name = self.info.name;
        let parameters = self.schema.clone().map_err(|error| error.to_string())?;
        let schema = parameters.to_value().map_err(|error| format!("the schema of the contract `{name}`: {error}"))?;
        if Wrapping::for_schema(&schema) != Wrapping::AroundObject {
            return Err(format!("the contract `{name}` cannot be delivered: its type is to be an object"));
        }
        check_fields(&self.paths, &self.fields, &schema).map_err(|why| format!("the contract `{name}`: {why}"))?;
        Ok(ToolDeclaration { name: self.tool(), description: self.info.description.to_owned(), parameters })
    }

    /// Whether anything is streamed before the end.
    pub(crate) fn has_fields(&self) -> bool {
        !self.paths.is_empty()
    }

    /// What is streamed while the model writes.
    pub(crate) fn fields(&self) -> Fields {
        self.fields.clone().unwrap_or_default()
    }

    /// Whether a value fits.
    pub(crate) fn accept(&self, value: &Value) -> Result<(), OutputError> {
        (self.accept)(value)
    }
}

/// What is wrong with declared fields: by themselves, or for values of a schema.
pub(crate) fn check_fields(
    declared: &[Field],
    fields: &Result<Fields, FieldError>,
    schema: &Value,
) -> Result<(), FieldError> {
    fields.as_ref().map_err(Clone::clone)?;
    declared.iter().try_for_each(|field| field.check_in(schema))
}

/// The name of the contract that a control tool delivers with, and whether it returns.
pub(crate) fn delivery_of(tool: &str) -> Option<(&str, bool)> {
    let emits = tool.strip_prefix(EMIT_PREFIX).map(|name| (name, false));
    emits.or_else(|| tool.strip_prefix(RETURN_PREFIX).map(|name| (name, true)))
}

/// What a model delivered with a contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Delivered {
    /// The contract's name.
    pub contract: String,
    /// The name of its schema.
    pub schema_id: String,
    /// Its version.
    pub schema_version: String,
    /// The call by which it was delivered.
    pub call_id: String,
    /// The structured stream in which a client got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_id: Option<String>,
    /// The validated value.
    pub data: Value,
}

impl Delivered {
    /// The value as the contract's type; nothing when it was delivered with another contract.
    ///
    /// # Errors
    /// It does not read as the type.
    pub fn decode<T: DeserializeOwned>(&self, contract: &OutputContract<T>) -> Result<Option<T>, serde_json::Error> {
        let info = contract.info();
        let is_of =
            self.contract == info.name && self.schema_id == info.schema_id && self.schema_version == info.version;
        is_of.then(|| T::deserialize(&self.data)).transpose()
    }
}

/// What a model emitted, in the order in which it did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Emissions(pub(crate) Vec<Delivered>);

impl Emissions {
    /// All of them, as JSON.
    pub fn all(&self) -> &[Delivered] {
        &self.0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was emitted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of this contract, as its type.
    ///
    /// # Errors
    /// One does not read as the type.
    pub fn of<T: DeserializeOwned>(&self, contract: &OutputContract<T>) -> Result<Vec<T>, serde_json::Error> {
        self.0.iter().filter_map(|emission| emission.decode(contract).transpose()).collect()
    }
}
