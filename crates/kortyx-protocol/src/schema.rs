//! JSON Schemas of the types that write and read themselves by hand.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::{
    CheckpointId, CheckpointRequest, ExecutionResult, FailureCode, RawJson, RequestId, ResumeToken, RunId, SessionId,
    StructuredData, Timestamp,
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
    ($($type:ty, $name:literal, $schema:tt;)*) => {
        $(impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        })*
    };
}

plain! {
    RunId, "RunId", {"type": "string", "minLength": 1, "maxLength": 512, "description": "The id of a run."};
    SessionId, "SessionId", {"type": "string", "minLength": 1, "maxLength": 512, "description": "The id of a session."};
    RequestId, "RequestId", {"type": "string", "minLength": 1, "maxLength": 512, "description": "The id of a question."};
    CheckpointId, "CheckpointId",
        {"type": "string", "minLength": 1, "maxLength": 512, "description": "The id of a checkpoint."};
    ResumeToken, "ResumeToken",
        {"type": "string", "minLength": 1, "maxLength": 512, "description": "The secret that answers a question."};
    Timestamp, "Timestamp", {"type": "string", "format": "date-time"};
    RawJson, "Json", {"description": "Any JSON."};
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
            properties.insert("newSessionId".to_owned(), session.clone().to_value());
        }
        json_schema!({"oneOf": [
            about("list", "sessionId", &session),
            about("get", "checkpointId", &checkpoint),
            about("rollback", "checkpointId", &checkpoint),
            fork,
        ]})
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
    use crate::{BufferedResponse, ChatRequest, ExecuteRequest, ResumeRequest};

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
