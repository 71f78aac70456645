//! What is told of a question, besides where it was asked.

use std::fmt;

use kortyx_contracts::Question;
use kortyx_protocol::{InterruptKind, InterruptOption, RawJson, Timestamp};
use kortyx_runtime::Captures;
use kortyx_store::InterruptRecord;

/// What a question is like. Nothing of what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskedFacts {
    /// What form of answer it wants.
    pub kind: InterruptKind,
    /// How a person gets at the answer.
    pub mode: InteractionMode,
    /// The author's id of it.
    pub id: Option<String>,
    /// The id of its schema.
    pub schema_id: Option<String>,
    /// The version of its schema.
    pub schema_version: Option<String>,
    /// The contract that it is asked with.
    pub contract: Option<String>,
    /// How many options it comes with.
    pub option_count: usize,
    /// When it was published, on the store's clock.
    pub created_at: Timestamp,
    /// Its absolute deadline, on the store's clock.
    pub expires_at: Timestamp,
    /// An answer applies when its time runs out.
    pub has_default: bool,
    /// It was asked after the response was completed.
    pub after_response_completed: bool,
}

/// How a person gets at an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InteractionMode {
    /// By writing.
    Freeform,
    /// By choosing of the options that came with the question.
    StaticOptions,
    /// By choosing of options that the client finds.
    DynamicPicker,
    /// By a value that fits a contract.
    Contract,
}

impl InteractionMode {
    /// The stable lower-case name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Freeform => "freeform",
            Self::StaticOptions => "static-options",
            Self::DynamicPicker => "dynamic-picker",
            Self::Contract => "contract",
        }
    }

    fn of(question: &Question) -> Self {
        match question.kind() {
            InterruptKind::Text => Self::Freeform,
            InterruptKind::Choice | InterruptKind::MultiChoice if question.is_picker() => Self::DynamicPicker,
            InterruptKind::Choice | InterruptKind::MultiChoice => Self::StaticOptions,
            _ => Self::Contract,
        }
    }
}

impl AskedFacts {
    pub(super) fn of(record: &InterruptRecord, question: &Question) -> Self {
        Self {
            kind: question.kind(),
            mode: InteractionMode::of(question),
            id: question.id().map(str::to_owned),
            schema_id: question.schema_id().map(str::to_owned),
            schema_version: question.schema_version().map(str::to_owned),
            contract: question.contract().map(str::to_owned),
            option_count: question.options().len(),
            created_at: record.created_at,
            expires_at: record.expires_at,
            has_default: record.default.is_some(),
            after_response_completed: record.after_response_completed,
        }
    }
}

/// What a question says: what its client sees of it, never the values of options. It does not show in `Debug`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionContent {
    /// The question.
    pub question: Option<String>,
    /// Its options: id, label, description.
    pub options: Vec<InterruptOption>,
    /// The request of a contract.
    pub request: Option<RawJson>,
}

impl QuestionContent {
    pub(super) fn of(question: &Question, captures: Captures) -> Option<Self> {
        let content = || {
            let input = question.input();
            let text = question.question().map(str::to_owned);
            Self { question: text, options: input.options, request: question.request().cloned() }
        };
        captures.output.then(content)
    }
}

impl fmt::Debug for QuestionContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuestionContent(…)")
    }
}
