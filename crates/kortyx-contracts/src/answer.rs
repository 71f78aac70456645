//! Whether an answer fits its question.
//!
//! Choices and texts are judged here, without JSON Schema and without allocating when the answer fits.

use std::collections::HashSet;

use kortyx_protocol::{InterruptKind, Issue, ResumeResponse};
use serde_json::Value;

use crate::{
    Question, QuestionOption, SchemaValidator,
    check::first_duplicate,
    excerpt::excerpt,
    limits::{MAX_OPTION_ID_BYTES, MAX_OPTIONS, MAX_TEXT_LENGTH},
    question::Asked,
};

/// Up to this many comparisons, looking through the options for each id is cheaper than a set of them.
const FEW_COMPARISONS: usize = 256;

impl Question {
    /// Whether an answer fits; if not, everything that is wrong with it.
    ///
    /// - choice: exactly one id; multi-choice: distinct ids, at least one, within the bounds; both: ids among the options, or
    ///   for a picker any that are not empty;
    /// - text: not empty, within the bounds, which count characters;
    /// - contract: a value that is valid under the stored response schema; `null`, `false`, `0` and empty values are values;
    /// - a cancellation always fits.
    ///
    /// An issue's path is a JSON pointer into the answer itself: into the value, into the list of ids (`/1` is the second),
    /// or empty for the whole. Its code is the JSON Schema keyword of the rule that is broken, or `schema` when the stored
    /// schema cannot be used. Never panics, whatever was stored.
    pub fn validate(&self, response: &ResumeResponse) -> Result<(), Vec<Issue>> {
        let ask = self.asked();
        match (ask.kind, response) {
            (_, ResumeResponse::Cancel) => Ok(()),
            (InterruptKind::Choice, ResumeResponse::Select { ids }) => one(ask, ids),
            (InterruptKind::MultiChoice, ResumeResponse::Select { ids }) => several(ask, ids),
            (InterruptKind::Text, ResumeResponse::Text { text }) => typed(ask, text),
            (InterruptKind::Custom, ResumeResponse::Value { value }) => structured(ask, value),
            (kind, response) => refuse("type", format!("{}, not {}", expected(kind), form(response))),
        }
    }
}

/// What an answer to a question of this kind is.
pub(crate) fn expected(kind: InterruptKind) -> &'static str {
    match kind {
        InterruptKind::Choice => "select one option",
        InterruptKind::MultiChoice => "select options",
        InterruptKind::Text => "answer with a text",
        _ => "answer with a structured value",
    }
}

/// What form an answer has.
pub(crate) fn form(response: &ResumeResponse) -> &'static str {
    match response {
        ResumeResponse::Text { .. } => "a text",
        ResumeResponse::Select { .. } => "a selection",
        ResumeResponse::Value { .. } => "a structured value",
        ResumeResponse::Cancel => "a cancellation",
    }
}

/// The refusal of a whole answer.
pub(crate) fn refuse<T>(code: &str, message: impl Into<String>) -> Result<T, Vec<Issue>> {
    Err(vec![Issue::new("", code, message)])
}

fn one(ask: &Asked, ids: &[String]) -> Result<(), Vec<Issue>> {
    match ids {
        [] => refuse("required", "select exactly one option"),
        [id] => known(ask, ids.len()).check(0, id).map_or(Ok(()), |issue| Err(vec![issue])),
        more => refuse("maxItems", format!("select exactly one option, not {}", more.len())),
    }
}

fn several(ask: &Asked, ids: &[String]) -> Result<(), Vec<Issue>> {
    let min = ask.min.unwrap_or(1) as usize;
    let max = ask.max.map_or(MAX_OPTIONS, |max| max as usize);
    if ids.len() < min {
        let code = if ids.is_empty() { "required" } else { "minItems" };
        return refuse(code, format!("select at least {min}, not {}", ids.len()));
    }
    if ids.len() > max {
        return refuse("maxItems", format!("select at most {max}, not {}", ids.len()));
    }
    if let Some((index, id)) = first_duplicate(ids.iter().map(String::as_str)) {
        let message = format!("`{}` is selected twice", excerpt(id));
        return Err(vec![Issue::new(format!("/{index}"), "uniqueItems", message)]);
    }
    let known = known(ask, ids.len());
    let issues: Vec<Issue> = ids.iter().enumerate().filter_map(|(index, id)| known.check(index, id)).collect();
    if issues.is_empty() { Ok(()) } else { Err(issues) }
}

fn typed(ask: &Asked, text: &str) -> Result<(), Vec<Issue>> {
    if text.is_empty() {
        return refuse("required", "the text is empty");
    }
    let length = text.chars().count();
    let min = ask.min_length.unwrap_or(0) as usize;
    let max = ask.max_length.unwrap_or(MAX_TEXT_LENGTH) as usize;
    if length < min {
        return refuse("minLength", format!("write at least {min} characters, not {length}"));
    }
    if length > max {
        return refuse("maxLength", format!("write at most {max} characters, not {length}"));
    }
    Ok(())
}

fn structured(ask: &Asked, value: &Value) -> Result<(), Vec<Issue>> {
    let Some(schema) = &ask.response_schema else {
        return refuse("schema", "the stored question has no response schema");
    };
    let validator = match SchemaValidator::compile_raw(schema) {
        Ok(validator) => validator,
        Err(error) => return refuse("schema", format!("the stored schema does not compile: {error}")),
    };
    let issues = validator.validate(value);
    if issues.is_empty() { Ok(()) } else { Err(issues) }
}

/// The ids that an answer may name.
enum Known<'a> {
    Any,
    Few(&'a [QuestionOption]),
    Many(HashSet<&'a str>),
}

fn known(ask: &Asked, answered: usize) -> Known<'_> {
    if ask.picker {
        Known::Any
    } else if ask.options.len().saturating_mul(answered) <= FEW_COMPARISONS.max(ask.options.len()) {
        Known::Few(&ask.options)
    } else {
        Known::Many(ask.options.iter().map(QuestionOption::id).collect())
    }
}

impl Known<'_> {
    fn check(&self, index: usize, id: &str) -> Option<Issue> {
        let issue = |code: &str, message: String| Some(Issue::new(format!("/{index}"), code, message));
        let is_option = match self {
            Self::Any if id.is_empty() => return issue("minLength", "the id is empty".to_owned()),
            Self::Any if id.len() > MAX_OPTION_ID_BYTES => {
                return issue("maxLength", format!("the id has more than {MAX_OPTION_ID_BYTES} bytes"));
            }
            Self::Any => true,
            Self::Few(options) => options.iter().any(|option| option.id() == id),
            Self::Many(ids) => ids.contains(id),
        };
        if is_option { None } else { issue("enum", format!("`{}` is not one of the options", excerpt(id))) }
    }
}
