//! Reading and writing JSON without losing anything: no number is rounded, none silently becomes `null`.

mod exact;
mod finite;
mod sorted;

use std::{error::Error, fmt};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

pub(crate) use self::exact::refuse_inexact;

/// Why a value is not JSON, or JSON is not a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// Where, as a JSON pointer; empty for the whole value or when unknown.
    pub path: String,
    /// What is wrong, a lower-case fragment.
    pub message: String,
}

impl JsonError {
    /// An error at this place.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    pub(crate) fn of(error: &serde_json::Error) -> Self {
        Self::new("", error.to_string())
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, " at {}", self.path) }
    }
}

impl Error for JsonError {}

/// Reads JSON. Refuses integers outside `i64::MIN..=u64::MAX` with their path.
///
/// ```
/// use kortyx_protocol::json;
/// use serde_json::Value;
///
/// let error = json::from_str::<Value>(r#"{"ids":[1,100000000000000000000]}"#).unwrap_err();
/// assert_eq!(error.path, "/ids/1");
/// ```
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    match serde_json::from_str(text) {
        // A number that does not fit its field is better explained by the check.
        Err(error) if !error.is_data() => Err(JsonError::of(&error)),
        outcome => {
            refuse_inexact(text)?;
            outcome.map_err(|error| JsonError::of(&error))
        }
    }
}

/// Reads JSON. Refuses what is not UTF-8, and integers outside `i64::MIN..=u64::MAX` with their path.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, JsonError> {
    let text = str::from_utf8(bytes).map_err(|error| JsonError::new("", error.to_string()))?;
    from_str(text)
}

/// Writes JSON. Refuses NaN and infinities with their path.
///
/// ```
/// use kortyx_protocol::json;
///
/// let error = json::to_string(&[("rate", f64::NAN)]).unwrap_err();
/// assert_eq!(error.path, "/0/1");
/// ```
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, JsonError> {
    let text = serde_json::to_string(value).map_err(|error| JsonError::of(&error))?;
    refuse_hidden(value, &text)?;
    Ok(text)
}

/// Refuses NaN and infinities in a value that was written as this text.
pub(crate) fn refuse_hidden<T: Serialize + ?Sized>(value: &T, text: &str) -> Result<(), JsonError> {
    // `serde_json` writes what is not finite as `null`; without a `null` there is nothing to look for.
    if text.contains("null") { finite::refuse_non_finite(value) } else { Ok(()) }
}

/// Writes JSON. Refuses NaN and infinities with their path.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, JsonError> {
    to_string(value).map(String::into_bytes)
}

/// Writes JSON whose equality is the equality of values: keys sorted by their bytes, no white space.
///
/// Refuses NaN, infinities and integers outside `i64::MIN..=u64::MAX`, with their path. The order of keys does not depend on
/// how `serde_json` was built.
///
/// ```
/// use kortyx_protocol::json;
/// use serde_json::json;
///
/// assert_eq!(json::canonical(&json!({"b": 1.50, "a": [true]}))?, r#"{"a":[true],"b":1.5}"#);
/// # Ok::<(), kortyx_protocol::JsonError>(())
/// ```
pub fn canonical<T: Serialize + ?Sized>(value: &T) -> Result<String, JsonError> {
    let value: Value = from_str(&to_string(value)?)?;
    Ok(sorted::write(&value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_ends_of_the_exact_range_survive() {
        for text in ["18446744073709551615", "-9223372036854775808", "0", "-0.0", "0.1", "1e300", "5e-324"] {
            let value: Value = from_str(text).unwrap();
            assert_eq!(from_str::<Value>(&to_string(&value).unwrap()).unwrap(), value);
        }
        assert_eq!(from_str::<u64>("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(from_str::<i64>("-9223372036854775808"), Ok(i64::MIN));
    }

    #[test]
    fn an_integer_outside_the_range_is_refused_with_its_path() {
        let error = from_str::<Value>(r#"{"a":[{"b/c":1}, {"b/c": 18446744073709551616}]}"#).unwrap_err();
        assert_eq!(error.path, "/a/1/b~1c");
        assert!(error.to_string().ends_with(" at /a/1/b~1c"), "{error}");
        assert_eq!(from_str::<i64>("99999999999999999999").unwrap_err().path, "");
        assert!(from_slice::<Value>(&"7".repeat(40).into_bytes()).is_err());
    }

    #[test]
    fn what_is_not_json_is_refused() {
        assert!(from_str::<Value>("{\"a\":").is_err());
        assert!(from_str::<Value>("1e999").is_err());
        assert!(from_slice::<Value>(b"\"\xff\"").is_err());
        assert!(from_str::<Value>(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn a_canonical_text_does_not_depend_on_the_order_of_keys() {
        let text = r#"{"b":{"z":null,"é":1,"Z":2},"a":"\u00e9\n"}"#;
        let sorted = r#"{"a":"é\n","b":{"Z":2,"z":null,"é":1}}"#;
        assert_eq!(canonical(&from_str::<Value>(text).unwrap()).unwrap(), sorted);
        assert_eq!(canonical(&from_str::<Value>(sorted).unwrap()).unwrap(), sorted);
        assert_eq!(canonical(&json!({"n": u128::from(u64::MAX)})).unwrap(), r#"{"n":18446744073709551615}"#);
        assert_eq!(canonical(&[u128::MAX]).unwrap_err().path, "/0");
    }

    proptest! {
        #[test]
        fn every_exact_integer_survives(integer in prop_oneof![
            any::<u64>().prop_map(i128::from),
            any::<i64>().prop_map(i128::from),
        ]) {
            let text = integer.to_string();
            let value: Value = from_str(&text).unwrap();
            prop_assert_eq!(canonical(&value).unwrap(), text);
        }

        #[test]
        fn an_integer_survives_or_is_refused(digits in "-?[1-9][0-9]{15,45}") {
            let fits = digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok();
            let value = from_str::<Value>(&format!("[{digits}]"));
            prop_assert_eq!(value.is_ok(), fits);
            if let Ok(value) = value {
                prop_assert_eq!(to_string(&value).unwrap(), format!("[{digits}]"));
            }
        }

        #[test]
        fn every_float_survives(float in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO) {
            let text = to_string(&float).unwrap();
            prop_assert_eq!(from_str::<f64>(&text).unwrap().to_bits(), float.to_bits());
        }
    }
}
