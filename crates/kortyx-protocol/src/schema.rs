//! JSON Schemas of the types that write and read themselves by hand.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::{
    CheckpointId, CheckpointRequest, ExecutionResult, FailureCode, RawJson, RequestId, ResumeRequest, ResumeToken,
    RunId, SessionId, StructuredData, Timestamp,
};

/// The first type has the schema of the second, which is what it is read as.
macro_rules! as_wire {
    ($type:ident, $wire:ident) => {
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $wire::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $wire::json_schema(generator)
            }
        }
    };
}

pub(crate) use as_wire;

/// A schema that names no other one of ours.
macro_rules! plain {
    ($($type:ty, $name:literal, $schema:expr;)*) => {
        $(impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        })*
    };
}

/// An id as it is sent where it may be missing: trimmed, and absent when it is blank.
pub(crate) struct OptionalId;

/// The schema of ids and tokens: no control characters, not blank. (Lengths are counted in characters here, and in bytes when read.)
macro_rules! id {
    ($description:literal) => {
        json_schema!({
            "type": "string",
            "description": $description,
            "minLength": 1,
            "maxLength": 512,
            "pattern": r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$",
        })
    };
}

plain! {
    RunId, "RunId", id!("The id of a run.");
    SessionId, "SessionId", id!("The id of a session.");
    RequestId, "RequestId", id!("The id of a question.");
    CheckpointId, "CheckpointId", id!("The id of a checkpoint.");
    ResumeToken, "ResumeToken", id!("The secret that answers a question.");
    OptionalId, "OptionalId", json_schema!({
        "type": "string",
        "description": "An id. White space around it is not part of it; a blank one is none.",
        "maxLength": 512,
        "pattern": r"^[\t-\r ]*[^\u0000-\u001F\u007F-\u009F]*[\t-\r ]*$",
    });
    Timestamp, "Timestamp", json_schema!({"type": "string", "format": "date-time"});
    RawJson, "Json", json_schema!({"description": "Any JSON whose integers are from -2^63 to 2^64-1."});
}

impl JsonSchema for FailureCode {
    fn schema_name() -> Cow<'static, str> {
        "FailureCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes: Vec<&str> = Self::ALL.iter().map(|code| code.as_str()).collect();
        json_schema!({"type": "string", "enum": codes})
    }
}

impl JsonSchema for StructuredData {
    fn schema_name() -> Cow<'static, str> {
        "StructuredData".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "What a structured stream has become.",
            "required": ["streamId", "dataType", "status", "data"],
            "properties": {
                "streamId": {"type": "string"},
                "dataType": {"type": "string"},
                "status": {"enum": ["streaming", "done"]},
                "data": {},
                "node": {"type": "string"},
                "id": {"type": "string"},
                "schemaId": {"type": "string"},
                "schemaVersion": {"type": "string"},
            },
        })
    }
}

impl JsonSchema for CheckpointRequest {
    fn schema_name() -> Cow<'static, str> {
        "CheckpointRequest".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (session, checkpoint) = (generator.subschema_for::<SessionId>(), generator.subschema_for::<CheckpointId>());
        let about = |action: &str, field: &str, schema: &Schema| {
            json_schema!({
                "type": "object",
                "required": ["action", field],
                "properties": {"action": {"const": action}, field: schema},
                "additionalProperties": false,
            })
        };
        let mut fork = about("fork", "checkpointId", &checkpoint);
        if let Some(properties) = fork.get_mut("properties").and_then(Value::as_object_mut) {
            let new = generator.subschema_for::<Option<OptionalId>>();
            properties.insert("newSessionId".to_owned(), new.to_value());
        }
        json_schema!({"oneOf": [
            about("list", "sessionId", &session),
            about("get", "checkpointId", &checkpoint),
            about("rollback", "checkpointId", &checkpoint),
            fork,
        ]})
    }
}

impl JsonSchema for ResumeRequest {
    fn schema_name() -> Cow<'static, str> {
        "ResumeRequest".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let handle = generator.subschema_for::<crate::ResumeHandle>();
        let (one, each) =
            (generator.subschema_for::<crate::ResumeResponse>(), generator.subschema_for::<crate::BatchAnswer>());
        json_schema!({
            "type": "object",
            "description": "An answer to the handle's question, or answers to several questions of its run.",
            "required": ["resume"],
            "properties": {
                "workflow": {"type": ["string", "null"], "description": "When it is named, the question must be its."},
                "resume": handle,
            },
            "oneOf": [
                {"required": ["response"], "properties": {"response": one, "responses": {"type": "null"}}},
                {
                    "required": ["responses"],
                    "properties": {
                        "response": {"type": "null"},
                        "responses": {"type": "array", "items": each, "minItems": 1, "uniqueItems": true},
                    },
                },
            ],
        })
    }
}

impl<T> JsonSchema for ExecutionResult<T> {
    fn schema_name() -> Cow<'static, str> {
        "ExecutionResult".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (question, handle) =
            (generator.subschema_for::<crate::PendingQuestion>(), generator.subschema_for::<crate::ResumeHandle>());
        let failure = generator.subschema_for::<crate::Failure>();
        json_schema!({
            "type": "object",
            "required": ["runId", "sessionId", "status"],
            "properties": {
                "runId": generator.subschema_for::<RunId>(),
                "sessionId": generator.subschema_for::<SessionId>(),
                "checkpointId": generator.subschema_for::<CheckpointId>(),
                "usage": generator.subschema_for::<crate::Usage>(),
            },
            "oneOf": [
                {"required": ["data"], "properties": {"status": {"const": "completed"}, "data": {}}},
                {
                    "required": ["interrupts"],
                    "properties": {
                        "status": {"const": "suspended"},
                        "interrupts": {"type": "array", "items": question, "minItems": 1},
                        "interrupt": question,
                        "resume": handle,
                    },
                },
                {"properties": {"status": {"const": "cancelled"}, "reason": {"type": "string"}}},
                {"required": ["error"], "properties": {"status": {"const": "failed"}, "error": failure}},
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use schemars::schema_for;

    use super::*;
    use crate::{BufferedResponse, ChatRequest, ExecuteRequest};

    #[test]
    fn a_type_that_is_read_by_hand_has_the_schema_of_what_it_is_read_as() {
        let schema = schema_for!(ChatRequest);
        let fields: Vec<_> = schema.get("properties").and_then(Value::as_object).unwrap().keys().cloned().collect();
        for field in ["sessionId", "workflowId", "stream", "context", "clientTurnId", "messages"] {
            assert!(fields.iter().any(|name| name == field), "{field} of {fields:?}");
        }
        assert_eq!(schema.get("required"), Some(&serde_json::json!(["messages"])));
        assert_eq!(schema_for!(ExecuteRequest).get("title"), Some(&"ExecuteRequest".into()));
        assert_eq!(schema_for!(ResumeRequest).get("title"), Some(&"ResumeRequest".into()));
    }

    #[test]
    fn every_code_and_every_chunk_is_in_the_schema() {
        let text = schema_for!(BufferedResponse).to_value().to_string();
        for code in FailureCode::ALL {
            assert!(text.contains(&format!("\"{code}\"")), "{code}");
        }
        for kind in ["session", "text-delta", "structured-data", "interrupt", "checkpoint", "done"] {
            assert!(text.contains(&format!("\"{kind}\"")), "{kind}");
        }
    }
}
