//! The ask of a contract.

use std::{fmt, marker::PhantomData};

use kortyx_protocol::{InterruptKind, ResumeResponse};
use serde::{Serialize, de::DeserializeOwned};

use super::{Ask, Respond, decode, draft::Draft};
use crate::{AnswerError, AskError, Question, option::exact, question::Asked};

/// Asks what a contract asks; made by [`InterruptContract::ask`](crate::InterruptContract::ask).
#[must_use]
pub struct ContractAsk<Res>(Draft, PhantomData<fn() -> Res>);

impl<Res> ContractAsk<Res> {
    pub(crate) fn new(asked: Result<Asked, AskError>) -> Self {
        let draft = match asked {
            Ok(asked) => Draft::new(InterruptKind::Custom, None).set(|ask| *ask = asked),
            Err(mistake) => Draft::refused(InterruptKind::Custom, mistake),
        };
        Self(draft, PhantomData)
    }
}

impl<Res: DeserializeOwned + Send + 'static> Ask for ContractAsk<Res> {
    type Answer = Res;

    fn question(&self) -> Result<Question, AskError> {
        self.0.question()
    }

    fn decode(&self, response: &ResumeResponse) -> Result<Res, AnswerError> {
        decode::value(response)
    }
}

impl<Res: DeserializeOwned + Serialize + Send + 'static> Respond for ContractAsk<Res> {
    fn respond(&self, answer: Res) -> Result<ResumeResponse, AskError> {
        let value = exact(&answer).and_then(|raw| raw.to_value());
        let value = value.map_err(|source| AskError::Json { part: "default answer", source })?;
        Ok(ResumeResponse::Value { value })
    }
}

impl<Res> Clone for ContractAsk<Res> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<Res> fmt::Debug for ContractAsk<Res> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ContractAsk").field(&self.0).finish()
    }
}
