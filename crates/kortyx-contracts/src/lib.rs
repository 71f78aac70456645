//! Questions and answers of Kortyx: kinds, typed contracts, JSON Schema, validation.
//!
#![doc = include_str!("../README.md")]

extern crate self as kortyx_contracts;

mod answer;
mod ask;
mod check;
mod contract;
mod error;
mod excerpt;
pub mod limits;
mod meta;
mod option;
mod question;
mod schema;

pub use ask::{
    Ask, AskExt, BoxAsk, Choice, ChoiceOf, Configured, ContractAsk, MultiChoice, MultiChoiceOf, MultiPicker,
    OptionalCancel, Picker, Respond, SchemaAsk, Text,
};
pub use contract::{ContractInfo, InterruptContract, OutputContract};
pub use error::{AnswerError, AskError, ContractError, OutputError};
pub use kortyx_contracts_derive::ChoiceOptions;
#[doc(hidden)]
pub use kortyx_contracts_derive::FacadeChoiceOptions;
pub use option::{ChoiceOption, ChoiceOptions, QuestionOption, StaticOption};
pub use question::Question;
pub use schema::{SchemaError, SchemaValidator};
