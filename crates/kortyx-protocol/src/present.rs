//! Reading optional fields whose `null` is a value.

use serde::{Deserialize, Deserializer};

/// For `deserialize_with`, with `default`: a field that is there is `Some`, even when it is `null`.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
