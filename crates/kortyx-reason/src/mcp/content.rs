//! What a server returned, for the model.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

use super::list::Entry;
use crate::{ToolError, ToolOutput, issues::listed};

/// A result as a tool's. What is no text is described in words: a model reads text.
pub(super) fn output(result: CallToolResult, entry: &Entry) -> Result<ToolOutput, ToolError> {
    let text = result.content.iter().map(words).collect::<Vec<_>>().join("\n");
    if result.is_error.unwrap_or_default() {
        return Err(ToolError::new(failure(text, result.structured_content, entry)));
    }
    let Some(structured) = result.structured_content else {
        return match &entry.output {
            Some(_) => Err(ToolError::new("the server's result lacks the structure that it promises")),
            None => Ok(ToolOutput::of(&text)?),
        };
    };
    if let Some(schema) = &entry.output {
        let issues = schema.validate(&structured);
        if !issues.is_empty() {
            return Err(ToolError::new(format!("the server's result does not fit its schema: {}", listed(&issues))));
        }
    }
    // Texts say again what is structured; the rest does not.
    let only_text = result.content.iter().all(|block| matches!(block, ContentBlock::Text(_)));
    if only_text {
        return Ok(ToolOutput::of(&structured)?);
    }
    Ok(ToolOutput::of(&json!({ "structuredContent": structured, "content": text }))?)
}

/// What the model is told of a failure.
fn failure(text: String, structured: Option<Value>, entry: &Entry) -> String {
    let text = match structured {
        Some(structured) if text.is_empty() => structured.to_string(),
        _ if text.is_empty() => "the tool failed".to_owned(),
        _ => text,
    };
    cut(&text, entry)
}

/// A text of the server, no longer than a result may be.
pub(super) fn cut(text: &str, entry: &Entry) -> String {
    text.split_at(text.floor_char_boundary(entry.policy.max_result_bytes)).0.to_owned()
}

fn words(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[an image, {}, {} bytes]", image.mime_type, decoded(&image.data)),
        ContentBlock::Audio(audio) => format!("[a sound, {}, {} bytes]", audio.mime_type, decoded(&audio.data)),
        ContentBlock::ResourceLink(link) => format!("[a resource: {}, {}]", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[the resource {uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("of no known kind");
                format!("[the resource {uri}, {kind}, {} bytes]", decoded(blob))
            }
            _ => "[a resource of a kind that is not known]".to_owned(),
        },
        _ => "[content of a kind that is not known]".to_owned(),
    }
}

/// How many bytes a text in base64 stands for.
fn decoded(base64: &str) -> usize {
    let digits = base64.trim_end_matches('=').len();
    digits.saturating_mul(3) / 4
}
