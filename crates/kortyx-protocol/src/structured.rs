//! The reducer of structured streams.

mod error;
mod path;
mod streams;

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use self::path::{Slot, locate, segments};
pub use self::{error::ReduceError, streams::StructuredStreams};
use crate::{StructuredChange, StructuredChunk, limits::nests_within};

/// How deep data may nest, so that it can always be sent: `serde_json` reads at most 128 levels.
const MAX_DEPTH: usize = 96;

/// What one structured stream has become, chunk by chunk.
///
/// `set` writes at its path; `append` and `text-delta` add to the array or text there and make it when unset; `final` replaces
/// everything and ends the stream. Missing containers on the way are made: an array where the next segment is a number, an
/// object elsewhere. An index may be at most the array's length, so an array never has gaps. A refused chunk changes nothing.
///
/// Serializes as `{"streamId", "dataType", "status": "streaming"|"done", "data", "node"?, "id"?, "schemaId"?, "schemaVersion"?}`.
///
/// ```
/// use kortyx_protocol::{StructuredChange, StructuredChunk, StructuredData};
/// use serde_json::json;
///
/// let mut data = StructuredData::new("report");
/// let mut apply = |change| data.apply(&StructuredChunk::new("report", "demo.report", change));
/// apply(StructuredChange::Set { path: "rows.0.title".into(), value: json!("One") })?;
/// apply(StructuredChange::Append { path: "rows".into(), items: vec![json!({"title": "Two"})] })?;
/// apply(StructuredChange::TextDelta { path: "rows.1.title".into(), delta: "!".into() })?;
/// assert!(apply(StructuredChange::Set { path: "rows.9".into(), value: json!(null) }).is_err());
/// assert_eq!(data.value(), Some(&json!({"rows": [{"title": "One"}, {"title": "Two!"}]})));
/// # Ok::<(), kortyx_protocol::ReduceError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct StructuredData {
    stream_id: Arc<str>,
    data_type: Arc<str>,
    node: Option<Arc<str>>,
    schema_id: Option<Arc<str>>,
    schema_version: Option<Arc<str>>,
    id: Option<Arc<str>>,
    value: Option<Value>,
    is_final: bool,
}

impl StructuredData {
    /// A stream of which nothing has arrived.
    pub fn new(stream_id: impl Into<Arc<str>>) -> Self {
        Self {
            stream_id: stream_id.into(),
            data_type: Arc::from(""),
            node: None,
            schema_id: None,
            schema_version: None,
            id: None,
            value: None,
            is_final: false,
        }
    }

    /// Applies a change. After an error everything is as before.
    pub fn apply(&mut self, chunk: &StructuredChunk) -> Result<(), ReduceError> {
        if chunk.stream_id != self.stream_id {
            return Err(ReduceError::other_stream(&self.stream_id, &chunk.stream_id));
        }
        if self.is_final {
            return Err(ReduceError::after_final(&self.stream_id));
        }
        self.change(&chunk.change)?;
        self.data_type = Arc::clone(&chunk.data_type);
        replace_when_given(&mut self.node, chunk.node.as_ref());
        replace_when_given(&mut self.schema_id, chunk.schema_id.as_ref());
        replace_when_given(&mut self.schema_version, chunk.schema_version.as_ref());
        replace_when_given(&mut self.id, chunk.id.as_ref());
        Ok(())
    }

    fn change(&mut self, change: &StructuredChange) -> Result<(), ReduceError> {
        match change {
            StructuredChange::Set { path, value } => self.set(path, value),
            StructuredChange::Append { path, items } => self.append(path, items),
            StructuredChange::TextDelta { path, delta } => self.add_text(path, delta),
            StructuredChange::Final { data } => {
                if !nests_within(data, MAX_DEPTH) {
                    return Err(ReduceError::too_deep(""));
                }
                self.value = Some(data.clone());
                self.is_final = true;
                Ok(())
            }
        }
    }

    fn set(&mut self, path: &str, value: &Value) -> Result<(), ReduceError> {
        let segments = segments(path)?;
        if !nests_within(value, MAX_DEPTH.saturating_sub(segments.len())) {
            return Err(ReduceError::too_deep(path));
        }
        match locate(&mut self.value, path, &segments)? {
            Slot::Taken(there) => *there = value.clone(),
            Slot::Free(free) => free.fill(value.clone()),
        }
        Ok(())
    }

    fn append(&mut self, path: &str, items: &[Value]) -> Result<(), ReduceError> {
        let segments = segments(path)?;
        let levels = MAX_DEPTH.saturating_sub(segments.len() + 1);
        if !items.iter().all(|item| nests_within(item, levels)) {
            return Err(ReduceError::too_deep(path));
        }
        match locate(&mut self.value, path, &segments)? {
            Slot::Taken(Value::Array(there)) => there.extend_from_slice(items),
            Slot::Taken(_) => return Err(ReduceError::not_an_array(path)),
            Slot::Free(free) => free.fill(items.to_vec().into()),
        }
        Ok(())
    }

    fn add_text(&mut self, path: &str, delta: &str) -> Result<(), ReduceError> {
        let segments = segments(path)?;
        match locate(&mut self.value, path, &segments)? {
            Slot::Taken(Value::String(there)) => there.push_str(delta),
            Slot::Taken(_) => return Err(ReduceError::not_a_text(path)),
            Slot::Free(free) => free.fill(delta.into()),
        }
        Ok(())
    }

    /// The stream.
    pub fn stream_id(&self) -> &str {
        &self.stream_id
    }

    /// What the data is, as the last chunk said.
    pub fn data_type(&self) -> &str {
        &self.data_type
    }

    /// What it is now; `None` before the first chunk.
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// Whether `final` arrived.
    pub fn is_final(&self) -> bool {
        self.is_final
    }
}

fn replace_when_given(kept: &mut Option<Arc<str>>, given: Option<&Arc<str>>) {
    if let Some(given) = given {
        *kept = Some(Arc::clone(given));
    }
}

impl Serialize for StructuredData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("streamId", &self.stream_id)?;
        map.serialize_entry("dataType", &self.data_type)?;
        map.serialize_entry("status", if self.is_final { "done" } else { "streaming" })?;
        map.serialize_entry("data", &self.value)?;
        let optional = [
            ("node", &self.node),
            ("id", &self.id),
            ("schemaId", &self.schema_id),
            ("schemaVersion", &self.schema_version),
        ];
        for (key, value) in optional {
            if let Some(value) = value {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
