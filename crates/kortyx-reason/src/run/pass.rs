//! One pass of the model as a step of the node.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use kortyx_contracts::Ask as _;
use kortyx_protocol::Issue;
use serde_json::Value;
use tracing::Instrument as _;

use super::{
    Reasoning, contract_of,
    deliver::{RETURNED_TWICE, delivery, is_return},
    may_ask, parsed,
    record::{Gate, Opening, PassRecord, Plan, Planned, VERSION, digest},
    rejection::is_rejected,
    streams::{Ears, Streams},
    told::PassTold,
    voice::Voice,
};
use crate::{
    Approval, FinishReason, ModelError, ModelErrorKind, ModelRequest, ReasonError, Tool, ToolCall, ToolDeclaration,
    issues::listed,
    limits::{PASS, spend},
    model::{Collected, RequestedCall, answered},
    outputs::delivery_of,
    tool::approval_question,
};

/// Where a step leaves the error that its own cannot carry.
pub(super) type Slot = Arc<Mutex<Option<ReasonError>>>;

/// Takes the error of a step: the one that was left, else the step's.
pub(super) fn why(slot: &Slot, error: kortyx_runtime::NodeError) -> ReasonError {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(ReasonError::Context(error))
}

/// Leaves an error for [`why`].
pub(super) fn leave(slot: &Slot, error: ReasonError) -> kortyx_runtime::NodeError {
    let text = error.to_string();
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    kortyx_runtime::NodeError::message(text)
}

impl<T> Reasoning<'_, T> {
    /// Has the model speak, or reads what it said.
    pub(super) async fn pass(&mut self, step: u32) -> Result<PassRecord, ReasonError> {
        let record = {
            let this = &*self;
            let slot = Slot::default();
            let id = format!("{}/pass/{step}", this.scope);
            let spoken = this.ctx.step_within(&id, &PASS, {
                let slot = slot.clone();
                let id = &id;
                move || async move { this.speak(step, id).await.map_err(|error| leave(&slot, error)) }
            });
            spoken.await.map_err(|error| why(&slot, error))?
        };
        self.check(record).await
    }

    /// Whether this code can go on with what was recorded; the run is set aside if not.
    async fn check(&mut self, mut record: PassRecord) -> Result<PassRecord, ReasonError> {
        if record.v != VERSION {
            return self.park(&format!("a format of version {}", record.v)).await;
        }
        let Some(Opening { messages, tools }) = record.opening.take() else { return Ok(record) };
        let is_here = |tool: &ToolDeclaration| match contract_of(&tool.name) {
            Some(contract) => self.reason.interrupts.as_ref().is_some_and(|interrupts| interrupts.has(contract)),
            None if delivery_of(&tool.name).is_some() => self.reason.outputs.find(&tool.name).is_some(),
            None => self.reason.find_tool(&tool.name).is_some(),
        };
        if let Some(missing) = tools.iter().find(|tool| !is_here(tool)) {
            return self.park(&format!("the tool `{}`", missing.name)).await;
        }
        (self.messages, self.tools) = (messages, tools);
        Ok(record)
    }

    async fn speak(&self, step: u32, id: &str) -> Result<PassRecord, ReasonError> {
        let tools = self.tools_now();
        let schema = self.reason.output_schema()?.filter(|_| self.reason.model.capabilities().json_schema);
        let request = ModelRequest {
            messages: &self.messages,
            tools: &tools,
            json_schema: schema.as_ref(),
            settings: &self.reason.settings,
        };
        let mut ears = self.ears(step)?;
        let model = &*self.reason.model;
        let hidden = |tool: &str| self.hidden(tool);
        let mut told = PassTold::begin(self.ctx, id, model, (&self.messages, &self.reason.settings), &hidden);
        let answer = answered(model, request, self.reason.retry, self.reason.patience, &mut ears);
        let answer = answer.instrument(told.span.clone());
        let collected = match self.ctx.cancelled().run_until_cancelled_owned(answer).await {
            Some(Ok(collected)) => Ok(collected),
            Some(Err(error)) => Err(ReasonError::Model(error)),
            None => Err(ReasonError::Cancelled),
        };
        told.end(&collected);
        let collected = collected.and_then(|collected| self.counted(&collected).map(|()| collected));
        let record = match collected {
            Ok(collected) => self.record(step, collected, &mut ears.streams).await,
            Err(error) => Err(error),
        };
        if record.is_err() {
            ears.hush().await;
        }
        record
    }

    /// What may not be seen of a tool's arguments and results.
    fn hidden(&self, tool: &str) -> Vec<String> {
        self.reason.find_tool(tool).map(|tool| tool.policy().redact.clone()).unwrap_or_default()
    }

    /// Who hears this pass.
    fn ears(&self, step: u32) -> Result<Ears<'_>, ReasonError> {
        let mut streams = Streams::new(self.ctx, &self.reason.outputs)?;
        if let Some((streamed, schema)) = self.reason.streamed.as_ref().zip(self.reason.output_schema()?) {
            streams = streams.of_text(streamed, &schema)?;
        }
        Ok(Ears { voice: Voice::new(self.ctx, self.reason.emit, &self.op, step), streams })
    }

    /// Counts what an answer cost, whatever is made of it, and refuses what nothing can be made of.
    fn counted(&self, collected: &Collected) -> Result<(), ReasonError> {
        spend(self.ctx, collected.usage)?;
        self.usable(collected)
    }

    /// Refuses what nothing can be made of. It is no answer, so it is not recorded.
    fn usable(&self, collected: &Collected) -> Result<(), ReasonError> {
        match collected.finish {
            Some(FinishReason::Refusal) => {
                Err(ReasonError::Model(ModelError::new(ModelErrorKind::Refusal, "the model refused to answer")))
            }
            Some(FinishReason::Length) if !collected.calls.is_empty() || self.reason.output.schema.is_some() => {
                Err(ReasonError::Truncated)
            }
            _ => Ok(()),
        }
    }

    async fn record(
        &self,
        step: u32,
        collected: Collected,
        streams: &mut Streams<'_>,
    ) -> Result<PassRecord, ReasonError> {
        let is_final = self.reason.streamed.is_some() && collected.calls.is_empty() && self.is_final(&collected.text);
        let stream = streams.finish_text(is_final).await;
        let returns = collected.calls.iter().filter(|call| is_return(&call.tool)).count();
        let mut calls = Vec::with_capacity(collected.calls.len());
        for (place, call) in collected.calls.into_iter().enumerate() {
            let refused = (returns > 1 && is_return(&call.tool)).then_some(RETURNED_TWICE);
            let plan = match streams.finish(call.index, refused).await {
                Some((contract, written)) => delivery(contract, written),
                None => self.planned(&call)?,
            };
            let call = ToolCall::new(format!("call_{step}_{place}"), call.tool, &call.arguments);
            calls.push(Planned { call, plan });
        }
        let opening = (step == 0).then(|| Opening { messages: self.messages.clone(), tools: self.tools.clone() });
        Ok(PassRecord {
            v: VERSION,
            opening,
            text: collected.text,
            calls,
            finish: collected.finish,
            usage: collected.usage,
            warnings: collected.warnings,
            provider_metadata: collected.provider_metadata,
            stream,
        })
    }

    /// The tools that the model may call now.
    fn tools_now(&self) -> Vec<ToolDeclaration> {
        let may_ask = may_ask(self.reason.interrupts.as_ref(), self.asked);
        self.tools.iter().filter(|tool| may_ask || contract_of(&tool.name).is_none()).cloned().collect()
    }

    fn planned(&self, call: &RequestedCall) -> Result<Plan, ReasonError> {
        match parsed(&call.arguments) {
            Ok(arguments) => self.plan(&call.tool, arguments),
            Err(why) => Ok(Plan::Refuse { why }),
        }
    }

    fn plan(&self, tool: &str, arguments: Value) -> Result<Plan, ReasonError> {
        let unknown = || Plan::Refuse { why: format!("there is no tool `{tool}`") };
        if let Some(contract) = contract_of(tool) {
            let Some(interrupts) = self.reason.interrupts.as_ref().filter(|asking| asking.has(contract)) else {
                return Ok(unknown());
            };
            return Ok(match interrupts.refuse(contract, &arguments) {
                Some(why) => Plan::Refuse { why },
                None => Plan::Ask { contract: contract.to_owned(), request: arguments },
            });
        }
        let Some(tool) = self.reason.find_tool(tool) else { return Ok(unknown()) };
        Ok(match accepted(&**tool, &arguments) {
            Err(issues) => Plan::Refuse { why: listed(&issues) },
            Ok(arguments) => self.run_plan(&**tool, arguments)?,
        })
    }

    /// The plan of a call that fits, unless nobody could be asked about it.
    fn run_plan(&self, tool: &dyn Tool, arguments: Value) -> Result<Plan, ReasonError> {
        let digest = digest(tool.name(), &arguments)?;
        if is_rejected(self.ctx, &digest)? {
            return Ok(Plan::Rejected { arguments });
        }
        let gate = match tool.policy().approval {
            Approval::Never => Gate::Open,
            Approval::Always => Gate::Ask,
            Approval::Decide => Gate::Decide,
        };
        if gate != Gate::Open {
            let schema = tool.parameters().map_err(ReasonError::Definition)?;
            if let Err(why) = approval_question(tool, &schema, "call", &arguments, &digest).question() {
                return Ok(Plan::Refuse { why: why.to_string() });
            }
        }
        Ok(Plan::Run { arguments, digest, gate })
    }
}

/// Arguments in their final form: they fit the tool's schema, whatever the tool itself checks, and then the tool.
pub(super) fn accepted(tool: &dyn Tool, arguments: &Value) -> Result<Value, Vec<Issue>> {
    let broken = |why: String| vec![Issue::new("", "schema", why)];
    let schema = tool.parameters().map_err(broken)?;
    let schema = kortyx_contracts::SchemaValidator::compile_raw(&schema).map_err(|why| broken(why.to_string()))?;
    let issues = schema.validate(arguments);
    if !issues.is_empty() {
        return Err(issues);
    }
    catch_unwind(AssertUnwindSafe(|| tool.accept(arguments)))
        .unwrap_or_else(|_| Err(broken("the tool cannot read these arguments".into())))
}
