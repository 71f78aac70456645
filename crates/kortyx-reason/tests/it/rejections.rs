//! What is rejected stays rejected, as long as it should.

use kortyx_orchestrator::ChatOptions;
use kortyx_protocol::{ChatMessage, ResumeMeta, StreamChunk};
use kortyx_reason::{ReasonExt as _, Script, ScriptedModel};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use serde_json::{Value, json};

use crate::world::{Effects, agent, answer, asked, calling, data, gated, open, run, tea, with};

#[tokio::test]
async fn b017_a_repeated_rejected_call_is_refused_without_a_question_and_b018_another_call_is_asked() {
    let model = ScriptedModel::new([
        Script::new().call("order", json!({"what": "tea"})),
        Script::new().call("order", json!({"amount": 500, "what": "tea"})),
        Script::new().call("order", json!({"what": "cake"})),
        Script::new().text("Done."),
    ]);
    let effects = Effects::default();
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let paused = answer(&agent, &paused, 0, json!({"decision": "reject"})).await;
    assert_eq!((open(&paused).len(), &asked(&paused, 0).0["arguments"]["what"]), (1, &json!("cake")));
    let done = data(answer(&agent, &paused, 0, json!({"decision": "approve"})).await);
    let statuses: Vec<&Value> = done["results"].as_array().unwrap().iter().map(|result| &result[1]).collect();
    assert_eq!(statuses, ["rejected", "refused", "completed"]);
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn a_rejection_holds_in_later_nodes_until_it_is_reopened() {
    for reopens in [false, true] {
        let (model, effects) = (calling([tea()]), Effects::default());
        let node = move |ctx: NodeContext, reopens: bool| {
            let (model, effects) = (model.clone(), effects.clone());
            async move {
                if reopens {
                    ctx.reopen_tool_call("order", &json!({"what": "tea", "amount": 500}))?;
                }
                let reason = with(&model).tool(effects.tool("order").approve_always());
                let status = ctx.reason("brief", reason).await?.tool_results[0].status;
                Ok(NodeOutput::new().data("status", &status))
            }
        };
        let second = node.clone();
        let workflow = Workflow::builder("two")
            .node("first", move |ctx| node(ctx, false))
            .node("second", move |ctx| second(ctx, reopens))
            .edge("first", "second")
            .build()
            .unwrap();
        let agent = agent(&workflow).await;
        let paused = run(&agent, &workflow).await;
        let next = answer(&agent, &paused, 0, json!({"decision": "reject"})).await;
        if reopens {
            let done = answer(&agent, &next, 0, json!({"decision": "approve"})).await;
            assert_eq!(data(done)["status"], "completed");
        } else {
            assert_eq!(data(next)["status"], "refused");
        }
    }
}

#[tokio::test]
async fn a_person_may_reject_a_call_and_leave_it_open_to_be_asked_again() {
    let again = || Script::new().call("order", json!({"what": "tea"}));
    let model = ScriptedModel::new([again(), again(), Script::new().text("Done.")]);
    let effects = Effects::default();
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let paused = answer(&agent, &paused, 0, json!({"decision": "reject", "askAgain": true})).await;
    data(answer(&agent, &paused, 0, json!({"decision": "approve"})).await);
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn a_rejection_does_not_outlive_its_run() {
    let (model, effects) = (calling([tea()]), Effects::default());
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow).await;
    let turn = |text: &str, session: &kortyx_protocol::SessionId| {
        agent.stream_chat(vec![ChatMessage::user(text)], ChatOptions::new().session(session.clone()))
    };
    let session = kortyx_protocol::SessionId::new("session-1").unwrap();
    let questions = |chunks: Vec<StreamChunk>| {
        let asked = chunks.into_iter().filter_map(|chunk| match chunk {
            StreamChunk::Interrupt(question) => Some(question),
            _ => None,
        });
        asked.collect::<Vec<_>>()
    };
    let first = questions(turn("Buy tea.", &session).collect().await);
    let mut meta = ResumeMeta::new(first[0].resume_token.clone(), first[0].request_id.clone());
    meta.value = Some(json!({"decision": "reject"}));
    let answer = vec![ChatMessage::user("No.").with_resume(&meta)];
    let rest = agent.stream_chat(answer, ChatOptions::new().session(session.clone())).collect().await;
    assert!(matches!(rest.last(), Some(StreamChunk::Done { .. })), "{rest:?}");
    assert_eq!(questions(turn("I want it now.", &session).collect().await).len(), 1, "another turn asks again");
    assert_eq!(effects.count(), 0);
}
