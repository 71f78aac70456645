//! Reading answers.

use kortyx_protocol::ResumeResponse;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use crate::{
    AnswerError,
    answer::form,
    excerpt::{MAX_REASON_CHARS, cut, excerpt},
};

/// Largest magnitude below which every integer is a float, 2^53.
const EXACT_FLOATS: f64 = 9_007_199_254_740_992.0;

/// The id of a selection of one.
pub(crate) fn single(response: &ResumeResponse) -> Result<&str, AnswerError> {
    match response {
        ResumeResponse::Select { ids } => match ids.as_slice() {
            [id] => Ok(id),
            [] => Err(AnswerError::Form { expected: "one selected id", found: "none" }),
            _ => Err(AnswerError::Form { expected: "one selected id", found: "several" }),
        },
        other => Err(another("one selected id", other)),
    }
}

/// The ids of a selection.
pub(crate) fn several(response: &ResumeResponse) -> Result<&[String], AnswerError> {
    match response {
        ResumeResponse::Select { ids } => Ok(ids),
        other => Err(another("selected ids", other)),
    }
}

/// A typed text.
pub(crate) fn text(response: &ResumeResponse) -> Result<&str, AnswerError> {
    match response {
        ResumeResponse::Text { text } => Ok(text),
        other => Err(another("a text", other)),
    }
}

/// A structured value, as its type.
pub(crate) fn value<T: DeserializeOwned>(response: &ResumeResponse) -> Result<T, AnswerError> {
    match response {
        ResumeResponse::Value { value } => {
            typed(value).map_err(|error| AnswerError::Decode { message: cut(&error.to_string(), MAX_REASON_CHARS) })
        }
        other => Err(another("a structured value", other)),
    }
}

/// The error for an id that the code does not know.
pub(crate) fn unknown(id: &str) -> AnswerError {
    AnswerError::UnknownOption { id: excerpt(id) }
}

/// Reads a value that is valid under the schema of `T`.
///
/// JSON Schema calls `5.0` an integer and serde does not: what fails as it is, is tried with such floats as integers.
pub(crate) fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(value).or_else(|error| {
        let mut whole = value.clone();
        if whole_floats_to_integers(&mut whole) { T::deserialize(whole).map_err(|_| error) } else { Err(error) }
    })
}

fn whole_floats_to_integers(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => match whole(number) {
            Some(integer) => {
                *number = integer;
                true
            }
            None => false,
        },
        Value::Array(items) => items.iter_mut().fold(false, |any, item| whole_floats_to_integers(item) | any),
        Value::Object(fields) => fields.values_mut().fold(false, |any, field| whole_floats_to_integers(field) | any),
        _ => false,
    }
}

fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    if float.fract() != 0.0 || float.abs() > EXACT_FLOATS {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a whole number within 2^53 is an i64")]
    let integer = float as i64;
    Some(integer.into())
}

fn another(expected: &'static str, response: &ResumeResponse) -> AnswerError {
    match response {
        ResumeResponse::Cancel => AnswerError::Cancelled,
        other => AnswerError::Form { expected, found: form(other) },
    }
}
