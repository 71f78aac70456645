//! Running a tool within its rules.

use std::{any::Any, future::poll_fn, panic::AssertUnwindSafe, task::Poll};

use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{OnError, Tool, ToolAsk, ToolContext, ToolError, ToolOutput, ToolStatus, outcome::as_text};

/// What came of running a tool; the result of its step.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Record", into = "Record")]
pub(crate) enum Performance {
    Ended(Performed),
    /// It asks this, and is to be called again with the answers.
    Asks(Vec<ToolAsk>),
}

/// What a tool did.
#[derive(Debug, Clone)]
pub(crate) struct Performed {
    pub(crate) status: ToolStatus,
    pub(crate) output: Value,
    pub(crate) content: String,
}

/// A performance as it is recorded. Code that knows no questions of tools does not read one without a status.
#[derive(Serialize, Deserialize)]
struct Record {
    status: Option<ToolStatus>,
    output: Value,
    content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asks: Vec<ToolAsk>,
}

impl From<Record> for Performance {
    fn from(Record { status, output, content, asks }: Record) -> Self {
        match status {
            Some(status) => Self::Ended(Performed { status, output, content }),
            None => Self::Asks(asks),
        }
    }
}

impl From<Performance> for Record {
    fn from(performance: Performance) -> Self {
        match performance {
            Performance::Ended(Performed { status, output, content }) => {
                Self { status: Some(status), output, content, asks: Vec::new() }
            }
            Performance::Asks(asks) => Self { status: None, output: Value::Null, content: String::new(), asks },
        }
    }
}

/// Runs a tool. An error is one that ends the run.
pub(crate) async fn perform(tool: &dyn Tool, arguments: Value, ctx: ToolContext) -> Result<Performance, ToolError> {
    let error = match run(tool, arguments, ctx).await {
        Ok(performance) => return Ok(performance),
        Err(error) => error,
    };
    tracing::warn!(tool = tool.name(), ?error, "the tool failed");
    match tool.policy().on_error {
        OnError::EndRun => Err(error),
        OnError::TellModel => {
            let content = error.to_string();
            Ok(Performance::Ended(Performed { status: ToolStatus::Failed, output: Value::Null, content }))
        }
    }
}

async fn run(tool: &dyn Tool, arguments: Value, ctx: ToolContext) -> Result<Performance, ToolError> {
    let policy = tool.policy();
    let guard = ctx.cancelled.clone().drop_guard();
    let desk = ctx.desk.clone();
    // The call itself may panic too, before there is a future.
    let mut called = Box::pin(AssertUnwindSafe(async move { tool.call(arguments, ctx).await }).catch_unwind());
    let asked_or_called = poll_fn(|cx| {
        desk.wake(cx.waker());
        if let Poll::Ready(ended) = called.as_mut().poll(cx) {
            return Poll::Ready(Ok(ended));
        }
        let asks = desk.take_open();
        if asks.is_empty() { Poll::Pending } else { Poll::Ready(Err(asks)) }
    });
    let finished = tokio::time::timeout(policy.timeout, asked_or_called).await;
    // Nothing of a call that is to be made again goes on.
    drop(called);
    drop(guard);
    let output = match finished {
        Ok(Ok(Ok(output))) => output?,
        Ok(Ok(Err(panic))) => return Err(panicked(tool.name(), &*panic)),
        Ok(Err(asks)) if desk.answered().saturating_add(asks.len()) > policy.max_questions => {
            return Err(ToolError::new(format!("the tool asks more than {} questions", policy.max_questions)));
        }
        Ok(Err(asks)) => return Ok(Performance::Asks(asks)),
        Err(_) => return Err(ToolError::new(format!("the tool took longer than {:?}", policy.timeout))),
    };
    let ToolOutput(output) = output;
    let content = as_text(&output);
    let (size, most) = (content.len(), policy.max_result_bytes);
    if size > most {
        return Err(ToolError::new(format!("the result has {size} bytes, more than {most}: ask for less at once")));
    }
    Ok(Performance::Ended(Performed { status: ToolStatus::Completed, output, content }))
}

/// What a panic says stays in the log: it was not written for a model.
fn panicked(tool: &str, panic: &(dyn Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(tool, panic = text, "the tool panicked");
    ToolError::new("the tool failed")
}
