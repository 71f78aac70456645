//! What a parser error means for the author of a workflow.

use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use super::super::name::{listed, nearest, shown};

/// What is wrong with the text and what to do; without the place.
pub(super) fn message(error: &Error) -> String {
    match error.without_snippet() {
        Error::SerdeUnknownField { field, expected, .. } => unknown_key(field, expected),
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing: add it"),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key {} is here twice: remove one of them", shown(key))
        }
        Error::MultipleDocuments { .. } => {
            "a second document begins: keep one workflow per text, without `---` between".to_owned()
        }
        Error::Eof { .. } => {
            "the text ends too early or is empty: write the keys `id`, `version` and `nodes`".to_owned()
        }
        Error::Unexpected { expected, .. } => format!("the value has the wrong form: write {}", form(expected)),
        Error::NullIntoString { .. } => "the value is missing: write a text".to_owned(),
        Error::InvalidScalar { ty, .. } => format!("the value has the wrong type: write {}", scalar(ty)),
        other => UserMessageFormatter.format_message(other).into_owned(),
    }
}

fn unknown_key(key: &str, expected: &[&str]) -> String {
    let hint = match nearest(key, expected.iter().copied()) {
        Some(near) => format!("did you mean {}?", shown(near)),
        None => format!("remove it or use one of {}", listed(expected.iter().copied())),
    };
    format!("the key {} is unknown here; {hint}", shown(key))
}

/// The parser's names for the forms of YAML, in plain words.
fn form(expected: &'static str) -> &'static str {
    match expected {
        "sequence start" => "a list",
        "mapping start" => "a mapping of keys to values",
        "string scalar" | "scalar" => "a text",
        other => other,
    }
}

fn scalar(ty: &'static str) -> &'static str {
    match ty {
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number from 0 to 18446744073709551615",
        "floating point" => "a number",
        "boolean" => "`true` or `false`",
        other => other,
    }
}
