//! Times that travel as epoch milliseconds.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Timestamp;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(crate) fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    time.as_millis().serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    i64::deserialize(deserializer).map(Timestamp::from_millis)
}
