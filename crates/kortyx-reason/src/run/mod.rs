//! The loop: a pass of the model, what it asked for, the next pass.

mod batch;
mod deliver;
mod gate;
mod pass;
mod record;
mod rejection;
mod settle;
mod streams;
mod told;
mod voice;

use std::sync::Arc;

use kortyx_protocol::{Failure, FailureCode};
use kortyx_runtime::NodeContext;
use serde_json::Value;
use tokio::sync::Mutex;

use self::record::{Opening, PassRecord, Plan};
pub(crate) use self::rejection::forget_rejection;
use crate::{
    Delivered, FinishReason, Interrupts, Message, Progress, Reason, ReasonError, Reasoned, ToolDeclaration,
    issues::listed, output::Unfit, reasoned::add,
};

/// A call to reason under way.
pub(crate) struct Reasoning<'a, T> {
    ctx: &'a NodeContext,
    reason: &'a Reason<T>,
    /// What the ids of all its context calls begin with.
    scope: String,
    /// The operation as clients know it.
    op: Arc<str>,
    messages: Vec<Message>,
    tools: Vec<ToolDeclaration>,
    /// How many questions the model has asked.
    asked: u32,
    corrected: bool,
    progress: Progress,
    /// What tools that wait for nobody run after each other by.
    order: Mutex<()>,
}

/// What a model is told that answers before it asked.
const ASK_FIRST: &str = "You have to ask the person before you answer. Call one of the tools that request input.";

/// Whether the model is done.
enum Verdict<T> {
    Done(T),
    /// It is told this and goes on.
    GoOn(String),
}

impl<'a, T> Reasoning<'a, T> {
    /// Checks the call. What is wrong with it comes out before anything happens.
    pub(crate) fn begin(ctx: &'a NodeContext, scope: String, reason: &'a Reason<T>) -> Result<Self, ReasonError> {
        let tools = reason.declarations()?;
        let op: String = ctx.idempotency_key(&scope).chars().take(16).collect();
        let Opening { messages, tools } = opening(reason, tools)?;
        let progress = Progress::default();
        Ok(Self {
            ctx,
            reason,
            scope,
            op: op.into(),
            messages,
            tools,
            asked: 0,
            corrected: false,
            progress,
            order: Mutex::default(),
        })
    }

    /// Runs to the result.
    pub(crate) async fn run(mut self) -> Result<Reasoned<T>, ReasonError> {
        for step in 0..self.reason.max_steps {
            let record = self.pass(step).await?;
            self.take(step, &record);
            if !record.calls.is_empty() {
                match self.calls(&record).await? {
                    Some(returned) => return self.returned(record, returned),
                    None => continue,
                }
            }
            match self.verdict(&record).await? {
                Verdict::Done(output) => return Ok(self.done(record, output, None)),
                Verdict::GoOn(text) => self.messages.push(Message::system(text)),
            }
        }
        Err(ReasonError::StepsExhausted(Box::new(self.progress)))
    }

    /// Takes in what the model said.
    fn take(&mut self, step: u32, record: &PassRecord) {
        let calls = record.calls.iter().map(|planned| planned.call.clone());
        self.messages.push(Message::Assistant { content: record.text.clone(), tool_calls: calls.clone().collect() });
        self.progress.tool_calls.extend(calls);
        self.progress.text.clone_from(&record.text);
        add(&mut self.progress.usage, record.usage);
        self.progress.warnings.extend(record.warnings.iter().cloned());
        self.progress.steps = step.saturating_add(1);
    }

    /// Makes the calls of a turn and tells the model what became of them. Gives what it returned, if it did.
    async fn calls(&mut self, record: &PassRecord) -> Result<Option<Delivered>, ReasonError> {
        let before = self.asked;
        let mut returned = None;
        for (settled, planned) in self.batch(&record.calls).await?.into_iter().zip(&record.calls) {
            self.messages.push(settled.message);
            self.progress.interrupt_history.0.extend(settled.answered);
            self.progress.tool_results.extend(settled.result);
            match &planned.plan {
                Plan::Return(_) => returned = returned.or(settled.delivered),
                _ => self.progress.emissions.0.extend(settled.delivered),
            }
        }
        let asked = record.calls.iter().filter(|planned| matches!(planned.plan, Plan::Ask { .. })).count();
        let asked = before.saturating_add(u32::try_from(asked).unwrap_or(u32::MAX));
        self.asked = asked.min(self.max_requests());
        if self.asked > before && self.asked == self.max_requests() {
            let text = "You have asked all the questions that you may ask. Go on with what you know.";
            self.messages.push(Message::system(text));
        }
        Ok(returned)
    }

    /// Whether a person has to be asked before the call may end.
    fn has_yet_to_ask(&self) -> bool {
        self.asked == 0 && self.reason.interrupts.as_ref().is_some_and(|interrupts| interrupts.required)
    }

    /// Whether a turn without calls is the final answer.
    fn judge(&mut self, text: &str) -> Result<Verdict<T>, ReasonError> {
        if self.has_yet_to_ask() {
            return Ok(Verdict::GoOn(ASK_FIRST.into()));
        }
        let endings: Vec<String> = self.reason.outputs.endings().collect();
        if !endings.is_empty() {
            let text = format!("You are not done until you return. Call one of these tools: {}.", endings.join(", "));
            return Ok(Verdict::GoOn(text));
        }
        let unfit = match self.fit(text) {
            Ok(output) => return Ok(Verdict::Done(output)),
            Err(unfit) => unfit,
        };
        if self.corrected {
            let issues = if let Unfit::Schema(issues) = unfit { issues } else { Vec::new() };
            return Err(ReasonError::Output { text: text.to_owned(), issues });
        }
        self.corrected = true;
        Ok(Verdict::GoOn(match unfit {
            Unfit::NotJson(why) => {
                format!("Your answer is not JSON: {why}. Answer again, with one JSON value and nothing else.")
            }
            Unfit::Schema(issues) => format!("Your answer does not fit its schema. Answer again.\n{}", listed(&issues)),
        }))
    }

    /// A contract to return with and an output exclude each other, so the output is the one that needs no text.
    fn returned(self, record: PassRecord, returned: Delivered) -> Result<Reasoned<T>, ReasonError> {
        match (self.reason.output.read)("") {
            Ok(output) => Ok(self.done(record, output, Some(returned))),
            Err(_) => Err(ReasonError::Definition("what is returned is not the output".into())),
        }
    }

    fn done(self, record: PassRecord, output: T, returned: Option<Delivered>) -> Reasoned<T> {
        let Progress { text, tool_calls, tool_results, interrupt_history, emissions, usage, warnings, steps } =
            self.progress;
        let finish_reason = record.finish.unwrap_or(FinishReason::Other);
        let provider_metadata = record.provider_metadata;
        Reasoned {
            text,
            output,
            returned,
            emissions,
            tool_calls,
            tool_results,
            interrupt_history,
            usage,
            finish_reason,
            warnings,
            provider_metadata,
            steps,
        }
    }

    fn max_requests(&self) -> u32 {
        self.reason.interrupts.as_ref().map_or(0, |interrupts| interrupts.max_requests)
    }

    /// Sets the run aside, because what is recorded needs what the code does not have.
    async fn park<R>(&self, what: &str) -> R {
        let text = format!(
            "the call `{}` of the node `{}` was recorded with {what}; deploy code that has it, or cancel the run",
            self.scope,
            self.ctx.node()
        );
        self.ctx.park(Failure::new(FailureCode::ReplayDiverged, text)).await
    }
}

/// What the model is given first.
fn opening<T>(reason: &Reason<T>, tools: Vec<ToolDeclaration>) -> Result<Opening, ReasonError> {
    let mut messages = Vec::with_capacity(reason.history.len().saturating_add(3));
    messages.extend(reason.system.as_ref().map(Message::system));
    messages.extend(reason.history.iter().cloned());
    messages.extend(reason.input.as_ref().map(Message::user));
    let schema = reason.output_schema()?;
    if let Some(schema) = schema.filter(|_| !reason.model.capabilities().json_schema) {
        let text = format!("Your final answer is one JSON value and nothing else. It fits this JSON Schema:\n{schema}");
        messages.push(Message::system(text));
    }
    if messages.is_empty() {
        return Err(ReasonError::Definition("the model is given nothing: set an input or a history".into()));
    }
    Ok(Opening { messages, tools })
}

/// Whether the model may still ask.
fn may_ask(interrupts: Option<&Interrupts>, asked: u32) -> bool {
    interrupts.is_some_and(|interrupts| asked < interrupts.max_requests)
}

/// The name of the contract that a control tool stands for.
fn contract_of(tool: &str) -> Option<&str> {
    tool.strip_prefix(crate::interrupts::REQUEST_INPUT_PREFIX)
}

/// Arguments as a value: models leave them empty where there are none.
fn parsed(arguments: &str) -> Result<Value, String> {
    if arguments.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    kortyx_protocol::json::from_str(arguments).map_err(|error| format!("the arguments are not JSON: {error}"))
}
