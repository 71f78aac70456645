//! Requests about a session's checkpoints.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::{Map, Value};

use crate::{
    CheckpointId, Failure, InvalidId, Limits, SessionId,
    request::{invalid, read, trimmed},
};

/// The longest name of an unknown field that a refusal repeats, in characters.
const SHOWN_CHARS: usize = 64;

/// A request about a session's checkpoints. Read it with [`from_slice`](Self::from_slice).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckpointRequest {
    /// Lists a session's checkpoints in turn order.
    List {
        /// The session.
        session_id: SessionId,
    },
    /// Reads one.
    Get {
        /// The checkpoint.
        checkpoint_id: CheckpointId,
    },
    /// Takes its session back to it.
    Rollback {
        /// The checkpoint.
        checkpoint_id: CheckpointId,
    },
    /// Starts a new session from it.
    Fork {
        /// The checkpoint.
        checkpoint_id: CheckpointId,
        /// The new session; minted when absent.
        new_session_id: Option<SessionId>,
    },
}

impl CheckpointRequest {
    /// Reads a request's body.
    ///
    /// Takes the fields of its action and no others, none twice. Ids are trimmed; a blank or `null` `newSessionId` is absent.
    /// Fails with `INVALID_REQUEST` or `PAYLOAD_TOO_LARGE`, naming the place.
    ///
    /// ```
    /// use kortyx_protocol::{CheckpointRequest, Limits};
    ///
    /// let read = |body: &str| CheckpointRequest::from_slice(body.as_bytes(), &Limits::default());
    /// let CheckpointRequest::List { session_id } = read(r#"{"action":"list","sessionId":"s1"}"#)? else { panic!() };
    /// assert_eq!(session_id.as_str(), "s1");
    ///
    /// let refused = read(r#"{"action":"get","checkpointId":"cp-1","sessionId":"s1"}"#).unwrap_err();
    /// assert_eq!(refused.issues.unwrap()[0].path, "/sessionId");
    /// # Ok::<(), kortyx_protocol::Failure>(())
    /// ```
    pub fn from_slice(body: &[u8], limits: &Limits) -> Result<Self, Failure> {
        let Fields(mut fields) = read(body, limits)?;
        let action = text(&mut fields, "action")?.ok_or_else(|| invalid("/action", ACTIONS))?;
        let request = match action.as_str() {
            "list" => Self::List { session_id: id(&mut fields, "sessionId", SessionId::new)? },
            "get" => Self::Get { checkpoint_id: checkpoint_id(&mut fields)? },
            "rollback" => Self::Rollback { checkpoint_id: checkpoint_id(&mut fields)? },
            "fork" => Self::Fork {
                checkpoint_id: checkpoint_id(&mut fields)?,
                new_session_id: optional_id(&mut fields, "newSessionId", SessionId::new)?,
            },
            _ => return Err(invalid("/action", ACTIONS)),
        };
        match fields.keys().next() {
            None => Ok(request),
            Some(extra) => Err(unknown(extra, request.action())),
        }
    }

    /// Its `action` on the wire.
    pub fn action(&self) -> &'static str {
        match self {
            Self::List { .. } => "list",
            Self::Get { .. } => "get",
            Self::Rollback { .. } => "rollback",
            Self::Fork { .. } => "fork",
        }
    }
}

const ACTIONS: &str = "it must be list, get, rollback or fork";

fn unknown(field: &str, action: &str) -> Failure {
    let mut shown: String = field.chars().take(SHOWN_CHARS).collect();
    if shown.len() < field.len() {
        shown.push('…');
    }
    let path = format!("/{}", shown.replace('~', "~0").replace('/', "~1"));
    invalid(path, format!("{action} takes no such field"))
}

fn checkpoint_id(fields: &mut Map<String, Value>) -> Result<CheckpointId, Failure> {
    id(fields, "checkpointId", CheckpointId::new)
}

type Parse<T> = fn(String) -> Result<T, InvalidId>;

fn id<T>(fields: &mut Map<String, Value>, field: &str, parse: Parse<T>) -> Result<T, Failure> {
    optional_id(fields, field, parse)?.ok_or_else(|| invalid(format!("/{field}"), "it must be there, and not blank"))
}

fn optional_id<T>(fields: &mut Map<String, Value>, field: &str, parse: Parse<T>) -> Result<Option<T>, Failure> {
    let id = text(fields, field)?.map(parse).transpose();
    id.map_err(|error| invalid(format!("/{field}"), error.to_string()))
}

/// Takes a text; `null`, like a blank one, counts as absent.
fn text(fields: &mut Map<String, Value>, field: &str) -> Result<Option<String>, Failure> {
    match fields.remove(field) {
        Some(Value::String(text)) => Ok(trimmed(Some(text))),
        None | Some(Value::Null) => Ok(None),
        Some(_) => Err(invalid(format!("/{field}"), "it must be a string")),
    }
}

/// An object that names no field twice.
struct Fields(Map<String, Value>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Fields, A::Error> {
                let mut fields = Map::new();
                while let Some((field, value)) = object.next_entry::<String, Value>()? {
                    if fields.insert(field, value).is_some() {
                        return Err(serde::de::Error::custom("a field is there twice"));
                    }
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

impl Serialize for CheckpointRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("action", self.action())?;
        match self {
            Self::List { session_id } => map.serialize_entry("sessionId", session_id)?,
            Self::Get { checkpoint_id } | Self::Rollback { checkpoint_id } => {
                map.serialize_entry("checkpointId", checkpoint_id)?;
            }
            Self::Fork { checkpoint_id, new_session_id } => {
                map.serialize_entry("checkpointId", checkpoint_id)?;
                if let Some(new_session_id) = new_session_id {
                    map.serialize_entry("newSessionId", new_session_id)?;
                }
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{FailureCode, arbitrary::json_value, json as exact};

    fn read_text(body: &str) -> Result<CheckpointRequest, Failure> {
        CheckpointRequest::from_slice(body.as_bytes(), &Limits::default())
    }

    fn session() -> SessionId {
        SessionId::new("s").unwrap()
    }

    fn checkpoint() -> CheckpointId {
        CheckpointId::new("cp-1").unwrap()
    }

    fn requests() -> [CheckpointRequest; 5] {
        let checkpoint_id = checkpoint();
        [
            CheckpointRequest::List { session_id: session() },
            CheckpointRequest::Get { checkpoint_id: checkpoint_id.clone() },
            CheckpointRequest::Rollback { checkpoint_id: checkpoint_id.clone() },
            CheckpointRequest::Fork { checkpoint_id: checkpoint_id.clone(), new_session_id: None },
            CheckpointRequest::Fork { checkpoint_id, new_session_id: Some(session()) },
        ]
    }

    #[test]
    fn each_request_has_its_exact_json_and_reads_back() {
        let lines = requests().map(|request| {
            let text = exact::to_string(&request).unwrap();
            assert_eq!(read_text(&text).unwrap(), request);
            text
        });
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"action":"list","sessionId":"s"}
        {"action":"get","checkpointId":"cp-1"}
        {"action":"rollback","checkpointId":"cp-1"}
        {"action":"fork","checkpointId":"cp-1"}
        {"action":"fork","checkpointId":"cp-1","newSessionId":"s"}
        "#);
    }

    #[test]
    fn ids_are_trimmed_and_a_blank_new_session_is_absent() {
        let fork = CheckpointRequest::Fork { checkpoint_id: checkpoint(), new_session_id: None };
        for blank in ["\" \"", "\"\"", "null"] {
            let body = format!(r#"{{"newSessionId":{blank},"checkpointId":" cp-1 ","action":"fork"}}"#);
            assert_eq!(read_text(&body).unwrap(), fork);
        }
        let list = read_text(r#"{"sessionId":" s ","action":"list"}"#).unwrap();
        assert_eq!(list, CheckpointRequest::List { session_id: session() });
    }

    #[test]
    fn anything_else_is_refused_with_the_place() {
        let long = "x".repeat(600);
        for (body, path) in [
            ("not json".to_owned(), ""),
            ("[]".to_owned(), ""),
            (r#"{"action":"list","sessionId":"s","sessionId":"t"}"#.to_owned(), ""),
            (r#"{"action":"list","sessionId":"s","checkpointId":"cp-1"}"#.to_owned(), "/checkpointId"),
            (r#"{"action":"list","sessionId":"s","a/b~":null}"#.to_owned(), "/a~1b~0"),
            (r#"{"action":"get","checkpointId":"cp-1","sessionId":"s"}"#.to_owned(), "/sessionId"),
            (r#"{"action":"rollback","checkpointId":"cp-1","newSessionId":"s"}"#.to_owned(), "/newSessionId"),
            (r#"{"action":"fork","checkpointId":"cp-1","sessionId":"s"}"#.to_owned(), "/sessionId"),
            (r#"{"checkpointId":"cp-1"}"#.to_owned(), "/action"),
            (r#"{"action":"List","sessionId":"s"}"#.to_owned(), "/action"),
            (r#"{"action":1,"sessionId":"s"}"#.to_owned(), "/action"),
            (r#"{"action":"list"}"#.to_owned(), "/sessionId"),
            (r#"{"action":"list","sessionId":" "}"#.to_owned(), "/sessionId"),
            (r#"{"action":"get","checkpointId":7}"#.to_owned(), "/checkpointId"),
            (r#"{"action":"get","checkpointId":"a\u0000"}"#.to_owned(), "/checkpointId"),
            (format!(r#"{{"action":"list","sessionId":"{long}"}}"#), "/sessionId"),
            (r#"{"action":"fork","checkpointId":"cp-1","newSessionId":[]}"#.to_owned(), "/newSessionId"),
        ] {
            let failure = read_text(&body).unwrap_err();
            assert_eq!(failure.code, FailureCode::InvalidRequest, "{body}");
            assert_eq!(failure.issues.unwrap()[0].path, path, "{body}");
        }
    }

    #[test]
    fn a_refusal_repeats_no_endless_name_and_a_large_body_is_not_read() {
        let body = format!(r#"{{"action":"list","sessionId":"s","{}":1}}"#, "é".repeat(10_000));
        let failure = read_text(&body).unwrap_err();
        assert!(failure.message.len() < 300, "{}", failure.message);
        assert!(failure.message.contains("é…"), "{}", failure.message);
        let small = Limits { body_bytes: 10, ..Limits::default() };
        let failure = CheckpointRequest::from_slice(body.as_bytes(), &small).unwrap_err();
        assert_eq!(failure.code, FailureCode::PayloadTooLarge);
    }

    proptest! {
        #[test]
        fn what_is_read_writes_and_reads_back_and_nothing_panics(
            action in prop::sample::select(vec!["list", "get", "rollback", "fork", "drop"]),
            (session, checkpoint, new_session, extra) in (
                prop::option::of(json_value()), prop::option::of(json_value()),
                prop::option::of(json_value()), prop::option::weighted(0.2, json_value()),
            ),
        ) {
            let mut body = json!({"action": action});
            let fields = [("sessionId", session), ("checkpointId", checkpoint), ("newSessionId", new_session), ("x", extra.clone())];
            for (field, value) in fields {
                if let Some(value) = value {
                    body[field] = value;
                }
            }
            if let Ok(request) = read_text(&body.to_string()) {
                prop_assert!(extra.is_none());
                prop_assert_eq!(request.action(), action);
                prop_assert_eq!(read_text(&exact::to_string(&request).unwrap()).unwrap(), request);
            }
        }
    }
}
