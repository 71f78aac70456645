//! Listing a server's tools: all pages, what the application takes of them, and under which names.

use std::{collections::BTreeSet, sync::Arc};

use kortyx_contracts::SchemaValidator;
use kortyx_protocol::RawJson;
use rmcp::{
    RoleClient,
    model::{JsonObject, PaginatedRequestParams, Tool as Described},
    service::{Peer, ServiceError},
};

use super::{McpError, McpTool, McpToolInfo, name::fitting, server::Shared};
use crate::{Tool, ToolPolicy};

/// How many pages a list may have.
const MAX_PAGES: usize = 100;

/// A tool that can be called.
pub(super) struct Entry {
    pub(super) info: McpToolInfo,
    pub(super) name: String,
    pub(super) parameters: RawJson,
    pub(super) output: Option<SchemaValidator>,
    pub(super) policy: ToolPolicy,
}

/// What a server has, for this application.
pub(super) struct Catalog {
    entries: Vec<Arc<Entry>>,
    excluded: Vec<ExcludedTool>,
}

/// A tool that a model is not given, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExcludedTool {
    /// Its name on the server.
    pub name: String,
    /// Why.
    pub why: String,
}

/// The tools of a server; [`Reason::tools`](crate::Reason::tools) takes them as they are.
#[derive(Clone)]
pub struct McpTools {
    tools: Vec<Arc<dyn Tool>>,
    infos: Arc<Catalog>,
}

impl McpTools {
    pub(super) fn new(catalog: Arc<Catalog>, server: &Arc<Shared>) -> Self {
        let tool = |entry: &Arc<Entry>| -> Arc<dyn Tool> { Arc::new(McpTool::new(entry.clone(), server.clone())) };
        Self { tools: catalog.entries.iter().map(tool).collect(), infos: catalog }
    }

    /// The tools.
    pub fn as_slice(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// What the server says about each, in the same order.
    pub fn infos(&self) -> impl Iterator<Item = &McpToolInfo> {
        self.infos.entries.iter().map(|entry| &entry.info)
    }

    /// Those that a model cannot be given, though the application takes them.
    pub fn excluded(&self) -> &[ExcludedTool] {
        &self.infos.excluded
    }
}

impl IntoIterator for McpTools {
    type Item = Arc<dyn Tool>;
    type IntoIter = std::vec::IntoIter<Arc<dyn Tool>>;

    fn into_iter(self) -> Self::IntoIter {
        self.tools.into_iter()
    }
}

/// Lists the tools of a server.
pub(super) async fn described(shared: &Shared, peer: &Peer<RoleClient>) -> Result<Vec<Described>, McpError> {
    let pages = shared.closed.run_until_cancelled(pages(shared, peer)).await;
    pages.unwrap_or_else(|| Err(McpError::Closed { server: shared.name.clone() }))
}

/// What the application takes of them.
pub(super) fn catalog(shared: &Shared, described: &[Described]) -> Result<Catalog, McpError> {
    let mut catalog = Catalog { entries: Vec::new(), excluded: Vec::new() };
    let mut missing = shared.rules.only.clone().unwrap_or_default();
    for tool in described {
        missing.remove(&*tool.name);
        let info = McpToolInfo::of(&shared.name, tool);
        if !shared.rules.takes(&info) {
            continue;
        }
        match entry(shared, info, tool) {
            Ok(entry) => catalog.entries.push(Arc::new(entry)),
            Err(why) => catalog.excluded.push(excluded(shared, &tool.name, why)),
        }
    }
    let gone = missing.iter().map(|name| excluded(shared, name, "the server has no such tool".into()));
    catalog.excluded.extend(gone);
    distinct(shared, &catalog.entries)?;
    Ok(catalog)
}

async fn pages(shared: &Shared, peer: &Peer<RoleClient>) -> Result<Vec<Described>, McpError> {
    let failed = |reason: String| McpError::List { server: shared.name.clone(), reason };
    let most = shared.endpoint.max_message_bytes;
    let (mut tools, mut bytes) = (Vec::new(), 0_usize);
    let (mut seen, mut cursor) = (BTreeSet::new(), None::<String>);
    for _ in 0..MAX_PAGES {
        let mut params = PaginatedRequestParams::default();
        params.cursor.clone_from(&cursor);
        let page = peer.list_tools(Some(params)).await.map_err(|error: ServiceError| failed(error.to_string()))?;
        let size = |tool: &Described| serde_json::to_vec(tool).map_or(0, |text| text.len());
        bytes = page.tools.iter().map(size).fold(bytes, usize::saturating_add);
        if bytes > most {
            return Err(failed(format!("it is longer than {most} bytes")));
        }
        tools.extend(page.tools);
        if tools.len() > shared.rules.max_tools {
            return Err(failed(format!("it has more than {} tools", shared.rules.max_tools)));
        }
        let Some(next) = page.next_cursor else { return Ok(tools) };
        if !seen.insert(next.clone()) {
            return Err(failed("its pages never end".into()));
        }
        cursor = Some(next);
    }
    Err(failed(format!("it has more than {MAX_PAGES} pages")))
}

fn entry(shared: &Shared, info: McpToolInfo, tool: &Described) -> Result<Entry, String> {
    let parameters = RawJson::of(&*tool.input_schema).map_err(|error| error.to_string())?;
    if tool.input_schema.get("type").and_then(|kind| kind.as_str()) != Some("object") {
        return Err("the schema of its arguments is not that of an object".into());
    }
    SchemaValidator::compile_raw(&parameters).map_err(|why| format!("the schema of its arguments: {why}"))?;
    let output = tool.output_schema.as_deref().map(compiled).transpose()?;
    let name = fitting(&format!("{}{}", shared.rules.prefix, (shared.rules.rename)(&info)));
    let policy = shared.rules.policy(&info);
    Ok(Entry { info, name, parameters, output, policy })
}

fn compiled(schema: &JsonObject) -> Result<SchemaValidator, String> {
    let raw = RawJson::of(schema).map_err(|error| error.to_string())?;
    SchemaValidator::compile_raw(&raw).map_err(|why| format!("the schema of its results: {why}"))
}

fn excluded(shared: &Shared, tool: &str, why: String) -> ExcludedTool {
    tracing::warn!(server = shared.name, tool, why, "a tool of the MCP server is left out");
    ExcludedTool { name: tool.to_owned(), why }
}

fn distinct(shared: &Shared, entries: &[Arc<Entry>]) -> Result<(), McpError> {
    for (place, entry) in entries.iter().enumerate() {
        if let Some(other) = entries.iter().take(place).find(|other| other.name == entry.name) {
            return Err(McpError::SameName {
                server: shared.name.clone(),
                name: entry.name.clone(),
                first: other.info.name.clone(),
                second: entry.info.name.clone(),
            });
        }
    }
    Ok(())
}
