//! What the application says about a server's tools.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::Value;

use super::McpToolInfo;
use crate::{Approval, ToolPolicy};

type Filter = Arc<dyn Fn(&McpToolInfo) -> bool + Send + Sync>;
type Rename = Arc<dyn Fn(&McpToolInfo) -> String + Send + Sync>;
type Gate = Arc<dyn Fn(&McpToolInfo) -> Approval + Send + Sync>;
type Judge = Arc<dyn Fn(&McpToolInfo, &Value) -> bool + Send + Sync>;
type Policy = Arc<dyn Fn(&McpToolInfo, ToolPolicy) -> ToolPolicy + Send + Sync>;

/// Which tools are taken, under which names and rules.
#[derive(Clone)]
pub(super) struct Rules {
    pub(super) only: Option<BTreeSet<String>>,
    pub(super) without: BTreeSet<String>,
    pub(super) filter: Filter,
    pub(super) rename: Rename,
    pub(super) prefix: String,
    pub(super) approval: Gate,
    pub(super) judge: Judge,
    pub(super) policy: Policy,
    pub(super) max_tools: usize,
    pub(super) questions_expire_in: Option<Duration>,
}

impl Default for Rules {
    /// All tools, by their own names, none without a person's approval.
    fn default() -> Self {
        Self {
            only: None,
            without: BTreeSet::new(),
            filter: Arc::new(|_| true),
            rename: Arc::new(|tool| tool.name.clone()),
            prefix: String::new(),
            approval: Arc::new(|_| Approval::Always),
            judge: Arc::new(|_, _| true),
            policy: Arc::new(|_, policy| policy),
            max_tools: 256,
            questions_expire_in: None,
        }
    }
}

impl Rules {
    /// Whether the application wants this tool.
    pub(super) fn takes(&self, tool: &McpToolInfo) -> bool {
        let listed = self.only.as_ref().is_none_or(|only| only.contains(&tool.name));
        listed && !self.without.contains(&tool.name) && (self.filter)(tool)
    }

    /// What the engine keeps for it.
    pub(super) fn policy(&self, tool: &McpToolInfo) -> ToolPolicy {
        (self.policy)(tool, ToolPolicy::new().approval((self.approval)(tool)))
    }
}
