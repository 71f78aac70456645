//! What a client hears.

use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ChatOptions};
use kortyx_protocol::{ChatMessage, ResumeMeta, StreamChunk};
use kortyx_reason::{Reason, Script, ScriptedModel};
use serde_json::{Value, json};

use crate::world::{ASK, Effects, clarify, reasoning};

/// The chunks of a turn that the node sent, as JSON without the names that are the same in all.
fn said(chunks: &[StreamChunk]) -> Vec<Value> {
    let chunks = chunks.iter().map(|chunk| serde_json::to_value(chunk).unwrap());
    let of_the_node = chunks.filter(|chunk| chunk.get("opId").is_some());
    let short = of_the_node.map(|mut chunk| {
        let fields = chunk.as_object_mut().unwrap();
        assert_eq!(
            (fields.remove("node"), fields.remove("opId").unwrap().as_str().unwrap().len()),
            (Some(json!("brief")), 16)
        );
        chunk
    });
    short.collect()
}

#[tokio::test]
async fn text_and_tools_are_streamed_once_and_what_is_redacted_is_not() {
    let model = ScriptedModel::new([
        Script::new()
            .text("Wait.")
            .call("order", json!({"what": "tea", "amount": 5}))
            .call(ASK, json!({"question": "Sure?"})),
        Script::new().text("Done."),
    ]);
    let workflow = reasoning(move || {
        let order = Effects::default().tool("order").redact("/amount").redact("/done");
        Reason::new(model.clone()).input("Go.").tool(order).interrupts(clarify()).emit()
    });
    let agent = Agent::builder().workflow(&workflow).store(MemoryStore::new()).without_worker().build().await.unwrap();
    let first = agent.stream_chat(vec![ChatMessage::user("Hi")], ChatOptions::new()).collect().await;
    assert_eq!(
        said(&first),
        [
            json!({"type": "text-start", "segmentId": "0"}),
            json!({"type": "text-delta", "segmentId": "0", "delta": "Wait."}),
            json!({"type": "text-end", "segmentId": "0"}),
            json!({"type": "tool-call-start", "tool": "order", "toolCallId": "call_0_0", "input": {"what": "tea", "amount": "[redacted]"}}),
            json!({"type": "tool-call-result", "tool": "order", "toolCallId": "call_0_0", "content": {"done": "[redacted]"}, "structuredContent": {"done": "[redacted]"}}),
        ]
    );
    let question = first.iter().find_map(|chunk| match chunk {
        StreamChunk::Interrupt(question) => Some(question.clone()),
        _ => None,
    });
    let question = question.unwrap();
    let mut meta = ResumeMeta::new(question.resume_token.clone(), question.request_id.clone());
    meta.value = Some(json!({"text": "Yes."}));
    let turn = vec![ChatMessage::user("Yes.").with_resume(&meta)];
    let session = first.iter().find_map(|chunk| match chunk {
        StreamChunk::Session { session_id } => Some(session_id.clone()),
        _ => None,
    });
    let second = agent.stream_chat(turn, ChatOptions::new().session(session.unwrap())).collect().await;
    assert_eq!(
        said(&second),
        [
            json!({"type": "text-start", "segmentId": "1"}),
            json!({"type": "text-delta", "segmentId": "1", "delta": "Done."}),
            json!({"type": "text-end", "segmentId": "1"}),
        ]
    );
}

#[tokio::test]
async fn a_call_that_is_not_made_is_reported_as_one_that_ended() {
    let model = ScriptedModel::new([Script::new().call("order", json!({})), Script::new().text("Done.")]);
    let workflow =
        reasoning(move || Reason::new(model.clone()).input("Go.").tool(Effects::default().tool("order")).emit());
    let agent = Agent::builder().workflow(&workflow).store(MemoryStore::new()).without_worker().build().await.unwrap();
    let chunks = agent.stream_chat(vec![ChatMessage::user("Hi")], ChatOptions::new()).collect().await;
    let said = said(&chunks);
    assert_eq!((&said[0]["type"], &said[1]["type"]), (&json!("tool-call-start"), &json!("tool-call-error")));
    assert_eq!(said[1]["message"], "the call does not fit the tool");
}
