//! A node that reasons: three tools, an approval, a question with a contract, a card that is streamed; and what must be true of its end.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use futures_util::future::BoxFuture;
use kortyx::{
    InterruptContract, NodeContext, NodeOutput, NodeResult, OutputContract, Workflow,
    protocol::{RunId, StreamChunk, StructuredStreams, json},
    reason::{
        FunctionTool, Interrupts, Message, Model, ModelError, ModelErrorKind, ModelRequest, ModelStream, Outputs,
        Reason, ReasonExt as _, Script, ScriptedModel, ToolContext, ToolError, partial::Field, tool,
    },
    runtime::workflow::DefinitionError,
};
use kortyx_testkit::{EndedRun, Log};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The passes and the tools of one run, each of which happens once.
const EFFECTS: [&str; 8] = ["look_up", "note", "order", "pass-0", "pass-1", "pass-2", "pass-3", "pay"];

/// The questions of one run: the answer, the approval.
const QUESTIONS: usize = 2;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Asked {
    question: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Reply {
    answer: String,
}

const WHICH: InterruptContract<Asked, Reply> =
    InterruptContract::new("which").description("Which one is meant").schema_id("driven.which").version("1");

#[derive(Serialize, Deserialize, JsonSchema)]
struct Arguments {
    what: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Card {
    title: String,
    points: Vec<String>,
}

const CARD: OutputContract<Card> =
    OutputContract::new("card").description("What was bought").schema_id("driven.card").version("1");

fn card() -> Value {
    json!({"title": "Tea, green", "points": ["cheap", "good"]})
}

/// The workflow over this log.
pub(super) fn workflow(log: &Log) -> Result<Workflow, DefinitionError> {
    let log = log.clone();
    Workflow::builder("reasoning").node("buy", move |ctx| buy(ctx, log.clone())).build()
}

async fn buy(ctx: NodeContext, log: Log) -> NodeResult {
    let model = Logged { scripted: scripted(), log: log.clone(), run_id: ctx.run_id().clone() };
    let reason = Reason::new(model)
        .system("You buy things.")
        .input("Buy tea.")
        .tool(counted("look_up", &log))
        .tool(counted("order", &log).approve_always())
        .tool(counted("note", &log))
        .interrupts(Interrupts::required().contract(&WHICH).max_requests(1))
        .outputs(Outputs::new().emit(&CARD).fields([Field::text_delta("title"), Field::append("points")]))
        .emit();
    let done = ctx.reason("buy", reason).await?;
    log.effect(&ctx, "pay", "pay").await?;
    let answers: Vec<String> =
        done.interrupt_history.answers(&WHICH)?.into_iter().map(|reply: Reply| reply.answer).collect();
    let results = done.tool_results.iter().map(|result| json!([result.tool, result.status]));
    let results: Vec<Value> = results.collect();
    Ok(NodeOutput::new()
        .data("text", &done.text)
        .data("answers", &answers)
        .data("results", &results)
        .data("cards", &done.emissions.of(&CARD)?))
}

/// A tool that changes the world.
fn counted(name: &'static str, log: &Log) -> FunctionTool<Arguments> {
    let log = log.clone();
    tool(name, "Does something", move |arguments: Arguments, ctx: ToolContext| {
        let log = log.clone();
        async move {
            let key = ctx.idempotency_key();
            let done = log.effect_under(ctx.node().run_id(), name, &key);
            done.map_err(|error| ToolError::new(error.to_string()))?;
            Ok::<_, ToolError>(json!({"done": arguments.what, "key": key}))
        }
    })
}

/// The script. Every text holds the key of its pass, so that what is recorded shows it.
fn scripted() -> ScriptedModel {
    ScriptedModel::from_fn(|messages| {
        let key = pass(messages).1;
        match spoken(messages) {
            0 => {
                let script = Script::new().text(key).call("look_up", json!({"what": "stock"}));
                script.call("kortyx_request_input__which", json!({"question": "Which tea?"})).split(7)
            }
            1 => {
                let script = Script::new().text(key).call("order", json!({"what": "tea"}));
                script.call("note", json!({"what": "tea"})).split(2)
            }
            2 => Script::new().text(key).call("kortyx_emit__card", card()).split(3),
            _ => Script::new().text(key).split(5).usage(5, 6),
        }
    })
}

/// How often the model has spoken.
fn spoken(messages: &[Message]) -> usize {
    messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count()
}

/// A pass, by its name and by a key for what it was given.
fn pass(messages: &[Message]) -> (String, String) {
    let name = format!("pass-{}", spoken(messages));
    let mut hash = DefaultHasher::new();
    Message::canonical(messages).unwrap_or_default().hash(&mut hash);
    let key = format!("key-of-{name}-{:016x}", hash.finish());
    (name, key)
}

/// A model whose passes cost something, and are noted with all that it was given.
struct Logged {
    scripted: ScriptedModel,
    log: Log,
    run_id: RunId,
}

/// What a pass was given.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Given {
    spoken: usize,
    tools: String,
    conversation: String,
}

impl Logged {
    fn tell(&self, request: ModelRequest<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let (name, key) = pass(request.messages);
        let (tools, conversation) = (json::canonical(request.tools)?, Message::canonical(request.messages)?);
        let given = Given { spoken: spoken(request.messages), tools, conversation };
        self.log.note(&self.run_id, json::canonical(&given)?)?;
        Ok(self.log.effect_under(&self.run_id, &name, &key)?)
    }
}

impl Model for Logged {
    fn name(&self) -> &'static str {
        "logged"
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        if let Err(error) = self.tell(request) {
            let error = ModelError::new(ModelErrorKind::Configuration, error.to_string());
            return Box::pin(async { Err(error) });
        }
        self.scripted.stream(request)
    }
}

/// What must be true of such a run that has ended.
pub(super) fn verdict(run: &EndedRun) -> Result<(), String> {
    let effects: Vec<&str> = run.effects.iter().map(String::as_str).collect();
    equal("effects", &effects, &EFFECTS.to_vec())?;
    equal("questions", &run.questions.len(), &QUESTIONS)?;
    let passes = one_history(&run.notes)?;
    equal("passes", &passes.len(), &4)?;
    let last = passes.last().map(key_of).transpose()?.unwrap_or_default();
    equal("text", &run.data.get("text"), &Some(&json!(last)))?;
    let results = json!([["look_up", "completed"], ["order", "completed"], ["note", "completed"]]);
    equal("results", &run.data.get("results"), &Some(&results))?;
    equal("cards", &run.data.get("cards"), &Some(&json!([card()])))?;
    let answered = run.questions.first().and_then(|question| question.answer.as_ref()).ok_or("no answer")?;
    let answered: Value = json::from_slice(answered).map_err(|error| error.to_string())?;
    let answer = answered.pointer("/value/answer").ok_or_else(|| format!("an answer is {answered}"))?;
    equal("answers", &run.data.get("answers"), &Some(&json!([answer])))?;
    told(&run.said, &passes)?;
    shown(&run.said)
}

/// Every pass was given one conversation and the same tools, however often it was made, and each conversation continues the one
/// before, byte for byte.
fn one_history(notes: &[String]) -> Result<Vec<Given>, String> {
    let mut passes: BTreeMap<usize, Given> = BTreeMap::new();
    for note in notes {
        let given: Given = serde_json::from_str(note).map_err(|error| error.to_string())?;
        match passes.get(&given.spoken) {
            Some(before) => equal("a pass that was made again", &given, before)?,
            None => drop(passes.insert(given.spoken, given)),
        }
    }
    let passes: Vec<Given> = passes.into_values().collect();
    for (before, after) in passes.iter().zip(passes.iter().skip(1)) {
        let continues = after.conversation.starts_with(before.conversation.trim_end_matches(']'));
        if !continues {
            return Err(format!("{} does not continue {}", after.conversation, before.conversation));
        }
    }
    Ok(passes)
}

fn key_of(given: &Given) -> Result<String, String> {
    let messages: Vec<Message> = serde_json::from_str(&given.conversation).map_err(|error| error.to_string())?;
    Ok(pass(&messages).1)
}

/// A client was told what each pass said, whole. A pass that was made again may have been told in part before.
fn told(said: &[StreamChunk], passes: &[Given]) -> Result<(), String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for chunk in said {
        match chunk {
            StreamChunk::TextStart(mark) => {
                drop(texts.insert(mark.segment_id.as_deref().unwrap_or_default().to_owned(), String::new()));
            }
            StreamChunk::TextDelta(delta) => {
                let text = texts.entry(delta.segment_id.as_deref().unwrap_or_default().to_owned()).or_default();
                text.push_str(&delta.delta);
            }
            _ => {}
        }
    }
    let wanted = passes.iter().enumerate().map(|(step, given)| Ok((step.to_string(), key_of(given)?)));
    equal("texts", &texts, &wanted.collect::<Result<_, String>>()?)
}

/// A client was shown the card once and whole. A pass that was made again may have begun another before.
fn shown(said: &[StreamChunk]) -> Result<(), String> {
    let mut client = StructuredStreams::default();
    for chunk in said {
        client.apply(chunk).map_err(|error| error.to_string())?;
    }
    let streams = client.into_vec();
    let whole: Vec<_> = streams.iter().filter(|stream| stream.is_final()).map(|stream| stream.value()).collect();
    equal("cards that were shown", &whole, &vec![Some(&card())])
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: found {found:?} instead of {wanted:?}")) }
}
