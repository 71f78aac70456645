//! Calls that a person rejected: the run remembers them, so that a model which asks again does not bother a person again.

use kortyx_protocol::RunId;
use kortyx_runtime::{NodeContext, NodeError, StateHandle};
use serde_json::Value;

use super::record::digest;

/// Whether this call was rejected in this run and not reopened.
pub(super) fn is_rejected(ctx: &NodeContext, digest: &str) -> Result<bool, NodeError> {
    Ok(handle(ctx, digest).get()?.is_some_and(|run| run == *ctx.run_id()))
}

/// Remembers that this call was rejected.
pub(super) fn remember_rejection(ctx: &NodeContext, digest: &str) -> Result<(), NodeError> {
    handle(ctx, digest).set(&Some(ctx.run_id().clone()))
}

/// Lets a rejected call be asked again.
pub(crate) fn forget_rejection(ctx: &NodeContext, tool: &str, arguments: &Value) -> Result<(), NodeError> {
    handle(ctx, &digest(tool, arguments)?).set(&None)
}

/// The run in which a call was rejected: a session hands its state on to its next run, in which the person may want it.
///
/// Every call has a key of its own, so that branches of a graph do not write over each other's.
fn handle(ctx: &NodeContext, digest: &str) -> StateHandle<Option<RunId>> {
    ctx.workflow_state(&format!("kortyx.rejected.{digest}"), None)
}
