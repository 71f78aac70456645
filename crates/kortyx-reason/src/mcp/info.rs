//! What a server says about a tool.

use rmcp::model::Tool;

/// A tool as its server describes it, for the application's decisions.
///
/// Everything here is the server's word. A server that is not trusted may call a tool read-only that is not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpToolInfo {
    /// The name that the application gave the server.
    pub server: String,
    /// The tool's name on the server.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: String,
    /// Whether it changes nothing.
    pub read_only: Option<bool>,
    /// Whether what it changes may be lost.
    pub destructive: Option<bool>,
    /// Whether a second equal call changes nothing more.
    pub idempotent: Option<bool>,
    /// Whether it deals with the world outside.
    pub open_world: Option<bool>,
}

/// Longest description that a model is given, in characters. The rest is cut off.
const MAX_DESCRIPTION: usize = 8 * 1024;

impl McpToolInfo {
    pub(super) fn of(server: &str, tool: &Tool) -> Self {
        let hints = tool.annotations.as_ref();
        let title = tool.title.clone().or_else(|| hints?.title.clone());
        let described = tool.description.as_deref().or(title.as_deref()).unwrap_or_default();
        Self {
            server: server.to_owned(),
            name: tool.name.to_string(),
            description: described.chars().take(MAX_DESCRIPTION).collect(),
            title,
            read_only: hints.and_then(|hints| hints.read_only_hint),
            destructive: hints.and_then(|hints| hints.destructive_hint),
            idempotent: hints.and_then(|hints| hints.idempotent_hint),
            open_world: hints.and_then(|hints| hints.open_world_hint),
        }
    }
}
