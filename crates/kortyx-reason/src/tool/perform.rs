//! Running a tool within its rules.

use std::{any::Any, panic::AssertUnwindSafe};

use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{OnError, Tool, ToolContext, ToolError, ToolOutput, ToolStatus, outcome::as_text};

/// What a tool did; the result of its step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Performed {
    pub(crate) status: ToolStatus,
    pub(crate) output: Value,
    pub(crate) content: String,
}

/// Runs a tool. An error is one that ends the run.
pub(crate) async fn perform(tool: &dyn Tool, arguments: Value, ctx: ToolContext) -> Result<Performed, ToolError> {
    let error = match run(tool, arguments, ctx).await {
        Ok(performed) => return Ok(performed),
        Err(error) => error,
    };
    tracing::warn!(tool = tool.name(), ?error, "the tool failed");
    match tool.policy().on_error {
        OnError::EndRun => Err(error),
        OnError::TellModel => {
            Ok(Performed { status: ToolStatus::Failed, output: Value::Null, content: error.to_string() })
        }
    }
}

async fn run(tool: &dyn Tool, arguments: Value, ctx: ToolContext) -> Result<Performed, ToolError> {
    let policy = tool.policy();
    let guard = ctx.cancelled.clone().drop_guard();
    // The call itself may panic too, before there is a future.
    let called = AssertUnwindSafe(async move { tool.call(arguments, ctx).await }).catch_unwind();
    let finished = tokio::time::timeout(policy.timeout, called).await;
    drop(guard);
    let output = match finished {
        Ok(Ok(output)) => output?,
        Ok(Err(panic)) => return Err(panicked(tool.name(), &*panic)),
        Err(_) => return Err(ToolError::new(format!("the tool took longer than {:?}", policy.timeout))),
    };
    let ToolOutput(output) = output;
    let content = as_text(&output);
    let (size, most) = (content.len(), policy.max_result_bytes);
    if size > most {
        return Err(ToolError::new(format!("the result has {size} bytes, more than {most}: ask for less at once")));
    }
    Ok(Performed { status: ToolStatus::Completed, output, content })
}

/// What a panic says stays in the log: it was not written for a model.
fn panicked(tool: &str, panic: &(dyn Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(tool, panic = text, "the tool panicked");
    ToolError::new("the tool failed")
}
