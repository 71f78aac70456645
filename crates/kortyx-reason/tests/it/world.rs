//! What the tests share: an agent in memory, a node that reasons, tools that count, and a contract.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use kortyx_contracts::InterruptContract;
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ExecuteOptions};
use kortyx_protocol::{ExecutionResult, Failure, PendingQuestion, ResumeHandle, ResumeResponse};
use kortyx_reason::{Interrupts, Reason, ReasonExt as _, Reasoned, Script, ScriptedModel, ToolContext, ToolError};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Ambiguity {
    pub(crate) question: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Clarification {
    #[schemars(length(min = 1))]
    pub(crate) text: String,
}

pub(crate) const CLARIFY: InterruptContract<Ambiguity, Clarification> = InterruptContract::new("clarify")
    .description("Ask when the task can be read in several ways")
    .schema_id("acme.clarify")
    .version("1");

/// The tool by which a model asks with [`CLARIFY`].
pub(crate) const ASK: &str = "kortyx_request_input__clarify";

pub(crate) fn clarify() -> Interrupts {
    Interrupts::optional().contract(&CLARIFY)
}

/// The arguments of the tools here. Its amount has a default, and may come as text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Order {
    pub(crate) what: String,
    #[serde(default = "usual", deserialize_with = "number")]
    #[schemars(schema_with = "number_schema")]
    pub(crate) amount: u64,
}

fn usual() -> u64 {
    500
}

fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| serde::de::Error::custom("no number"))
}

fn number_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["integer", "string"]})
}

/// The effects of tools: the idempotency key and the amount of each.
#[derive(Clone, Default)]
pub(crate) struct Effects {
    runs: Arc<Mutex<Vec<(String, u64)>>>,
    judged: Arc<AtomicUsize>,
}

impl Effects {
    /// How often tools ran.
    pub(crate) fn count(&self) -> usize {
        self.runs.lock().unwrap().len()
    }

    /// How many effects there are for somebody who minds the key.
    pub(crate) fn distinct(&self) -> usize {
        let mut keys: Vec<String> = self.runs.lock().unwrap().iter().map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys.dedup();
        keys.len()
    }

    pub(crate) fn amounts(&self) -> Vec<u64> {
        self.runs.lock().unwrap().iter().map(|(_, amount)| *amount).collect()
    }

    pub(crate) fn judge(&self) -> usize {
        self.judged.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn judged(&self) -> usize {
        self.judged.load(Ordering::SeqCst)
    }

    /// Counts one.
    pub(crate) fn did(&self, order: &Order, ctx: &ToolContext) {
        self.runs.lock().unwrap().push((ctx.idempotency_key(), order.amount));
    }

    /// A tool of this name that counts its runs.
    pub(crate) fn tool(&self, name: &str) -> kortyx_reason::FunctionTool<Order> {
        let runs = self.runs.clone();
        kortyx_reason::tool(name, "Does something", move |order: Order, ctx: ToolContext| {
            let runs = runs.clone();
            async move {
                runs.lock().unwrap().push((ctx.idempotency_key(), order.amount));
                Ok::<_, ToolError>(json!({"done": order.what}))
            }
        })
    }
}

/// A workflow whose node reasons and ends with what came of it.
pub(crate) fn reasoning(make: impl Fn() -> Reason + Send + Sync + 'static) -> Workflow {
    let make = Arc::new(make);
    let node = move |ctx: NodeContext| {
        let make = make.clone();
        async move { Ok(output(&ctx.reason("brief", make()).await?)) }
    };
    Workflow::builder("reasoning").node("brief", node).build().unwrap()
}

/// What came of it: the text, and for each tool call its tool, status and output.
pub(crate) fn output(reasoned: &Reasoned) -> NodeOutput {
    let results = reasoned.tool_results.iter().map(|result| json!([result.tool, result.status, result.output]));
    let answers = reasoned.interrupt_history.answers(&CLARIFY).unwrap();
    NodeOutput::new()
        .data("text", &reasoned.text)
        .data("steps", &reasoned.steps)
        .data("results", &results.collect::<Vec<_>>())
        .data("answers", &answers)
}

/// An agent in memory without a worker.
pub(crate) async fn agent(workflow: &Workflow) -> Agent {
    Agent::builder().workflow(workflow).store(MemoryStore::new()).without_worker().build().await.unwrap()
}

/// Runs a workflow to its first pause or its end.
pub(crate) async fn run(agent: &Agent, workflow: &Workflow) -> ExecutionResult {
    agent.execute(workflow, json!({}), ExecuteOptions::new()).await.unwrap()
}

/// Runs what reasons so in an agent of its own.
pub(crate) async fn reason(make: impl Fn() -> Reason + Send + Sync + 'static) -> ExecutionResult {
    let workflow = reasoning(make);
    run(&agent(&workflow).await, &workflow).await
}

/// The open questions of a suspended run.
pub(crate) fn open(result: &ExecutionResult) -> &[PendingQuestion] {
    assert_eq!(result.status(), "suspended", "{result:?}");
    result.interrupts()
}

/// What was asked, and what answers the question in this place.
pub(crate) fn asked(result: &ExecutionResult, place: usize) -> (Value, ResumeHandle) {
    let question = &open(result)[place];
    (question.input.request.clone().expect("a contract"), question.resume.clone())
}

/// Answers the question in this place.
pub(crate) async fn answer(agent: &Agent, result: &ExecutionResult, place: usize, value: Value) -> ExecutionResult {
    let (_, handle) = asked(result, place);
    agent.resume(&handle, ResumeResponse::value(value)).await.unwrap()
}

/// The output of a completed run.
pub(crate) fn data(result: ExecutionResult) -> Value {
    match result {
        ExecutionResult::Completed { data, .. } => data,
        other => panic!("not completed: {other:?}"),
    }
}

/// The failure of a failed run.
pub(crate) fn failure(result: ExecutionResult) -> Failure {
    match result {
        ExecutionResult::Failed { error, .. } => *error,
        other => panic!("not failed: {other:?}"),
    }
}

/// A model that makes these calls in its first turn and is done in its second.
pub(crate) fn calling(calls: impl IntoIterator<Item = (&'static str, Value)>) -> ScriptedModel {
    let first = calls.into_iter().fold(Script::new(), |script, (tool, arguments)| script.call(tool, arguments));
    ScriptedModel::new([first, Script::new().text("Done.")])
}

/// What the model was told about its calls, at its last request.
pub(crate) fn told(model: &ScriptedModel) -> Vec<String> {
    let last = model.played().pop().expect("it was asked");
    let contents = last.messages.into_iter().filter_map(|message| match message {
        kortyx_reason::Message::Tool { content, .. } => Some(content),
        _ => None,
    });
    contents.collect()
}

/// A call to reason with this model.
pub(crate) fn with(model: &ScriptedModel) -> Reason {
    Reason::new(model.clone()).input("Go.")
}

/// A workflow in which every order needs approval.
pub(crate) fn gated(model: &ScriptedModel, effects: &Effects) -> Workflow {
    let (model, effects) = (model.clone(), effects.clone());
    reasoning(move || with(&model).tool(effects.tool("order").approve_always()).tool(effects.tool("note")))
}

/// What the model wants to order.
pub(crate) fn tea() -> (&'static str, Value) {
    ("order", json!({"what": "tea"}))
}
