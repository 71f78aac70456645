//! What an observer is told of models and tools: once, with what they used and how they ended, and content only where it asks.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, Captures, Content, End, Fact, TelemetrySink};
use kortyx_protocol::FailureCode;
use kortyx_reason::{ModelError, ModelErrorKind, Script, ScriptedModel};
use kortyx_runtime::Workflow;
use serde_json::json;
use tracing::{
    Dispatch, Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::world::{Effects, answer, data, failure, gated, reasoning, run, with};

/// Keeps the facts of models and tools.
#[derive(Clone, Default)]
struct Heard {
    facts: Arc<Mutex<Vec<Fact>>>,
    captures: Captures,
}

impl TelemetrySink for Heard {
    fn record(&self, fact: &Fact) {
        let is_of_work = matches!(
            fact,
            Fact::ModelStarted { .. }
                | Fact::ModelEnded { .. }
                | Fact::ToolStarted { .. }
                | Fact::ToolEnded { .. }
                | Fact::StepEnded { output: Some(_), .. }
        );
        if is_of_work {
            self.facts.lock().unwrap().push(fact.clone());
        }
    }

    fn watches_nodes(&self) -> bool {
        true
    }

    fn captures(&self) -> Captures {
        self.captures
    }
}

impl Heard {
    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.facts.lock().unwrap()).iter().map(line).collect()
    }
}

fn line(fact: &Fact) -> String {
    match fact {
        Fact::ModelStarted { model, step, .. } => format!("ask {} in {step}", model.model),
        Fact::ModelEnded { end, usage, finish, tool_calls, .. } => {
            let used = usage.map_or(0, |usage| usage.input);
            format!("answered {} {} {tool_calls} {used}", end.as_str(), finish.as_deref().unwrap_or("-"))
        }
        Fact::ToolStarted { tool, call_id, approved, .. } => format!("run {tool} {call_id} {approved}"),
        Fact::ToolEnded { tool, end, .. } => format!("ran {tool} {}", end.as_str()),
        other => panic!("{other:?}"),
    }
}

async fn agent(workflow: &Workflow, heard: &Heard) -> Agent {
    let builder = Agent::builder().workflow(workflow).store(MemoryStore::new()).telemetry(heard.clone());
    builder.without_worker().build().await.unwrap()
}

#[tokio::test]
async fn passes_and_tools_are_told_once_and_replay_tells_nothing() {
    let (effects, heard) = (Effects::default(), Heard::default());
    let first = Script::new().call("order", json!({"what": "tea"})).usage(7, 5);
    let model = ScriptedModel::new([first, Script::new().text("Done.")]);
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow, &heard).await;
    let paused = run(&agent, &workflow).await;
    assert_eq!(heard.lines(), ["ask scripted in brief#0/pass/0", "answered completed tool_calls 1 7"]);
    data(answer(&agent, &paused, 0, json!({"decision": "approve"})).await);
    let wanted = [
        "run order call_0_0 true",
        "ran order completed",
        "ask scripted in brief#0/pass/1",
        "answered completed stop 0 0",
    ];
    assert_eq!(heard.lines(), wanted);
}

#[tokio::test]
async fn a_model_that_fails_is_told_with_its_code() {
    let heard = Heard::default();
    let error = ModelError::new(ModelErrorKind::Refusal, "planted");
    let model = ScriptedModel::new([Script::new().fail(error)]);
    let workflow = reasoning(move || with(&model));
    failure(run(&agent(&workflow, &heard).await, &workflow).await);
    let facts = heard.facts.lock().unwrap();
    let Fact::ModelEnded { end, .. } = &facts[1] else { panic!("{facts:?}") };
    assert_eq!(*end, End::Failed(FailureCode::ProviderRefusal));
    assert!(!format!("{facts:?}").contains("planted"));
}

#[tokio::test]
async fn prompts_arguments_and_results_are_told_by_their_switch_without_what_a_tool_hides() {
    for (captures, wanted) in [
        (Captures::nothing(), &[][..]),
        (Captures::nothing().with_input(true), &["planted-prompt", "planted-what"]),
        (Captures::nothing().with_output(true), &["planted-what", "planted-text"]),
    ] {
        let (effects, heard) = (Effects::default(), Heard { captures, ..Heard::default() });
        let arguments = json!({"what": "planted-what", "amount": 424_242});
        let calls = Script::new().call("order", arguments);
        let model = ScriptedModel::new([calls, Script::new().text("planted-text")]);
        let workflow =
            reasoning(move || with(&model).system("planted-prompt").tool(effects.tool("order").redact("/amount")));
        data(run(&agent(&workflow, &heard).await, &workflow).await);
        let facts = heard.facts.lock().unwrap();
        let json = |content: &Option<Content>| content.as_ref().map(|content| content.json().get().to_owned());
        let content = |fact: &Fact| match fact {
            Fact::ModelStarted { input, .. } | Fact::ToolStarted { input, .. } => json(input),
            Fact::ModelEnded { output, .. } | Fact::ToolEnded { output, .. } | Fact::StepEnded { output, .. } => {
                json(output)
            }
            _ => None,
        };
        let content: String = facts.iter().filter_map(content).collect();
        for planted in ["planted-prompt", "planted-what", "planted-text"] {
            assert_eq!(content.contains(planted), wanted.contains(&planted), "{captures:?}: {planted}: {content}");
        }
        assert!(!content.contains("424242"), "what a tool hides is hidden everywhere: {content}");
        assert!(!format!("{facts:?}").contains("planted"));
    }
}

/// Keeps the fields of every span, its name among them.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<Fields>>>);

#[derive(Debug, Clone, Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields([("name".to_owned(), span.metadata().name().to_owned())].into());
        span.record(&mut fields);
        let mut all = self.0.lock().unwrap();
        all.push(fields);
        Id::from_u64(all.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let at = usize::try_from(id.into_u64()).unwrap() - 1;
        values.record(&mut self.0.lock().unwrap()[at]);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn spans_of_models_and_tools_follow_the_conventions_for_generative_models() {
    // As long as one subscriber is all there is, a thread without any may settle that nobody wants the spans of a place.
    let _kept = [Dispatch::new(Spans::default()), Dispatch::new(Spans::default())];
    let (spans, effects) = (Spans::default(), Effects::default());
    let calls = Script::new().call("order", json!({"what": "tea"})).usage(7, 5);
    let model = ScriptedModel::new([calls, Script::new().text("Done.")]);
    let workflow = reasoning(move || with(&model).tool(effects.tool("order")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(spans.clone(), || {
        runtime.block_on(async { data(run(&crate::world::agent(&workflow).await, &workflow).await) })
    });
    let all = spans.0.lock().unwrap();
    let named = |name: &str| all.iter().find(|fields| fields.0["name"] == name).unwrap_or_else(|| panic!("{name}"));
    let chat = named("kortyx.model");
    for (field, value) in [
        ("otel.name", "chat scripted"),
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.request.model", "scripted"),
        ("gen_ai.usage.input_tokens", "7"),
        ("gen_ai.usage.output_tokens", "5"),
        ("gen_ai.response.finish_reasons", "tool_calls"),
        ("kortyx.outcome", "completed"),
    ] {
        assert_eq!(chat.0.get(field).map(String::as_str), Some(value), "{field}: {chat:?}");
    }
    let tool = named("kortyx.tool");
    for (field, value) in [
        ("otel.name", "execute_tool order"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "order"),
        ("gen_ai.tool.call.id", "call_0_0"),
    ] {
        assert_eq!(tool.0.get(field).map(String::as_str), Some(value), "{field}: {tool:?}");
    }
    assert_eq!(chat.0["gen_ai.conversation.id"], tool.0["gen_ai.conversation.id"]);
    assert!(!chat.0.contains_key("error.type") && !tool.0.contains_key("error.type"));
}
