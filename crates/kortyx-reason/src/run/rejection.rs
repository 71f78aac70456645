//! Calls that a person rejected: the run remembers them, so that a model which asks again does not bother a person again.
//!
//! They are marks of the run: they hold in all its nodes, its branches and its children, and in what is forked from it.

use kortyx_runtime::{NodeContext, NodeError};
use serde_json::Value;

use super::record::digest;

/// Whether this call was rejected and not reopened. Asked while a pass is recorded, so that the answer stands.
pub(super) fn is_rejected(ctx: &NodeContext, digest: &str) -> Result<bool, NodeError> {
    ctx.is_marked(&mark(digest))
}

/// Remembers that this call was rejected. `id` names the rejection.
pub(super) fn remember_rejection(ctx: &NodeContext, id: &str, digest: &str) -> Result<(), NodeError> {
    ctx.mark(id, &mark(digest), true)
}

/// Lets a rejected call be asked again.
pub(crate) fn forget_rejection(ctx: &NodeContext, tool: &str, arguments: &Value) -> Result<(), NodeError> {
    let mark = mark(&digest(tool, arguments)?);
    ctx.mark(&format!("reopen/{mark}"), &mark, false)
}

fn mark(digest: &str) -> String {
    format!("kortyx.rejected.{digest}")
}
