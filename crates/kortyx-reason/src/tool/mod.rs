//! What a model may call.

mod approve;
mod ask;
mod error;
mod function;
mod outcome;
mod perform;
mod policy;
mod redact;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use kortyx_protocol::{Issue, RawJson};
use kortyx_runtime::NodeContext;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::ask::Desk;
pub(crate) use self::{
    approve::{Decision, approval_question, read_decision},
    ask::{ToolAnswer, ToolAsk},
    perform::{Performance, Performed, perform},
    redact::redacted,
};
pub use self::{
    error::ToolError,
    function::{FunctionTool, tool},
    outcome::{ToolOutput, ToolResult, ToolStatus},
    policy::{Approval, OnError, ToolPolicy},
};

/// Something that a model may call.
///
/// Most tools are made by [`tool`]. Whatever a tool does in [`call`](Self::call), the engine is in front of it: arguments that do not
/// fit never reach it, and neither does a call that needs approval and has none.
pub trait Tool: Send + Sync {
    /// Its name: 1 to 64 ASCII letters, digits, `_` and `-`, not beginning with `kortyx_`.
    fn name(&self) -> &str;

    /// What it is for, for the model and for the person who approves.
    fn description(&self) -> &str;

    /// JSON Schema (2020-12) of the arguments: an object.
    ///
    /// # Errors
    /// The schema cannot be made; says why.
    fn parameters(&self) -> Result<RawJson, String>;

    /// The rules that the engine keeps for it.
    fn policy(&self) -> &ToolPolicy;

    /// Brings arguments that fit the schema into the form in which they are shown, approved and executed, with defaults filled in.
    ///
    /// Accepting its own result must give the same again.
    fn accept(&self, arguments: &Value) -> Result<Value, Vec<Issue>>;

    /// Whether this call needs a person's approval, where the policy is [`Approval::Decide`]. Asked once for each call, with the
    /// final arguments. A panic counts as yes.
    fn needs_approval<'a>(&'a self, arguments: &'a Value) -> BoxFuture<'a, bool>;

    /// Does it.
    fn call(&self, arguments: Value, ctx: ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;
}

/// What a tool sees of the run.
#[derive(Clone)]
pub struct ToolContext {
    node: NodeContext,
    call: Arc<str>,
    key: Arc<str>,
    cancelled: CancellationToken,
    desk: Desk,
}

impl ToolContext {
    pub(crate) fn new(node: NodeContext, call: &str, key: &Arc<str>, answers: &[ToolAnswer]) -> Self {
        let cancelled = node.cancelled().child_token();
        Self { node, call: call.into(), key: key.clone(), cancelled, desk: Desk::new(answers.into()) }
    }

    /// The call that this is, as the conversation names it.
    pub fn call_id(&self) -> &str {
        &self.call
    }

    /// A key for effects outside, the same in every retry and recovery of this call and different for every other.
    ///
    /// If the process dies between an effect and its record, the tool runs again with the same key, and so it does after it has
    /// asked.
    pub fn idempotency_key(&self) -> String {
        self.key.to_string()
    }

    /// A token that is cancelled when the run is asked to stop and when the tool has run out of time.
    pub fn cancelled(&self) -> CancellationToken {
        self.cancelled.clone()
    }

    /// The context of the node that reasons: its run, input and data. A tool runs within a step, so it begins no steps, and asks
    /// with [`ask`](Self::ask).
    pub fn node(&self) -> &NodeContext {
        &self.node
    }
}
