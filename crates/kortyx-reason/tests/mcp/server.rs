//! A small MCP server: it lists three pages, asks, fails, hangs and dies, and writes down what it did.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams,
        ElicitResult, ElicitationAction, InputRequest, InputRequiredResult, JsonObject, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

#[derive(Clone)]
pub(crate) struct Server {
    diary: PathBuf,
    grown: Arc<AtomicBool>,
}

/// The line of a diary whose server greets, and lists nothing.
pub(crate) const SILENT: &str = "be silent";

impl Server {
    pub(crate) fn new(diary: impl Into<PathBuf>) -> Self {
        Self { diary: diary.into(), grown: Arc::default() }
    }

    /// Writes a line that other processes can read.
    fn note(&self, line: &str) {
        let mut diary = OpenOptions::new().create(true).append(true).open(&self.diary).unwrap();
        diary.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    async fn hang(&self, context: &RequestContext<RoleServer>) -> CallToolResult {
        self.note("hanging");
        context.ct.cancelled().await;
        self.note("cancelled");
        said("nobody reads this")
    }

    async fn ask_twice(&self, context: &RequestContext<RoleServer>) -> CallToolResult {
        let key = context.meta.get("kortyx/idempotencyKey").and_then(Value::as_str).unwrap_or("none").to_owned();
        self.note(&format!("asking with {key}"));
        let mut told = Vec::new();
        for message in ["Whose name?", "Whose name?", "And the other?"] {
            match context.peer.create_elicitation(form(message)).await {
                Ok(answer) => told.push(spoken(&answer)),
                Err(why) => return CallToolResult::error(vec![ContentBlock::text(why.to_string())]),
            }
        }
        self.note(&format!("done with {key}"));
        said(&told.join(", "))
    }

    /// Says in its result what it wants to know, as servers do since 2026-07-28.
    fn wants(&self, request: &CallToolRequestParams) -> CallToolResponse {
        let Some(responses) = &request.input_responses else {
            self.note("wanting");
            let wanted = [("name".to_owned(), InputRequest::Elicitation(ElicitRequest::new(form("Whose name?"))))];
            return InputRequiredResult::new(Some(wanted.into()), Some("state".into())).into();
        };
        self.note("told");
        let state = request.request_state.as_deref().unwrap_or_default();
        said(&format!("{} {state}", responses["name"]["content"]["name"])).into()
    }
}

fn spoken(answer: &ElicitResult) -> String {
    match answer.action {
        ElicitationAction::Accept => answer.content.as_ref().unwrap()["name"].as_str().unwrap().to_owned(),
        ElicitationAction::Decline => "declined".to_owned(),
        _ => "cancelled".to_owned(),
    }
}

fn form(message: &str) -> ElicitRequestParams {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 2}},
        "required": ["name"],
    });
    serde_json::from_value(json!({"mode": "form", "message": message, "requestedSchema": schema})).unwrap()
}

fn said(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn object(value: Value) -> JsonObject {
    serde_json::from_value(value).unwrap()
}

fn tool(name: &'static str, read_only: bool) -> Tool {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let mut tool = Tool::new(name, format!("Does {name}"), object(schema));
    tool.annotations = Some(ToolAnnotations::from_raw(None, Some(read_only), None, None, None));
    tool
}

fn page(cursor: &str, grown: bool) -> (Vec<Tool>, Option<String>) {
    match cursor {
        "" => {
            let mut sum = tool("sum", true);
            let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
            sum.output_schema = Some(Arc::new(object(schema)));
            (vec![tool("echo", true), sum, tool("files/read", false)], Some("two".into()))
        }
        "two" => {
            let mut bad = tool("bad", true);
            bad.input_schema = Arc::new(object(json!({"type": "object", "properties": {"text": {"type": 7}}})));
            (vec![bad, tool("fail", true), tool("hang", true), tool("die", true)], Some("three".into()))
        }
        _ => {
            let mut tools = vec![tool("ask", false), tool("picture", true), tool("wants", false), tool("grow", true)];
            tools.extend(grown.then(|| tool("grown", true)));
            (tools, None)
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.note("listed");
        if std::fs::read_to_string(&self.diary).unwrap().contains(SILENT) {
            context.ct.cancelled().await;
        }
        let cursor = request.and_then(|request| request.cursor).unwrap_or_default();
        let mut result = ListToolsResult::default();
        (result.tools, result.next_cursor) = page(&cursor, self.grown.load(Ordering::SeqCst));
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = request.arguments.as_ref().and_then(|given| given.get("text")).and_then(Value::as_str);
        let text = text.unwrap_or_default();
        let result = match &*request.name {
            "echo" | "files/read" => said(text),
            "sum" => CallToolResult::structured(json!({"sum": text.parse::<u64>().map_or(json!("no"), Value::from)})),
            "fail" => CallToolResult::error(vec![ContentBlock::text("it is broken")]),
            "picture" => {
                CallToolResult::success(vec![ContentBlock::text("Here:"), ContentBlock::image("AAECAwQ=", "image/png")])
            }
            "hang" => self.hang(&context).await,
            "die" => std::process::exit(9),
            "ask" => self.ask_twice(&context).await,
            "wants" => return Ok(self.wants(&request)),
            "grow" => {
                self.grown.store(true, Ordering::SeqCst);
                context.peer.notify_tool_list_changed().await.map_err(|_| ErrorData::internal_error("gone", None))?;
                said("grown")
            }
            other => return Err(ErrorData::invalid_params(format!("there is no {other}"), None)),
        };
        Ok(result.into())
    }
}
