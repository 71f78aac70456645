//! Changes of structured streams, as they are sent.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::Value;

use crate::present::present;

/// One change of a structured stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StructuredChunk {
    /// The stream.
    pub stream_id: Arc<str>,
    /// What the data is, such as a component's name.
    pub data_type: Arc<str>,
    /// The node that emits it.
    pub node: Option<Arc<str>>,
    /// The schema of the data.
    pub schema_id: Option<Arc<str>>,
    /// That schema's version.
    pub schema_version: Option<Arc<str>>,
    /// The author's id.
    pub id: Option<Arc<str>>,
    /// What changes.
    pub change: StructuredChange,
}

/// What changes. Paths are dot-separated; numeric segments index arrays.
#[derive(Debug, Clone, PartialEq)]
pub enum StructuredChange {
    /// Writes at a path.
    Set {
        /// Where.
        path: String,
        /// What.
        value: Value,
    },
    /// Adds to the array at a path, or makes it.
    Append {
        /// Where.
        path: String,
        /// What to add.
        items: Vec<Value>,
    },
    /// Adds to the text at a path, or makes it.
    TextDelta {
        /// Where.
        path: String,
        /// What to add.
        delta: String,
    },
    /// Replaces everything and ends the stream.
    Final {
        /// The whole data.
        data: Value,
    },
}

impl StructuredChange {
    /// The path that it changes; `None` for the whole data.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Set { path, .. } | Self::Append { path, .. } | Self::TextDelta { path, .. } => Some(path),
            Self::Final { .. } => None,
        }
    }
}

impl StructuredChunk {
    /// A change without node, schema and id.
    pub fn new(stream_id: impl Into<Arc<str>>, data_type: impl Into<Arc<str>>, change: StructuredChange) -> Self {
        Self {
            stream_id: stream_id.into(),
            data_type: data_type.into(),
            node: None,
            schema_id: None,
            schema_version: None,
            id: None,
            change,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "StructuredKind"))]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Set,
    Append,
    TextDelta,
    Final,
}

/// The chunk as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    stream_id: &'a str,
    data_type: &'a str,
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<&'a [Value]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
}

impl Serialize for StructuredChunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = Written {
            stream_id: &self.stream_id,
            data_type: &self.data_type,
            kind: Kind::Final,
            node: self.node.as_deref(),
            schema_id: self.schema_id.as_deref(),
            schema_version: self.schema_version.as_deref(),
            id: self.id.as_deref(),
            path: self.change.path(),
            value: None,
            items: None,
            delta: None,
            data: None,
        };
        match &self.change {
            StructuredChange::Set { value, .. } => (written.kind, written.value) = (Kind::Set, Some(value)),
            StructuredChange::Append { items, .. } => {
                (written.kind, written.items) = (Kind::Append, Some(items.as_slice()));
            }
            StructuredChange::TextDelta { delta, .. } => {
                (written.kind, written.delta) = (Kind::TextDelta, Some(delta.as_str()));
            }
            StructuredChange::Final { data } => (written.kind, written.data) = (Kind::Final, Some(data)),
        }
        written.serialize(serializer)
    }
}

/// The chunk as it is read.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "StructuredChunk"))]
#[serde(rename_all = "camelCase")]
struct Read {
    stream_id: Arc<str>,
    data_type: Arc<str>,
    kind: Kind,
    node: Option<Arc<str>>,
    schema_id: Option<Arc<str>>,
    schema_version: Option<Arc<str>>,
    id: Option<Arc<str>>,
    path: Option<String>,
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
    items: Option<Vec<Value>>,
    delta: Option<String>,
    #[serde(default, deserialize_with = "present")]
    data: Option<Value>,
}

impl<'de> Deserialize<'de> for StructuredChunk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Read::deserialize(deserializer)?;
        let path = || read.path.ok_or_else(|| D::Error::missing_field("path"));
        let change = match read.kind {
            Kind::Set => StructuredChange::Set {
                path: path()?,
                value: read.value.ok_or_else(|| D::Error::missing_field("value"))?,
            },
            Kind::Append => StructuredChange::Append {
                path: path()?,
                items: read.items.ok_or_else(|| D::Error::missing_field("items"))?,
            },
            Kind::TextDelta => StructuredChange::TextDelta {
                path: path()?,
                delta: read.delta.ok_or_else(|| D::Error::missing_field("delta"))?,
            },
            Kind::Final => StructuredChange::Final { data: read.data.ok_or_else(|| D::Error::missing_field("data"))? },
        };
        Ok(Self {
            stream_id: read.stream_id,
            data_type: read.data_type,
            node: read.node,
            schema_id: read.schema_id,
            schema_version: read.schema_version,
            id: read.id,
            change,
        })
    }
}

#[cfg(feature = "schema")]
crate::schema::as_wire!(StructuredChunk, Read);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_chunk_without_what_its_kind_needs_is_refused() {
        for rest in [
            r#""kind":"set","path":"a""#,
            r#""kind":"set","value":1"#,
            r#""kind":"append","path":"a""#,
            r#""kind":"append","path":"a","items":1"#,
            r#""kind":"text-delta","path":"a","delta":null"#,
            r#""kind":"final""#,
            r#""kind":"merge","path":"a","value":1"#,
            r#""path":"a","value":1"#,
        ] {
            let text = format!(r#"{{"streamId":"s","dataType":"d",{rest}}}"#);
            assert!(json::from_str::<StructuredChunk>(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn null_is_a_value_to_set() {
        let text = r#"{"streamId":"s","dataType":"d","kind":"set","path":"a","value":null}"#;
        let chunk: StructuredChunk = json::from_str(text).unwrap();
        assert_eq!(chunk.change, StructuredChange::Set { path: "a".to_owned(), value: Value::Null });
        assert_eq!(json::to_string(&chunk).unwrap(), text);
    }
}
