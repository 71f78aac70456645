//! Contracts of questions: a request and a response.

use std::{borrow::Borrow, fmt, marker::PhantomData};

use kortyx_protocol::{InterruptKind, RawJson};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{ContractInfo, named_contract};
use crate::{
    AskError, ContractAsk, ContractError,
    check::within,
    limits::MAX_DEPTH,
    question::Asked,
    schema::{Direction, text_depth},
};

/// A named, versioned pair of types: what is asked, and what is answered.
///
/// Both schemas are generated from the types, once per process. The response schema is stored with each question, so any
/// process can refuse a wrong answer before it is accepted, without the code that asked. Change the version when the
/// meaning of a type changes: replay compares it.
///
/// ```
/// use kortyx_contracts::{Ask, InterruptContract};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, JsonSchema)]
/// struct Draft {
///     title: String,
/// }
///
/// #[derive(Debug, Deserialize, JsonSchema)]
/// struct Release {
///     #[schemars(length(min = 1))]
///     audience: String,
/// }
///
/// const RELEASE: InterruptContract<Draft, Release> = InterruptContract::new("release")
///     .description("When and for whom a draft is published")
///     .schema_id("acme.release")
///     .version("1");
///
/// let ask = RELEASE.ask(Draft { title: "Q3".into() }); // its answer is a `Release`
/// assert_eq!(ask.question()?.identity(), "custom:release@acme.release/1");
/// # Ok::<(), kortyx_contracts::AskError>(())
/// ```
#[must_use]
pub struct InterruptContract<Req, Res> {
    info: ContractInfo,
    types: PhantomData<fn(Req) -> Res>,
}

named_contract!(InterruptContract<Req, Res>);

impl<Req: JsonSchema + 'static, Res: JsonSchema + 'static> InterruptContract<Req, Res> {
    /// Refuses a contract that breaks a rule or whose schemas cannot be used. Asking does the same; this is for start-up.
    pub fn check(&self) -> Result<(), ContractError> {
        self.info.check()?;
        self.request_schema()?;
        self.response_schema()?;
        Ok(())
    }

    /// JSON Schema (2020-12) of what is asked.
    pub fn request_schema(&self) -> Result<RawJson, ContractError> {
        Ok(self.info.schema::<Req>("request", Direction::Written)?.raw)
    }

    /// JSON Schema (2020-12) of what is answered.
    pub fn response_schema(&self) -> Result<RawJson, ContractError> {
        Ok(self.info.schema::<Res>("response", Direction::Read)?.raw)
    }

    /// Refuses a request that does not fit its schema: for one that something else than the type has made.
    pub fn validate_request(&self, request: &Value) -> Result<(), AskError> {
        let issues = self.info.schema::<Req>("request", Direction::Written)?.validator.validate(request);
        if issues.is_empty() { Ok(()) } else { Err(AskError::Request { contract: self.info.name.to_owned(), issues }) }
    }

    /// Asks it with a request that something else than the type has made, such as a model. The answer is the JSON value.
    ///
    /// The request and the answer are checked like any other.
    pub fn ask_value(&self, request: &Value) -> ContractAsk<Value> {
        let request = RawJson::of(request).map_err(|source| AskError::Json { part: "request", source });
        ContractAsk::new(request.and_then(|request| self.asked(request)))
    }

    fn asked(&self, request: RawJson) -> Result<Asked, AskError> {
        self.info.check()?;
        let not_json = |source| AskError::Json { part: "request", source };
        within("request", text_depth(request.get()), MAX_DEPTH, "levels")?;
        self.validate_request(&request.to_value().map_err(not_json)?)?;
        Ok(Asked {
            contract: Some(self.info.name.to_owned()),
            schema_id: Some(self.info.schema_id.to_owned()),
            schema_version: Some(self.info.version.to_owned()),
            request: Some(request),
            response_schema: Some(self.response_schema()?),
            ..Asked::new(InterruptKind::Custom)
        })
    }
}

impl<Req: Serialize + JsonSchema + 'static, Res: DeserializeOwned + JsonSchema + Send + 'static>
    InterruptContract<Req, Res>
{
    /// Asks it. The request is checked against its own schema; what is wrong comes out of
    /// [`Ask::question`](crate::Ask::question).
    pub fn ask(&self, request: impl Borrow<Req>) -> ContractAsk<Res> {
        let request = RawJson::of(request.borrow()).map_err(|source| AskError::Json { part: "request", source });
        ContractAsk::new(request.and_then(|request| self.asked(request)))
    }
}
