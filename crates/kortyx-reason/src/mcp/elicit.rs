//! A question of a server as a question of the run.

use kortyx_contracts::{AskExt as _, SchemaAsk};
use kortyx_protocol::json;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData};
use serde_json::{Value, json};

use super::{digest::digest, list::Entry, server::Shared};
use crate::{ToolContext, ToolError};

/// Longest message of a question, in bytes.
const MAX_MESSAGE: usize = 16 * 1024;

/// Has a person answer a question of a server. It is the same question when its message and its schema are the same, and it is asked
/// as often as before in this call.
pub(super) async fn elicited(
    entry: &Entry,
    server: &Shared,
    ctx: &ToolContext,
    params: ElicitRequestParams,
) -> Result<ElicitResult, ErrorData> {
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = params else {
        return Err(ErrorData::invalid_params("only forms can be shown", None));
    };
    if message.len() > MAX_MESSAGE {
        return Err(ErrorData::invalid_params(format!("the message has more than {MAX_MESSAGE} bytes"), None));
    }
    let refused = |why: String| ErrorData::invalid_params(why, None);
    let schema = serde_json::to_value(&requested_schema).map_err(|error| refused(error.to_string()))?;
    let text = json::canonical(&(&message, &schema)).map_err(|error| refused(error.to_string()))?;
    let id: String = ["elicit-", &digest(&text)].concat().chars().take(39).collect();
    let asking = asked(&id, entry, server, ctx, &message, &schema);
    Ok(result(asking.await.map_err(|why| refused(why.to_string()))?))
}

async fn asked(
    id: &str,
    entry: &Entry,
    server: &Shared,
    ctx: &ToolContext,
    message: &str,
    schema: &Value,
) -> Result<Option<Value>, ToolError> {
    let request =
        json!({ "server": server.name, "tool": entry.info.name, "toolCallId": ctx.call_id(), "message": message });
    let ask = SchemaAsk::new("mcp_elicitation", &request, &answers(schema)).schema("kortyx.mcp-elicitation", "1");
    match server.rules.questions_expire_in {
        Some(time) => ctx.ask(id, ask.expires_in(time).optional_cancel()).await,
        None => ctx.ask(id, ask.optional_cancel()).await,
    }
}

/// What an answer may be: the form, filled in, or a refusal.
fn answers(form: &Value) -> Value {
    json!({
        "type": "object",
        "title": "Answer",
        "properties": {
            "action": {
                "type": "string",
                "enum": ["accept", "decline", "cancel"],
                "description": "Whether the server gets the content, is told no, or is told nothing",
            },
            "content": form,
        },
        "required": ["action"],
        "additionalProperties": false,
        "if": {"properties": {"action": {"const": "accept"}}},
        "then": {"required": ["content"]},
        "else": {"properties": {"content": false}},
    })
}

/// An answer that fits, for the server. Whoever cancels the question says nothing.
fn result(answer: Option<Value>) -> ElicitResult {
    let answer = answer.unwrap_or_default();
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => {
            let content = answer.get("content").cloned().unwrap_or_default();
            ElicitResult::new(ElicitationAction::Accept).with_content(content)
        }
        Some("decline") => ElicitResult::new(ElicitationAction::Decline),
        _ => ElicitResult::new(ElicitationAction::Cancel),
    }
}
