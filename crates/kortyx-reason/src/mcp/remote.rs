//! A tool of a server as the model's loop sees it.

use std::sync::Arc;

use futures_util::{FutureExt as _, future::BoxFuture};
use kortyx_protocol::{Issue, RawJson};
use serde_json::Value;

use super::{call::Call, list::Entry, server::Shared};
use crate::{Tool, ToolContext, ToolError, ToolOutput, ToolPolicy};

/// A tool of a server.
pub(super) struct McpTool {
    entry: Arc<Entry>,
    server: Arc<Shared>,
}

impl McpTool {
    pub(super) fn new(entry: Arc<Entry>, server: Arc<Shared>) -> Self {
        Self { entry, server }
    }
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.entry.name
    }

    fn description(&self) -> &str {
        &self.entry.info.description
    }

    fn parameters(&self) -> Result<RawJson, String> {
        Ok(self.entry.parameters.clone())
    }

    fn policy(&self) -> &ToolPolicy {
        &self.entry.policy
    }

    fn accept(&self, arguments: &Value) -> Result<Value, Vec<Issue>> {
        Ok(arguments.clone())
    }

    fn needs_approval<'a>(&'a self, arguments: &'a Value) -> BoxFuture<'a, bool> {
        async move { (self.server.rules.judge)(&self.entry.info, arguments) }.boxed()
    }

    fn call(&self, arguments: Value, ctx: ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let call = Call { entry: &self.entry, server: &self.server, ctx };
        async move { call.made(arguments).await }.boxed()
    }
}
