//! Our conversation in the form of `genai`: the same messages give the same bytes, each time.

use std::collections::BTreeSet;

use genai::chat::{
    ChatMessage, ChatRequest, ChatResponseFormat, ChatRole, ContentPart, JsonSpec, MessageContent, Tool, ToolChoice,
    ToolResponse,
};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::dialect::{Dialect, Results};
use crate::{Message, ModelError, ModelErrorKind, ModelRequest, ToolCall, ToolDeclaration};

/// The conversation and the tools of a request.
pub(super) fn chat_request(dialect: &Dialect, request: &ModelRequest<'_>) -> Result<ChatRequest, ModelError> {
    let leading = leading_instructions(dialect, request.messages);
    let (instructions, rest) = request.messages.split_at_checked(leading).unwrap_or((request.messages, &[]));
    let mut system: Vec<String> = instructions.iter().map(|message| text_of(message).to_owned()).collect();
    if let Some(schema) = schema(request)?.filter(|schema| !is_asked_for(dialect, schema)) {
        let text = "Your final answer is one JSON value and nothing else. It fits this JSON Schema:";
        system.push(format!("{text}\n{schema}"));
    }
    let mut messages = Vec::with_capacity(rest.len());
    for message in rest {
        push(dialect, &mut messages, message);
    }
    let mut chat = ChatRequest::from_messages(messages);
    if !system.is_empty() {
        chat = chat.with_system(system.join("\n\n"));
    }
    let tools = tools(dialect, request)?;
    Ok(if tools.is_empty() { chat } else { chat.with_tools(tools) })
}

/// The schema that the provider holds the answer to.
pub(super) fn response_format(
    dialect: &Dialect,
    request: &ModelRequest<'_>,
) -> Result<Option<ChatResponseFormat>, ModelError> {
    let schema = schema(request)?.filter(|schema| is_asked_for(dialect, schema));
    Ok(schema.map(|schema| JsonSpec::new("answer", schema).into()))
}

/// Whether the model may call tools, where that has to be said.
pub(super) fn tool_choice(dialect: &Dialect, request: &ModelRequest<'_>) -> Option<ToolChoice> {
    let only_old = request.tools.is_empty() && !withdrawn(dialect, request).is_empty();
    only_old.then_some(ToolChoice::None)
}

fn schema(request: &ModelRequest<'_>) -> Result<Option<Value>, ModelError> {
    request
        .json_schema
        .map(kortyx_protocol::RawJson::to_value)
        .transpose()
        .map_err(|error| unusable("the output", &error))
}

fn unusable(what: &str, error: &impl std::fmt::Display) -> ModelError {
    ModelError::new(ModelErrorKind::Configuration, format!("the schema of {what} cannot be used: {error}"))
}

/// Whether the provider takes a schema like this one; else it is asked for in words.
fn is_asked_for(dialect: &Dialect, schema: &Value) -> bool {
    !dialect.takes_plain_objects_only()
        || (schema.get("type").is_some_and(|kind| kind == "object") && !has_open_objects(schema))
}

/// Whether a schema has objects whose fields it does not name.
fn has_open_objects(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let is_open = |field: &Value| !matches!(field, Value::Bool(false));
            fields.get("additionalProperties").is_some_and(is_open) || fields.values().any(has_open_objects)
        }
        Value::Array(items) => items.iter().any(has_open_objects),
        _ => false,
    }
}

/// How many messages at the beginning are the provider's system prompt. Somebody has to speak after it.
fn leading_instructions(dialect: &Dialect, messages: &[Message]) -> usize {
    let leading = messages.iter().take_while(|message| matches!(message, Message::System { .. })).count();
    let speaks = messages.get(leading).is_some_and(Message::is_user);
    if speaks || dialect.takes_instructions_anywhere() { leading } else { leading.saturating_sub(1) }
}

fn text_of(message: &Message) -> &str {
    match message {
        Message::System { content }
        | Message::User { content }
        | Message::Assistant { content, .. }
        | Message::Tool { content, .. } => content,
    }
}

fn push(dialect: &Dialect, messages: &mut Vec<ChatMessage>, message: &Message) {
    match message {
        Message::System { content } if dialect.takes_instructions_anywhere() => {
            messages.push(ChatMessage::system(content.as_str()));
        }
        Message::System { content } | Message::User { content } => messages.push(ChatMessage::user(content.as_str())),
        Message::Assistant { content, tool_calls } => {
            let text = (!content.trim().is_empty()).then(|| ContentPart::Text(content.clone()));
            let calls = tool_calls.iter().map(|call| ContentPart::ToolCall(called(dialect, call)));
            let parts: Vec<ContentPart> = text.into_iter().chain(calls).collect();
            // A turn that says nothing is refused by some providers, and tells the model nothing.
            if !parts.is_empty() {
                messages.push(ChatMessage::assistant(MessageContent::from_parts(parts)));
            }
        }
        Message::Tool { tool_call_id, tool, content, is_error } => {
            let part = result(dialect, tool_call_id, tool, content, *is_error);
            match messages.last_mut().filter(|last| matches!(last.role, ChatRole::Tool)) {
                Some(last) if dialect.results() != Results::Apart => last.content.push(part),
                _ => messages.push(ChatMessage::tool(MessageContent::from_parts(vec![part]))),
            }
        }
    }
}

fn called(dialect: &Dialect, call: &ToolCall) -> genai::chat::ToolCall {
    genai::chat::ToolCall {
        call_id: call_id(dialect, &call.id),
        fn_name: call.tool.clone(),
        fn_arguments: arguments(&call.arguments),
        thought_signatures: None,
    }
}

/// Arguments as an object, which all providers insist on, also when the model did not write one.
fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        Ok(Value::Null) => Value::Object(Map::new()),
        Ok(other) => json!({ "arguments": other }),
        Err(_) if text.trim().is_empty() => Value::Object(Map::new()),
        Err(_) => json!({ "arguments": text }),
    }
}

fn result(dialect: &Dialect, id: &str, tool: &str, content: &str, is_error: bool) -> ContentPart {
    let id = call_id(dialect, id);
    match (dialect.results(), is_error) {
        // The crate has no field for the mark.
        (Results::Marked, true) => ContentPart::from_custom(
            json!({ "type": "tool_result", "content": content, "tool_use_id": id, "is_error": true }),
            None,
        ),
        (Results::Together | Results::Apart, true) => {
            ToolResponse::new(id, format!("Error: {content}")).with_fn_name(tool).into()
        }
        (_, false) => ToolResponse::new(id, content).with_fn_name(tool).into(),
    }
}

fn call_id(dialect: &Dialect, id: &str) -> String {
    if !dialect.has_short_call_ids() {
        return id.to_owned();
    }
    let digest = Sha256::digest(id.as_bytes());
    digest
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .take(9)
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

fn tools(dialect: &Dialect, request: &ModelRequest<'_>) -> Result<Vec<Tool>, ModelError> {
    let mut tools = Vec::with_capacity(request.tools.len());
    for tool in request.tools {
        tools.push(declared(dialect, tool)?);
    }
    if tools.is_empty() {
        let old = withdrawn(dialect, request).into_iter();
        tools.extend(old.map(|name| {
            Tool::new(name).with_description("Not available any more.").with_schema(json!({ "type": "object" }))
        }));
    }
    Ok(tools)
}

fn declared(dialect: &Dialect, tool: &ToolDeclaration) -> Result<Tool, ModelError> {
    let schema = tool.parameters.to_value().map_err(|error| unusable(&format!("the tool `{}`", tool.name), &error))?;
    let declared = Tool::new(tool.name.as_str()).with_description(tool.description.as_str()).with_schema(schema);
    Ok(if dialect.is_strict_by_default() { declared.with_strict(false) } else { declared })
}

/// Tools that were called and may be no more, where the provider wants to know them.
fn withdrawn<'a>(dialect: &Dialect, request: &ModelRequest<'a>) -> BTreeSet<&'a str> {
    let calls = request.messages.iter().filter_map(|message| match message {
        Message::Assistant { tool_calls, .. } if dialect.needs_tools_for_calls() => Some(tool_calls),
        _ => None,
    });
    calls.flatten().map(|call| call.tool.as_str()).collect()
}
