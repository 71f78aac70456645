//! One pass, from its request to its last event.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, future::BoxFuture};
use kortyx_protocol::Usage;
use serde_json::Value;

use super::{FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, PassClock};

/// The most bytes of an answer's text and the arguments of its calls; far more than models say, and than a store keeps of a run.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// What a call counts beside its text, so that calls without any come to an end too.
const CALL_BYTES: usize = 64;

/// Who hears the text while it comes.
pub(crate) trait Listener: Send {
    /// More text.
    fn text<'a>(&'a mut self, delta: &'a str) -> BoxFuture<'a, ()>;

    /// More of the arguments of a call, whose tool may not be known yet.
    fn call<'a>(&'a mut self, index: u32, tool: &'a str, arguments: &'a str) -> BoxFuture<'a, ()>;

    /// The pass is over, well or not.
    fn end(&mut self) -> BoxFuture<'_, ()>;
}

/// What a model said in one pass.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) text: String,
    pub(crate) calls: Vec<RequestedCall>,
    pub(crate) finish: Option<FinishReason>,
    pub(crate) usage: Usage,
    pub(crate) warnings: Vec<String>,
    pub(crate) provider_metadata: Option<Value>,
}

/// A call as the model wrote it.
#[derive(Debug, Default)]
pub(crate) struct RequestedCall {
    /// Which call of the pass, as the model counts.
    pub(crate) index: u32,
    pub(crate) tool: String,
    pub(crate) arguments: String,
}

/// A pass that failed.
pub(crate) struct FailedPass {
    pub(crate) error: ModelError,
    /// The model had said something.
    pub(crate) has_begun: bool,
}

/// Begins a pass and takes its events in.
pub(crate) async fn collect(
    model: &dyn Model,
    request: ModelRequest<'_>,
    clock: &PassClock,
    listener: &mut impl Listener,
) -> Result<Collected, FailedPass> {
    let mut pass = Pass::default();
    let outcome = pass.run(model, request, clock, listener).await;
    listener.end().await;
    match outcome {
        Ok(()) => {
            pass.collected.calls = pass.calls.into_values().collect();
            Ok(pass.collected)
        }
        Err(error) => Err(FailedPass { error, has_begun: pass.has_begun }),
    }
}

#[derive(Default)]
struct Pass {
    collected: Collected,
    calls: BTreeMap<u32, RequestedCall>,
    /// Bytes of text, names and arguments so far.
    size: usize,
    has_begun: bool,
}

impl Pass {
    async fn run(
        &mut self,
        model: &dyn Model,
        request: ModelRequest<'_>,
        clock: &PassClock,
        listener: &mut impl Listener,
    ) -> Result<(), ModelError> {
        let mut events = clock.wait(model.stream(request)).await??;
        while let Some(event) = clock.wait(events.next()).await? {
            let event = event?;
            self.weigh(&event)?;
            if self.take(event, listener).await {
                return Ok(());
            }
        }
        Err(ModelError::new(ModelErrorKind::Transport, "the stream of the model ended before its answer did"))
    }

    /// Refuses an answer without end before it fills the memory.
    fn weigh(&mut self, event: &ModelEvent) -> Result<(), ModelError> {
        let more = match event {
            ModelEvent::Text(text) | ModelEvent::Warning(text) => text.len(),
            ModelEvent::ToolCall { tool, arguments, .. } => {
                CALL_BYTES.saturating_add(tool.len()).saturating_add(arguments.len())
            }
            _ => 0,
        };
        self.size = self.size.saturating_add(more);
        if self.size <= MAX_ANSWER_BYTES {
            return Ok(());
        }
        let text = format!("the answer is longer than {MAX_ANSWER_BYTES} bytes");
        Err(ModelError::new(ModelErrorKind::InvalidResponse, text))
    }

    /// Takes an event in. Whether it was the last.
    async fn take(&mut self, event: ModelEvent, listener: &mut impl Listener) -> bool {
        match event {
            ModelEvent::Text(delta) if delta.is_empty() => {}
            ModelEvent::Text(delta) => {
                self.has_begun = true;
                listener.text(&delta).await;
                self.collected.text.push_str(&delta);
            }
            ModelEvent::ToolCall { index, tool, arguments } => {
                self.has_begun = true;
                let call = self.calls.entry(index).or_insert_with(|| RequestedCall { index, ..Default::default() });
                if call.tool.is_empty() {
                    call.tool = tool;
                }
                listener.call(index, &call.tool, &arguments).await;
                call.arguments.push_str(&arguments);
            }
            ModelEvent::Usage(usage) => self.collected.usage = usage,
            ModelEvent::Warning(warning) => self.collected.warnings.push(warning),
            ModelEvent::ProviderMetadata(metadata) => self.collected.provider_metadata = Some(metadata),
            ModelEvent::Finish(reason) => {
                self.collected.finish = Some(reason);
                return true;
            }
        }
        false
    }
}
