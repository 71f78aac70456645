//! Asking a person whether a tool may run.

use kortyx_contracts::SchemaAsk;
use kortyx_protocol::RawJson;
use serde_json::{Map, Value, json};

use super::{
    Tool,
    redact::{redacted, restored},
};

/// Longest feedback to a model, in characters.
const MAX_FEEDBACK: u32 = 16 * 1024;

/// What a person decided about a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Decision {
    Approve,
    /// With these arguments instead.
    Edit(Value),
    Reject {
        feedback: Option<String>,
        /// An identical call is asked again.
        ask_again: bool,
    },
}

/// The question whether this call may run. It shows the arguments that would be executed, less what is hidden.
pub(crate) fn approval_question(
    tool: &dyn Tool,
    schema: &RawJson,
    call: &str,
    arguments: &Value,
    digest: &str,
) -> SchemaAsk {
    let request = json!({
        "tool": tool.name(),
        "description": tool.description(),
        "toolCallId": call,
        "arguments": redacted(arguments, &tool.policy().redact),
        "digest": digest,
    });
    SchemaAsk::new("tool_approval", &request, &response_schema(schema, digest)).schema("kortyx.tool-approval", "1")
}

/// Reads an answer that fits the question; nothing where it does not.
pub(crate) fn read_decision(tool: &dyn Tool, answer: &Value, arguments: &Value) -> Option<Decision> {
    match answer.get("decision")?.as_str()? {
        "approve" => Some(match answer.get("arguments") {
            Some(edited) => Decision::Edit(restored(edited, arguments, &tool.policy().redact)),
            None => Decision::Approve,
        }),
        "reject" => Some(Decision::Reject {
            feedback: answer.get("feedback").and_then(Value::as_str).map(ToOwned::to_owned),
            ask_again: answer.get("askAgain").and_then(Value::as_bool).unwrap_or_default(),
        }),
        _ => None,
    }
}

/// What an answer may be. A wrong one is refused before it is accepted, edited arguments that the tool would not take among them.
fn response_schema(parameters: &RawJson, digest: &str) -> Value {
    let mut arguments = parameters.to_value().unwrap_or(Value::Bool(false));
    let definitions = arguments.as_object_mut().and_then(|schema| {
        schema.remove("$schema");
        schema.remove("$defs")
    });
    let mut schema = json!({
        "type": "object",
        "title": "Decision",
        "properties": {
            "decision": {"type": "string", "enum": ["approve", "reject"]},
            "feedback": {"type": "string", "maxLength": MAX_FEEDBACK, "description": "What the model is told when it is rejected"},
            "askAgain": {"type": "boolean", "description": "Whether an identical call is asked again after a rejection"},
            "digest": {"const": digest, "description": "The digest of the question, to be sure that it is the one that was read"},
        },
        "required": ["decision"],
        "additionalProperties": false,
    });
    retarget(&mut arguments);
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.insert("arguments".into(), arguments);
    }
    if let (Some(mut definitions), Some(schema)) = (definitions, schema.as_object_mut()) {
        retarget(&mut definitions);
        schema.insert("$defs".into(), definitions);
    }
    schema
}

/// References to the root of the tool's schema lead to where it is now.
fn retarget(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            point_at_arguments(fields);
            fields.values_mut().for_each(retarget);
        }
        Value::Array(items) => items.iter_mut().for_each(retarget),
        _ => {}
    }
}

fn point_at_arguments(fields: &mut Map<String, Value>) {
    if let Some(Value::String(reference)) = fields.get_mut("$ref")
        && (reference == "#" || (reference.starts_with("#/") && !reference.starts_with("#/$defs/")))
    {
        reference.insert_str(1, "/properties/arguments");
    }
}
