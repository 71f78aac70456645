//! What a client is told of outputs: golden sequences of chunks.

use std::time::Duration;

use kortyx_orchestrator::{Agent, ChatOptions};
use kortyx_protocol::{ChatMessage, ResumeMeta, SessionId, StreamChunk};
use kortyx_reason::{
    FinishReason, Interrupts, ModelError, ModelErrorKind, ModelEvent, Reason, ReasonExt as _, Script, ScriptedModel,
    partial::Field,
};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use kortyx_store::{CancelTarget, Scope};
use serde_json::{Value, json};

use crate::{
    deliveries::{Card, EMIT, RETURN, both, card, cards, seeing},
    world::{ASK, CLARIFY, Effects, agent, data, run, with},
};

/// A turn of a conversation, and what it says of structured data, with its streams numbered in the order of their beginning.
pub(crate) async fn structured(
    agent: &Agent,
    options: ChatOptions,
    turn: ChatMessage,
) -> (Vec<StreamChunk>, Vec<Value>) {
    let chunks = agent.stream_chat(vec![turn], options).collect().await;
    let mut streams: Vec<String> = Vec::new();
    let mut said = Vec::new();
    for chunk in chunks.iter().map(|chunk| serde_json::to_value(chunk).unwrap()) {
        let Some(stream) = chunk.get("streamId").and_then(Value::as_str) else { continue };
        if !streams.iter().any(|known| known == stream) {
            streams.push(stream.to_owned());
        }
        let number = streams.iter().position(|known| known == stream).unwrap();
        let mut short = chunk.clone();
        short["streamId"] = json!(number);
        said.push(short);
    }
    (chunks, said)
}

fn chunk(stream: usize, kind: &str, rest: Value) -> Value {
    let mut chunk = json!({
        "type": "structured-data", "streamId": stream, "dataType": "card", "kind": kind, "node": "brief",
        "schemaId": "acme.card", "schemaVersion": "1",
    });
    if let Value::Object(rest) = rest {
        chunk.as_object_mut().unwrap().extend(rest);
    }
    chunk
}

fn delta(stream: usize, path: &str, text: &str) -> Value {
    chunk(stream, "text-delta", json!({"path": path, "delta": text}))
}

fn invalidated(stream: usize) -> Value {
    json!({"type": "structured-data-invalidated", "streamId": stream})
}

/// What a client is told of structured data in one turn.
async fn said(make: impl Fn() -> Reason + Send + Sync + 'static) -> Vec<Value> {
    let (workflow, _) = seeing(make);
    structured(&agent(&workflow).await, ChatOptions::new(), ChatMessage::user("Go.")).await.1
}

#[tokio::test]
async fn declared_fields_are_told_while_the_model_writes_and_the_whole_when_it_is_accepted() {
    let emission = json!({"rows": [{"text": "one"}], "tags": ["hot", "green"], "title": "Tea!"});
    let model = ScriptedModel::new([Script::new().call(EMIT, emission.clone()).split(20), Script::new().text("Done.")]);
    assert_eq!(
        said(move || with(&model).outputs(cards())).await,
        [
            delta(0, "rows.0.text", "on"),
            delta(0, "rows.0.text", "e"),
            chunk(0, "append", json!({"path": "tags", "items": ["hot"]})),
            chunk(0, "append", json!({"path": "tags", "items": ["green"]})),
            delta(0, "title", "Tea"),
            delta(0, "title", "!"),
            chunk(0, "final", json!({"data": emission})),
        ]
    );
}

#[tokio::test]
async fn each_emission_is_a_stream_of_its_own_also_when_calls_are_written_at_once() {
    let part = |index: u32, tool: &str, arguments: &str| ModelEvent::ToolCall {
        index,
        tool: tool.into(),
        arguments: arguments.into(),
    };
    let model = ScriptedModel::new([
        Script::new()
            .event(part(4, "", r#"{"title":"#))
            .event(part(7, EMIT, r#"{"ti"#))
            .event(part(4, EMIT, r#""a"#))
            .event(part(7, "", r#"tle":"b"}"#))
            .event(part(4, "", r#"b"}"#)),
        Script::new().text("Done."),
    ]);
    assert_eq!(
        said(move || with(&model).outputs(cards())).await,
        [
            delta(0, "title", "a"),
            delta(1, "title", "b"),
            delta(0, "title", "b"),
            chunk(0, "final", json!({"data": {"title": "ab"}})),
            chunk(1, "final", json!({"data": {"title": "b"}})),
        ]
    );
}

#[tokio::test]
async fn what_is_told_of_an_output_that_does_not_fit_is_taken_back() {
    let model = ScriptedModel::new([
        Script::new().call_text(EMIT, r#"{"title":"a","tags":["x"],"rows":1}"#),
        Script::new().call_text(EMIT, r#"{"title":"b" "tags":[]}"#).call(EMIT, json!({"rows": 1})),
        Script::new().call(EMIT, card("c")),
        Script::new().text("Done."),
    ]);
    assert_eq!(
        said(move || with(&model).outputs(cards())).await,
        [
            delta(0, "title", "a"),
            chunk(0, "append", json!({"path": "tags", "items": ["x"]})),
            invalidated(0),
            delta(1, "title", "b"),
            invalidated(1),
            delta(2, "title", "c"),
            chunk(2, "final", json!({"data": {"title": "c"}})),
        ]
    );
}

#[tokio::test]
async fn a_pass_that_breaks_off_takes_back_what_it_told_and_is_not_tried_again() {
    let cut = ModelError::new(ModelErrorKind::Transport, "gone");
    let breaking: [fn(Script, ModelError) -> Script; 3] =
        [|script, _| script.cut(), Script::fail, |script, _| script.finish(FinishReason::Length)];
    for break_off in breaking {
        let script = Script::new().call_text(EMIT, r#"{"title":"a"#);
        let model = ScriptedModel::new([break_off(script, cut.clone())]);
        let given = model.clone();
        assert_eq!(said(move || with(&given).outputs(cards())).await, [delta(0, "title", "a"), invalidated(0)]);
        assert_eq!(model.played().len(), 1);
    }
}

#[tokio::test]
async fn an_output_behind_a_question_is_final_when_the_answer_is_there_and_is_told_once() {
    let model = ScriptedModel::new([
        Script::new()
            .call(EMIT, card("a"))
            .call(ASK, json!({"question": "?"}))
            .call(EMIT, card("b"))
            .call(RETURN, json!({"good": true})),
        Script::new().call(EMIT, card("c")).call(RETURN, json!({"good": true})),
    ]);
    let (workflow, _) = seeing(move || {
        let outputs = both().fields([Field::set("good")]);
        with(&model).outputs(outputs).interrupts(Interrupts::optional().contract(&CLARIFY))
    });
    let agent = agent(&workflow).await;
    let session = SessionId::new("session-1").unwrap();
    let options = || ChatOptions::new().session(session.clone());
    let (chunks, first) = structured(&agent, options(), ChatMessage::user("Go.")).await;
    let verdict = |kind: &str, rest: Value| {
        let mut verdict = chunk(2, kind, rest);
        verdict["dataType"] = json!("verdict");
        verdict["schemaId"] = json!("acme.verdict");
        verdict["schemaVersion"] = json!("2");
        verdict
    };
    assert_eq!(
        first,
        [
            delta(0, "title", "a"),
            delta(1, "title", "b"),
            verdict("set", json!({"path": "good", "value": true})),
            invalidated(2),
            chunk(0, "final", json!({"data": {"title": "a"}})),
        ]
    );
    let question = chunks.iter().find_map(|chunk| match chunk {
        StreamChunk::Interrupt(question) => Some(question.clone()),
        _ => None,
    });
    let question = question.unwrap();
    let mut meta = ResumeMeta::new(question.resume_token.clone(), question.request_id.clone());
    meta.value = Some(json!({"text": "Yes."}));
    let (_, second) = structured(&agent, options(), ChatMessage::user("Yes.").with_resume(&meta)).await;
    let mut last = verdict("final", json!({"data": {"good": true}}));
    let set = verdict("set", json!({"path": "good", "value": true}));
    last["streamId"] = json!(2);
    assert_eq!(
        second,
        [
            chunk(0, "final", json!({"data": {"title": "b"}})),
            delta(1, "title", "c"),
            set,
            chunk(1, "final", json!({"data": {"title": "c"}})),
            last,
        ]
    );
}

/// What a client is told of a final object that is streamed.
async fn said_of_output(model: &ScriptedModel) -> Vec<Value> {
    let model = model.clone();
    let node = move |ctx: NodeContext| {
        let fields = [Field::text_delta("title"), Field::append("tags")];
        let reason = with(&model).tool(Effects::default().tool("note")).stream_output("answer", fields);
        let reason = reason.output::<Card>();
        async move { Ok(NodeOutput::new().data("title", &ctx.reason("brief", reason).await?.output.title)) }
    };
    let workflow = Workflow::builder("answering").node("brief", node).build().unwrap();
    structured(&agent(&workflow).await, ChatOptions::new(), ChatMessage::user("Go.")).await.1
}

#[tokio::test]
async fn a_final_object_is_streamed_out_of_the_text_and_what_is_none_is_taken_back() {
    let part = |stream: usize, kind: &str, rest: Value| {
        let mut part = chunk(stream, kind, rest);
        part["dataType"] = json!("answer");
        part.as_object_mut().unwrap().retain(|key, _| !key.starts_with("schema"));
        part
    };
    let text = |stream: usize, delta: &str| part(stream, "text-delta", json!({"path": "title", "delta": delta}));
    let model = ScriptedModel::new([
        Script::new().text(r#"As in {"title": "w"}: "#).call("note", json!({"what": "x"})),
        Script::new().text(r#"{"title": "x", "tags": 1}"#),
        Script::new().text("So:\n```json\n{\"title\": \"yz\", \"tags\": [\"t\"]}\n```").split(24),
    ]);
    assert_eq!(
        said_of_output(&model).await,
        [
            text(0, "w"),
            invalidated(0),
            text(1, "x"),
            part(1, "set", json!({"path": "tags", "value": 1})),
            invalidated(1),
            text(2, "y"),
            text(2, "z"),
            part(2, "append", json!({"path": "tags", "items": ["t"]})),
            part(2, "final", json!({"data": {"title": "yz", "tags": ["t"]}})),
        ]
    );
    let twice = r#"{"title": "a", "title": "b"}"#;
    let model = ScriptedModel::new([Script::new().text(twice), Script::new().text(r#"{"title": "b"}"#)]);
    let said = said_of_output(&model).await;
    assert_eq!(said[..2], [text(0, "a"), invalidated(0)]);
    assert_eq!(said[3], part(1, "final", json!({"data": {"title": "b"}})));
}

#[tokio::test]
async fn a_call_ends_with_an_output_or_with_a_return_and_streams_what_there_is() {
    type Make = fn(Reason) -> Reason<Card>;
    let calls: [(Make, &str); 2] = [
        (|reason| reason.outputs(both()).output::<Card>(), "declare one of them"),
        (|reason| reason.stream_output("answer", [Field::set("titel")]).output::<Card>(), "no `titel`"),
    ];
    for (reason, why) in calls {
        let node = move |ctx: NodeContext| {
            let reason = reason(with(&ScriptedModel::new([])));
            async move {
                let error = ctx.reason("brief", reason).await.unwrap_err().to_string();
                Ok(NodeOutput::new().data("error", &error))
            }
        };
        let workflow = Workflow::builder("refused").node("brief", node).build().unwrap();
        let error = data(run(&agent(&workflow).await, &workflow).await);
        assert!(error["error"].as_str().unwrap().contains(why), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_node_gives_up_or_that_is_cancelled_takes_back_what_it_told() {
    let slow = || {
        let part = ModelEvent::ToolCall { index: 0, tool: EMIT.into(), arguments: r#"{"title":"a"#.into() };
        ScriptedModel::new([Script::new().event(part).wait(Duration::from_mins(1))])
    };
    let model = slow();
    let node = move |ctx: NodeContext| {
        let reason = with(&model).outputs(cards());
        async move {
            let late = tokio::time::timeout(Duration::from_secs(1), ctx.reason("brief", reason)).await;
            Ok(NodeOutput::new().data("late", &late.is_err()))
        }
    };
    let workflow = Workflow::builder("impatient").node("brief", node).build().unwrap();
    let (_, given_up) = structured(&agent(&workflow).await, ChatOptions::new(), ChatMessage::user("Go.")).await;
    assert_eq!(given_up, [delta(0, "title", "a"), invalidated(0)]);

    let model = slow();
    let (workflow, _) = seeing(move || with(&model).outputs(cards()));
    let agent = agent(&workflow).await;
    let session = SessionId::new("session-1").unwrap();
    let cancelling = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        agent.cancel(CancelTarget::Session(session.clone()), Scope::session(session.clone()), None).await.unwrap();
    };
    let options = ChatOptions::new().session(session.clone());
    let ((_, cancelled), ()) = tokio::join!(structured(&agent, options, ChatMessage::user("Go.")), cancelling);
    assert_eq!(cancelled, [delta(0, "title", "a"), invalidated(0)]);
}
