//! JSON kept as text, so that nothing of it is lost.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use crate::json::{self, JsonError};

/// One JSON value kept as its text, byte for byte; cheap to clone.
///
/// Numbers of any size survive, because nothing reads them before [`decode`](Self::decode) does. Two are equal when their
/// texts are. Reads only from `serde_json`, and not from inside internally tagged enums.
///
/// ```
/// use kortyx_protocol::RawJson;
///
/// let state = RawJson::of(&u128::MAX)?;
/// assert_eq!(state.get(), "340282366920938463463374607431768211455");
/// assert_eq!(state.decode::<u128>()?, u128::MAX);
/// assert!(state.to_value().is_err(), "a `Value` would round it");
/// # Ok::<(), kortyx_protocol::JsonError>(())
/// ```
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// The JSON of this value. Refuses NaN and infinities with their path.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        // Not through a text: what `serde_json` wrote need not be read to know that it is JSON.
        let raw = to_raw_value(value).map_err(|error| JsonError::of(&error))?;
        json::refuse_hidden(value, raw.get())?;
        Ok(Self(raw.into()))
    }

    /// JSON from outside. Refuses what is not JSON, and integers outside `i64::MIN..=u64::MAX` with their path.
    pub fn parse(text: impl Into<String>) -> Result<Self, JsonError> {
        let raw = Self::verbatim(text.into())?;
        json::refuse_inexact(raw.get())?;
        Ok(raw)
    }

    fn verbatim(text: String) -> Result<Self, JsonError> {
        RawValue::from_string(text).map(|raw| Self(raw.into())).map_err(|error| JsonError::of(&error))
    }

    /// `null`.
    pub fn null() -> Self {
        static NULL: LazyLock<RawJson> = LazyLock::new(|| RawJson(RawValue::NULL.to_owned().into()));
        NULL.clone()
    }

    /// Its text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// Reads it as a `T`. A field that is a float takes an integer of any size, rounded; one that is a `u128` takes it
    /// exactly.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        serde_json::from_str(self.get()).map_err(|error| JsonError::of(&error))
    }

    /// Reads it as a `Value`. Refuses integers that a `Value` would round, with their path.
    pub fn to_value(&self) -> Result<Value, JsonError> {
        json::from_str(self.get())
    }
}

impl Default for RawJson {
    fn default() -> Self {
        Self::null()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({})", self.get())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self(raw.into()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct State {
        amount: u128,
        rest: RawJson,
    }

    #[test]
    fn state_keeps_numbers_that_a_value_would_round() {
        let forty = "1234567890123456789012345678901234567890";
        let state = State { amount: u128::MAX, rest: serde_json::from_str(forty).unwrap() };
        let raw = RawJson::of(&state).unwrap();
        assert_eq!(raw.decode::<State>().unwrap(), state);
        assert!(raw.get().contains(forty));
        assert_eq!(raw.to_value().unwrap_err().path, "/amount");
    }

    #[test]
    fn json_from_outside_is_checked() {
        assert_eq!(RawJson::parse(r#"{"a":[1e3]}"#).unwrap().to_value().unwrap(), json!({"a": [1000.0]}));
        assert_eq!(RawJson::parse("[1,-9223372036854775809]").unwrap_err().path, "/1");
        assert!(RawJson::parse("").is_err());
        assert!(RawJson::parse("[1").is_err());
        assert!(RawJson::parse("1 2").is_err());
        assert!(RawJson::parse("nul").is_err());
    }

    #[test]
    fn a_text_too_deep_for_a_value_is_refused_when_it_is_read() {
        let deep = RawJson::parse(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
        if let Ok(deep) = deep {
            assert!(deep.to_value().is_err());
        }
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        assert_eq!(RawJson::of(&[1.0, f64::NAN]).unwrap_err().path, "/1");
    }

    #[test]
    fn it_travels_as_the_json_that_it_is() {
        let raw = RawJson::parse(r#"{"b":1,"a":1.50}"#).unwrap();
        assert_eq!(json::to_string(&[&raw, &RawJson::null()]).unwrap(), r#"[{"b":1,"a":1.50},null]"#);
        assert_eq!(json::from_str::<RawJson>(r#"{"b":1,"a":1.50}"#).unwrap(), raw);
        assert!(RawJson::default().is_null());
    }
}
