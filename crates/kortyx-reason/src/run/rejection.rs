//! Calls that a person rejected: the run remembers them, so that a model which asks again does not bother a person again.

use kortyx_runtime::{NodeContext, NodeError, StateHandle};
use serde_json::Value;

use super::record::digest;

/// Whether this call was rejected in this run and not reopened.
pub(super) fn is_rejected(ctx: &NodeContext, digest: &str) -> Result<bool, NodeError> {
    handle(ctx, digest).get()
}

/// Remembers that this call was rejected.
pub(super) fn remember_rejection(ctx: &NodeContext, digest: &str) -> Result<(), NodeError> {
    handle(ctx, digest).set(&true)
}

/// Lets a rejected call be asked again.
pub(crate) fn forget_rejection(ctx: &NodeContext, tool: &str, arguments: &Value) -> Result<(), NodeError> {
    handle(ctx, &digest(tool, arguments)?).set(&false)
}

/// Every call has a key of its own, so that branches of a graph do not write over each other's.
fn handle(ctx: &NodeContext, digest: &str) -> StateHandle<bool> {
    ctx.workflow_state(&format!("kortyx.rejected.{digest}"), false)
}
