//! Questions that a model may ask a person.

use std::{sync::Arc, time::Duration};

use kortyx_contracts::{
    Ask as _, AskError, AskExt as _, BoxAsk, ContractAsk, ContractError, ContractInfo, InterruptContract,
};
use kortyx_protocol::RawJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::ToolDeclaration;

/// What the names of the tools begin with by which a model asks. The rest is the contract's name.
pub const REQUEST_INPUT_PREFIX: &str = "kortyx_request_input__";

/// The contracts with which a model may ask a person, and the rules for it.
///
/// Each contract becomes a tool whose arguments are the contract's request and whose result is the answer.
///
/// ```
/// use kortyx_contracts::InterruptContract;
/// use kortyx_reason::Interrupts;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, JsonSchema)]
/// # struct Ambiguity { question: String }
/// # #[derive(Serialize, Deserialize, JsonSchema)]
/// # struct Clarification { text: String }
///
/// const CLARIFY: InterruptContract<Ambiguity, Clarification> = InterruptContract::new("clarify")
///     .description("Ask when the task can be read in several ways")
///     .schema_id("acme.clarify")
///     .version("1");
///
/// let interrupts = Interrupts::optional().contract(&CLARIFY).max_requests(2);
/// # let _ = interrupts;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Interrupts {
    pub(crate) required: bool,
    pub(crate) max_requests: u32,
    contracts: Vec<Askable>,
}

/// Makes a contract's question from a request.
type AskWith = Arc<dyn Fn(&Value) -> ContractAsk<Value> + Send + Sync>;

#[derive(Clone)]
struct Askable {
    info: ContractInfo,
    request_schema: Result<RawJson, ContractError>,
    ask: AskWith,
    expires_in: Option<Duration>,
}

impl Interrupts {
    /// The model must have asked before its final answer counts.
    pub fn required() -> Self {
        Self { required: true, ..Self::optional() }
    }

    /// The model may ask.
    pub fn optional() -> Self {
        Self { required: false, max_requests: u32::MAX, contracts: Vec::new() }
    }

    /// It may ask with this contract.
    pub fn contract<Req, Res>(mut self, contract: &InterruptContract<Req, Res>) -> Self
    where
        Req: JsonSchema + 'static,
        Res: JsonSchema + 'static,
    {
        let contract = *contract;
        let checked = contract.check().and_then(|()| contract.request_schema());
        self.contracts.push(Askable {
            info: contract.info(),
            request_schema: checked,
            ask: Arc::new(move |request| contract.ask_value(request)),
            expires_in: None,
        });
        self
    }

    /// Questions of the contract that was added last may be answered this long.
    pub fn expires_in(mut self, time: Duration) -> Self {
        if let Some(last) = self.contracts.last_mut() {
            last.expires_in = Some(time);
        }
        self
    }

    /// How many questions it may ask in all. After the last one it is told so and can ask no more.
    pub fn max_requests(mut self, requests: u32) -> Self {
        self.max_requests = requests;
        self
    }

    /// The tools that stand for the contracts, or why one cannot.
    pub(crate) fn declarations(&self) -> Result<Vec<ToolDeclaration>, ContractError> {
        let declare = |contract: &Askable| {
            Ok(ToolDeclaration {
                name: format!("{REQUEST_INPUT_PREFIX}{}", contract.info.name),
                description: contract.info.description.to_owned(),
                parameters: contract.request_schema.clone()?,
            })
        };
        self.contracts.iter().map(declare).collect()
    }

    /// Whether the model can ask at all.
    pub(crate) fn can_ask(&self) -> bool {
        self.max_requests > 0 && !self.contracts.is_empty()
    }

    /// Whether there is a contract with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// What is wrong with a request, for the model.
    pub(crate) fn refuse(&self, name: &str, request: &Value) -> Option<String> {
        let asked = self.find(name).map(|contract| (contract.ask)(request).question());
        match asked? {
            Ok(_) => None,
            Err(AskError::Request { issues, .. }) => Some(crate::issues::listed(&issues)),
            Err(other) => Some(other.to_string()),
        }
    }

    /// The question.
    pub(crate) fn ask(&self, name: &str, request: &Value) -> Option<BoxAsk<Value>> {
        let contract = self.find(name)?;
        let ask = (contract.ask)(request);
        Some(match contract.expires_in {
            Some(time) => Box::new(ask.expires_in(time)),
            None => Box::new(ask),
        })
    }

    /// The contract's schema id and version.
    pub(crate) fn info(&self, name: &str) -> Option<ContractInfo> {
        self.find(name).map(|contract| contract.info)
    }

    fn find(&self, name: &str) -> Option<&Askable> {
        self.contracts.iter().find(|contract| contract.info.name == name)
    }
}

/// Questions that a model asked, with their answers, in the order in which it asked them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InterruptHistory(pub(crate) Vec<AskedAndAnswered>);

/// A question that a model asked, and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AskedAndAnswered {
    /// The contract's name.
    pub contract: String,
    /// The name of its schemas.
    pub schema_id: String,
    /// Their version.
    pub schema_version: String,
    /// The call by which it was asked.
    pub call_id: String,
    /// What was asked.
    pub request: Value,
    /// What was answered.
    pub response: Value,
}

impl InterruptHistory {
    /// All of them, as JSON.
    pub fn all(&self) -> &[AskedAndAnswered] {
        &self.0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was asked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The answers to questions of this contract, as their type.
    ///
    /// # Errors
    /// An answer does not read as the type.
    pub fn answers<Req, Res: DeserializeOwned>(
        &self,
        contract: &InterruptContract<Req, Res>,
    ) -> Result<Vec<Res>, serde_json::Error> {
        self.of(contract.info()).map(|asked| Res::deserialize(&asked.response)).collect()
    }

    /// The questions of this contract, as their type.
    ///
    /// # Errors
    /// A request does not read as the type.
    pub fn requests<Req: DeserializeOwned, Res>(
        &self,
        contract: &InterruptContract<Req, Res>,
    ) -> Result<Vec<Req>, serde_json::Error> {
        self.of(contract.info()).map(|asked| Req::deserialize(&asked.request)).collect()
    }

    fn of(&self, info: ContractInfo) -> impl Iterator<Item = &AskedAndAnswered> {
        self.0.iter().filter(move |asked| {
            asked.contract == info.name && asked.schema_id == info.schema_id && asked.schema_version == info.version
        })
    }
}
