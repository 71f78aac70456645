//! One call, from its answer to its end.

use std::sync::Arc;

use kortyx_contracts::Ask as _;
use kortyx_runtime::Draw;
use serde_json::Value;
use tokio::sync::Mutex;
use tracing::Instrument as _;

use super::{
    Reasoning,
    gate::Waits,
    pass::{Slot, accepted, leave, why},
    record::{Plan, Planned, digest},
    rejection::remember_rejection,
    told::{Called, ToolTold},
    voice::CallVoice,
};
use crate::{
    Delivered, Message, ReasonError, TOOL_CALLS, Tool, ToolContext, ToolResult,
    interrupts::AskedAndAnswered,
    issues::listed,
    tool::{Decision, Performance, Performed, ToolAnswer, ToolAsk, ToolStatus, perform, read_decision, redacted},
};

/// What became of a call: what the model is told, and what the caller gets.
pub(super) struct Settled {
    pub(super) message: Message,
    pub(super) result: Option<ToolResult>,
    pub(super) answered: Option<AskedAndAnswered>,
    pub(super) delivered: Option<Delivered>,
}

impl Settled {
    /// Whether the call did what it was made for.
    pub(super) fn is_well(&self) -> bool {
        !matches!(self.message, Message::Tool { is_error: true, .. })
    }
}

/// The end of a call of a tool.
struct End {
    /// The client was told that it begins.
    announced: bool,
    status: ToolStatus,
    arguments: Value,
    output: Value,
    content: String,
}

impl End {
    fn without_running(status: ToolStatus, arguments: Value, content: impl Into<String>) -> Self {
        Self { announced: false, status, arguments, output: Value::Null, content: content.into() }
    }
}

impl<T> Reasoning<'_, T> {
    /// Brings a call to its end. `answer` is what a person said, when it waited for one.
    pub(super) async fn settle(
        &self,
        planned: &Planned,
        waits: &Waits,
        answer: Option<Value>,
    ) -> Result<Settled, ReasonError> {
        if let (Plan::Ask { contract, request }, Some(response)) = (&planned.plan, &answer) {
            return Ok(self.told(planned, contract, request, response));
        }
        let end = match (&planned.plan, waits) {
            (Plan::Refuse { why }, _) => {
                End::without_running(ToolStatus::Invalid, Value::from(planned.call.arguments.as_str()), why)
            }
            (Plan::Ask { request, .. }, Waits::Refused(why)) => {
                End::without_running(ToolStatus::Refused, request.clone(), *why)
            }
            (Plan::Emit(delivery) | Plan::Return(delivery), Waits::Refused(why)) => {
                End::without_running(ToolStatus::Refused, delivery.data.clone(), *why)
            }
            (Plan::Emit(delivery) | Plan::Return(delivery), _) => return self.deliver(planned, delivery).await,
            (Plan::Run { arguments, .. } | Plan::Rejected { arguments }, Waits::Refused(why)) => {
                End::without_running(ToolStatus::Refused, arguments.clone(), *why)
            }
            (Plan::Run { arguments, digest, .. }, Waits::No) => {
                self.run_tool(planned, arguments, digest, Some(&self.order)).await?
            }
            (Plan::Run { arguments, digest, .. }, _) => self.decide(planned, arguments, digest, answer).await?,
            (Plan::Ask { .. } | Plan::Rejected { .. }, _) => {
                return Err(ReasonError::Definition("a question has no answer".into()));
            }
        };
        self.ended(planned, end).await
    }

    /// The answer of a person becomes the result of the call.
    fn told(&self, planned: &Planned, contract: &str, request: &Value, response: &Value) -> Settled {
        let info = self.reason.interrupts.as_ref().and_then(|asking| asking.info(contract));
        let answered = AskedAndAnswered {
            contract: contract.to_owned(),
            schema_id: info.map(|info| info.schema_id.to_owned()).unwrap_or_default(),
            schema_version: info.map(|info| info.version.to_owned()).unwrap_or_default(),
            call_id: planned.call.id.clone(),
            request: request.clone(),
            response: response.clone(),
        };
        let content = kortyx_protocol::json::canonical(response).unwrap_or_default();
        Settled { message: message(planned, content, false), result: None, answered: Some(answered), delivered: None }
    }

    /// Does what a person decided. Edited arguments that the tool does not take are asked again.
    async fn decide(
        &self,
        planned: &Planned,
        arguments: &Value,
        bound: &str,
        mut answer: Option<Value>,
    ) -> Result<End, ReasonError> {
        let tool = self.tool(planned).await;
        loop {
            let decision = answer.as_ref().and_then(|answer| read_decision(&**tool, answer, arguments));
            match decision {
                Some(Decision::Approve) => return self.run_tool(planned, arguments, bound, None).await,
                Some(Decision::Edit(edited)) => {
                    if let Ok(edited) = accepted(&**tool, &edited) {
                        let bound = digest(&planned.call.tool, &edited)?;
                        let mut end = self.run_tool(planned, &edited, &bound, None).await?;
                        let changed = kortyx_protocol::json::canonical(&edited).unwrap_or_default();
                        end.content = format!("A person changed the arguments to {changed}. {}", end.content);
                        return Ok(end);
                    }
                }
                Some(Decision::Reject { feedback, ask_again }) => {
                    if !ask_again {
                        remember_rejection(self.ctx, &format!("{}/reject/{}", self.scope, planned.call.id), bound)?;
                    }
                    let feedback = feedback.map(|text| format!(" They say: {text}")).unwrap_or_default();
                    let content = format!("A person rejected this call; it was not made.{feedback}");
                    return Ok(End::without_running(ToolStatus::Rejected, arguments.clone(), content));
                }
                None => {}
            }
            answer = Some(self.answer(planned).await?);
        }
    }

    /// Runs a tool with arguments that are bound to this digest, once; again only when it has asked, with the answers. What keeps
    /// `order` runs one after the other, but nobody waits for what waits for a person.
    async fn run_tool(
        &self,
        planned: &Planned,
        arguments: &Value,
        bound: &str,
        order: Option<&Mutex<()>>,
    ) -> Result<End, ReasonError> {
        let mut turn = match order {
            Some(order) => Some(order.lock().await),
            None => None,
        };
        let tool = self.tool(planned).await;
        self.say_start(planned, arguments).await?;
        let id = format!("{}/tool/{}", self.scope, planned.call.id);
        // Read before the id is used, so that it is that of the first use for all of them.
        let key: Arc<str> = self.ctx.idempotency_key(&id).into();
        let mut answers: Vec<ToolAnswer> = Vec::new();
        let (ctx, step, call_id, approved) = (self.ctx, &*id, &*planned.call.id, order.is_none());
        let called = Called { ctx, step, tool: &**tool, call_id, approved };
        loop {
            let slot = Slot::default();
            let context = ToolContext::new(self.ctx.clone(), &planned.call.id, &key, &answers);
            // What asks and runs again is one call.
            let draws: &[Draw] = if answers.is_empty() { &[Draw::One(TOOL_CALLS)] } else { &[] };
            let ran = self.ctx.step_within(&id, draws, {
                let slot = slot.clone();
                move || async move {
                    run_bound(called, arguments, bound, context).await.map_err(|error| leave(&slot, error))
                }
            });
            match ran.await.map_err(|error| why(&slot, error))? {
                Performance::Ended(Performed { status, output, content }) => {
                    return Ok(End { announced: true, status, arguments: arguments.clone(), output, content });
                }
                Performance::Asks(asks) => {
                    drop(turn.take());
                    answers.extend(self.ask_for_tool(&id, asks).await?);
                }
            }
        }
    }

    /// Asks what a tool asks; all of it is answered before the tool is called again.
    async fn ask_for_tool(&self, step: &str, asks: Vec<ToolAsk>) -> Result<Vec<ToolAnswer>, ReasonError> {
        if asks.iter().any(|ask| ask.question().is_err()) {
            return self.park("a question of a tool in a form that is not known").await;
        }
        let questions: Vec<_> = asks.iter().map(|ask| (format!("{step}/ask/{}", ask.id), ask.clone())).collect();
        let responses = self.ctx.interrupt_all(questions).await?;
        let answered = asks.into_iter().zip(responses).map(|(asked, response)| ToolAnswer { asked, response });
        Ok(answered.collect())
    }

    async fn ended(&self, planned: &Planned, end: End) -> Result<Settled, ReasonError> {
        let tool = self.reason.find_tool(&planned.call.tool);
        if self.reason.emit {
            if !end.announced {
                self.say_start(planned, &end.arguments).await?;
            }
            let hidden = tool.map(|tool| tool.policy().redact.as_slice()).unwrap_or_default();
            self.voice(planned).end(end.status, redacted(&end.output, hidden)).await?;
        }
        let is_error = end.status != ToolStatus::Completed;
        Ok(Settled {
            message: message(planned, end.content.clone(), is_error),
            result: Some(ToolResult {
                call_id: planned.call.id.clone(),
                tool: planned.call.tool.clone(),
                status: end.status,
                arguments: end.arguments,
                output: end.output,
                content: end.content,
            }),
            answered: None,
            delivered: None,
        })
    }

    async fn say_start(&self, planned: &Planned, arguments: &Value) -> Result<(), ReasonError> {
        if !self.reason.emit {
            return Ok(());
        }
        let hidden = self.reason.find_tool(&planned.call.tool).map(|tool| tool.policy().redact.clone());
        let input = redacted(arguments, &hidden.unwrap_or_default());
        Ok(self.voice(planned).start(input).await?)
    }

    fn voice<'v>(&'v self, planned: &'v Planned) -> CallVoice<'v> {
        CallVoice { ctx: self.ctx, op: &self.op, tool: &planned.call.tool, call: &planned.call.id }
    }

    /// The tool of a call that was planned with it.
    async fn tool(&self, planned: &Planned) -> &Arc<dyn Tool> {
        match self.reason.find_tool(&planned.call.tool) {
            Some(tool) => tool,
            None => self.park(&format!("the tool `{}`", planned.call.tool)).await,
        }
    }
}

/// Runs a tool, unless its arguments are no longer those that were decided about.
async fn run_bound(
    called: Called<'_>,
    arguments: &Value,
    bound: &str,
    context: ToolContext,
) -> Result<Performance, ReasonError> {
    let refused =
        |content: String| Performance::Ended(Performed { status: ToolStatus::Invalid, output: Value::Null, content });
    let tool = called.tool;
    let arguments = match accepted(tool, arguments) {
        Ok(arguments) => arguments,
        Err(issues) => return Ok(refused(listed(&issues))),
    };
    if digest(tool.name(), &arguments)? != bound {
        return Ok(refused("the arguments are not those that were decided about; the call was not made".into()));
    }
    let name = tool.name().to_owned();
    let mut told = ToolTold::begin(called, &arguments);
    let performed = perform(tool, arguments, context).instrument(told.span.clone()).await;
    told.end(&performed);
    performed.map_err(|error| ReasonError::Tool { tool: name, error })
}

pub(super) fn message(planned: &Planned, content: String, is_error: bool) -> Message {
    Message::Tool { tool_call_id: planned.call.id.clone(), tool: planned.call.tool.clone(), content, is_error }
}
