//! The spans of runs as OpenTelemetry sees them: what is below what, what is on them, and that a pause is no error.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kortyx_contracts::Text;
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ChatOptions, ExecuteOptions};
use kortyx_protocol::{ChatMessage, ExecutionResult, ResumeResponse, StreamChunk};
use kortyx_reason::{Reason, ReasonExt as _, Script, ScriptedModel, ToolContext, ToolError, tool};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use kortyx_telemetry::{Otel, OtelSink, Telemetry};
use opentelemetry::trace::Status;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::{Value, json};
use tracing::{Instrument as _, info_span, subscriber::DefaultGuard};
use tracing_subscriber::prelude::*;

use crate::world::LONG;

/// A process: its layer, and what it exported.
struct Process {
    exported: InMemorySpanExporter,
    _subscriber: DefaultGuard,
}

impl Process {
    fn start() -> Self {
        let exported = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exported.clone()).build();
        let subscriber = tracing_subscriber::registry().with(Otel::from_provider(provider).layer());
        Self { exported, _subscriber: subscriber.set_default() }
    }

    fn spans(&self) -> Vec<SpanData> {
        self.exported.get_finished_spans().unwrap()
    }
}

fn child() -> Workflow {
    Workflow::builder("child").version("1").node("inner", inner).build().unwrap()
}

fn workflow() -> Workflow {
    Workflow::builder("outer").version("1").node("work", work).build().unwrap()
}

/// Asks within spans of the application's own.
async fn inner(ctx: NodeContext) -> NodeResult {
    let deep = async {
        let said = ctx.interrupt("why", Text::new("planted-question"));
        said.instrument(info_span!("app.deeper")).await
    };
    let said = deep.instrument(info_span!("app.deep")).await?;
    tracing::info!("planted-log {said}");
    tracing::error!(error = %said, "planted-error");
    Ok(NodeOutput::new().data("said", &said))
}

async fn work(ctx: NodeContext) -> NodeResult {
    let facts = || async { Ok::<_, NodeError>(json!({"fact": "planted-step"})) };
    let _: Value = ctx.step("look up", facts).await?;
    let script =
        [Script::new().call("order", json!({"what": "planted-what"})).usage(7, 5), Script::new().text("planted-text")];
    let order = tool("order", "Orders", |_: BTreeMap<String, String>, _: ToolContext| async {
        Ok::<_, ToolError>(json!("planted-result"))
    });
    ctx.reason("brief", Reason::new(ScriptedModel::new(script)).input("planted-prompt").tool(order)).await?;
    let data: Value =
        ctx.call("c", &child(), json!({"in": "planted-input"})).instrument(info_span!("app.call")).await?;
    Ok(NodeOutput::new().data("out", &data))
}

async fn agent(store: &Arc<MemoryStore>) -> Agent {
    let telemetry = Telemetry::new().to(OtelSink::new().user("user"));
    let agent = Agent::builder().workflow(&workflow()).workflow(&child()).shared_store(store.clone());
    agent.telemetry(telemetry).without_worker().build().await.unwrap()
}

/// One process runs it to its question, another one answers and ends it.
async fn two_processes() -> (Vec<SpanData>, Vec<SpanData>, String) {
    let store = Arc::new(MemoryStore::new());
    let first = Process::start();
    let options = ExecuteOptions::new().context("user", "ada").context("note", "planted-context");
    let asking = agent(&store).await;
    let workflow = workflow();
    let paused = asking.execute(&workflow, json!({"in": "planted-input"}), options);
    let paused = paused.instrument(info_span!("app.request")).await.unwrap();
    let question = paused.interrupts()[0].resume.clone();
    drop(asking);
    let before = first.spans();
    drop(first);

    let second = Process::start();
    let ended = agent(&store).await.resume(&question, ResumeResponse::text("planted-answer")).await.unwrap();
    assert!(matches!(ended, ExecutionResult::Completed { .. }), "{ended:?}");
    (before, second.spans(), question.token.expose().to_owned())
}

fn named<'s>(spans: &'s [SpanData], name: &str) -> &'s SpanData {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

fn on(span: &SpanData, key: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == key);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

/// The names of a span and those above it.
fn way(spans: &[SpanData], name: &str) -> Vec<String> {
    let mut span = named(spans, name);
    let mut way = vec![span.name.to_string()];
    while let Some(above) = spans.iter().find(|above| above.span_context.span_id() == span.parent_span_id) {
        way.push(above.name.to_string());
        span = above;
    }
    way
}

fn events(span: &SpanData) -> Vec<String> {
    span.events.iter().map(|event| event.name.to_string()).collect()
}

#[tokio::test]
async fn b181_a_pause_is_an_event_and_no_error_in_any_exported_span_at_any_depth() {
    let (before, after, _) = two_processes().await;
    for span in before.iter().chain(&after) {
        assert!(matches!(span.status, Status::Unset | Status::Ok), "{span:?}");
        assert!(on(span, "error.type").is_empty(), "{span:?}");
        assert!(events(span).iter().all(|event| event == "paused"), "{span:?}");
    }
    for name in ["run outer", "node work", "child child", "node inner"] {
        let span = named(&before, name);
        assert_eq!(
            (events(span), on(span, "kortyx.outcome")),
            (vec!["paused".to_owned()], "paused".to_owned()),
            "{name}"
        );
        assert_eq!(events(named(&after, name)), Vec::<String>::new(), "{name}");
    }
    for name in ["app.call", "app.deep", "app.deeper"] {
        assert_eq!(events(named(&before, name)), Vec::<String>::new(), "{name}");
    }
}

#[tokio::test]
async fn spans_stand_below_each_other_and_say_whose_they_are() {
    let (before, after, _) = two_processes().await;
    assert_eq!(way(&before, "node work")[..2], ["node work", "run outer"]);
    assert_eq!(way(&before, "step look up")[..2], ["step look up", "node work"]);
    let deep = ["app.deeper", "app.deep", "node inner", "child child", "app.call", "node work", "run outer"];
    assert_eq!(way(&before, "app.deeper")[..7], deep);
    let chat = named(&before, "chat scripted");
    assert!(way(&before, "chat scripted").contains(&"node work".to_owned()));
    assert!(way(&before, "execute_tool order").contains(&"node work".to_owned()));
    assert_eq!(format!("{:?}", chat.span_kind), "Client");
    for (key, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.request.model", "scripted"),
        ("gen_ai.usage.input_tokens", "7"),
        ("gen_ai.usage.output_tokens", "5"),
    ] {
        assert_eq!(on(chat, key), value, "{key}");
    }
    let run = named(&before, "run outer");
    assert_eq!(on(run, "user.id"), "ada");
    assert_eq!(on(chat, "gen_ai.conversation.id"), on(run, "session.id"));
    assert_eq!(on(named(&before, "execute_tool order"), "gen_ai.tool.name"), "order");
    assert_eq!(on(run, "session.id"), on(named(&after, "run outer"), "session.id"));
    assert!(!on(run, "session.id").is_empty());
}

#[tokio::test]
async fn a_run_that_goes_on_in_another_process_is_linked_to_the_trace_it_comes_from() {
    let (before, after, _) = two_processes().await;
    let (from, to) = (named(&before, "run outer"), named(&after, "run outer"));
    assert!(from.links.is_empty());
    let links: Vec<_> = to.links.iter().map(|link| &link.span_context).collect();
    assert_eq!(links.len(), 1);
    assert_eq!(links[0].trace_id(), from.span_context.trace_id());
    assert_eq!(links[0].span_id(), from.span_context.span_id());
    assert!(links[0].is_remote() && links[0].is_sampled());
    assert_ne!(from.span_context.trace_id(), to.span_context.trace_id());
}

#[tokio::test]
async fn nothing_that_was_said_is_on_an_exported_span() {
    let (before, after, token) = two_processes().await;
    let all = format!("{before:?} {after:?}");
    assert!(!all.contains("planted"), "{all}");
    assert!(!all.contains(&token));
    let keys: BTreeSet<_> = before.iter().flat_map(|span| &span.attributes).map(|on| on.key.as_str()).collect();
    insta::assert_snapshot!(keys.into_iter().collect::<Vec<_>>().join("\n"));
}

async fn said(agent: &Agent) -> Vec<StreamChunk> {
    let options = ChatOptions::new().workflow("outer");
    agent.stream_chat(vec![ChatMessage::user("go")], options).collect().await
}

#[tokio::test]
async fn the_client_is_told_the_ids_of_the_exported_span() {
    let process = Process::start();
    let agent = agent(&Arc::new(MemoryStore::new())).await;
    let chunks = said(&agent).await;
    agent.shutdown(LONG).await;
    let told = chunks.iter().find_map(|chunk| match chunk {
        StreamChunk::Trace { trace_id, span_id, .. } => Some((trace_id.to_string(), span_id.to_string())),
        _ => None,
    });
    let spans = process.spans();
    let exported = &named(&spans, "run outer").span_context;
    assert_eq!(told, Some((exported.trace_id().to_string(), exported.span_id().to_string())));
}

#[tokio::test]
async fn without_a_layer_there_are_no_ids() {
    let agent = agent(&Arc::new(MemoryStore::new())).await;
    let chunks = said(&agent).await;
    assert!(chunks.iter().any(|chunk| matches!(chunk, StreamChunk::Interrupt(_))), "{chunks:?}");
    assert!(!chunks.iter().any(|chunk| matches!(chunk, StreamChunk::Trace { .. })), "{chunks:?}");
}
