//! What is rejected stays rejected, as long as it should.

use futures_util::future::BoxFuture;
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ChatOptions};
use kortyx_protocol::{ChatMessage, RequestId, ResumeMeta, ResumeToken, StreamChunk};
use kortyx_reason::{ReasonExt as _, Script, ScriptedModel};
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow};
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

/// A node that reasons with this model about orders, which need approval; before that it may call a child.
fn ordering(
    model: &ScriptedModel,
    effects: &Effects,
    child: Option<Workflow>,
) -> impl Fn(NodeContext) -> BoxFuture<'static, NodeResult> + use<> {
    let (model, effects) = (model.clone(), effects.clone());
    move |ctx: NodeContext| {
        let (reason, child) = (with(&model).tool(effects.tool("order").approve_always()), child.clone());
        Box::pin(async move {
            let own = ctx.reason("own", reason).await?.tool_results[0].status;
            let called = match &child {
                Some(child) => ctx.call::<_, Value>("child", child, json!({})).await?["own"].clone(),
                None => Value::Null,
            };
            Ok(NodeOutput::new().data("own", &own).data("called", &called))
        })
    }
}

#[tokio::test]
async fn a_rejection_holds_in_children_and_what_a_child_was_refused_in_its_caller() {
    let effects = Effects::default();
    let child = Workflow::builder("child").node("child", ordering(&calling([tea()]), &effects, None)).build().unwrap();
    let asks_first = ordering(&calling([tea()]), &effects, Some(child.clone()));
    let called = child.clone();
    let calls_first = move |ctx: NodeContext| {
        let (child, reason) =
            (called.clone(), with(&calling([tea()])).tool(Effects::default().tool("order").approve_always()));
        async move {
            let called: Value = ctx.call("child", &child, json!({})).await?;
            let own = ctx.reason("own", reason).await?.tool_results[0].status;
            Ok(NodeOutput::new().data("own", &own).data("called", &called["own"]))
        }
    };
    let first = Workflow::builder("first").node("node", asks_first).build().unwrap();
    let second = Workflow::builder("second").node("node", calls_first).build().unwrap();
    let builder = Agent::builder().workflow(&first).workflow(&second).workflow(&child);
    let agent = builder.store(MemoryStore::new()).without_worker().build().await.unwrap();
    for (workflow, expected) in [
        (first, json!({"own": "rejected", "called": "refused"})),
        (second, json!({"own": "refused", "called": "rejected"})),
    ] {
        let paused = run(&agent, &workflow).await;
        assert_eq!(data(answer(&agent, &paused, 0, json!({"decision": "reject"})).await), expected);
    }
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn a_rejection_holds_in_forks_and_so_does_what_was_used() {
    let again = || Script::new().call("order", json!({"what": "tea"}));
    let cake = Script::new().call("order", json!({"what": "cake"}));
    let model = ScriptedModel::new([again(), cake, again(), Script::new().text("Done.")]);
    let node = move |ctx: NodeContext| {
        let reason = with(&model).tool(Effects::default().tool("order").approve_always());
        async move {
            let done = ctx.reason("own", reason).await?;
            let statuses: Vec<_> = done.tool_results.iter().map(|result| result.status).collect();
            let passes = ctx.level(kortyx_reason::MODEL_PASSES)?.used;
            Ok(NodeOutput::new().data("statuses", &statuses).data("passes", &passes))
        }
    };
    let workflow = Workflow::builder("forked").node("node", node).build().unwrap();
    let agent = agent(&workflow).await;
    let turn = async |handle: (ResumeToken, RequestId), decision: &str| {
        let mut meta = ResumeMeta::new(handle.0, handle.1);
        meta.value = Some(json!({ "decision": decision }));
        let message = vec![ChatMessage::user("I say.").with_resume(&meta)];
        agent.stream_chat(message, ChatOptions::new()).collect().await
    };
    let asked = |chunks: &[StreamChunk]| {
        let question = chunks.iter().find_map(|chunk| match chunk {
            StreamChunk::Interrupt(question) => Some((question.resume_token.clone(), question.request_id.clone())),
            _ => None,
        });
        question.unwrap()
    };
    let first = agent.stream_chat(vec![ChatMessage::user("Buy.")], ChatOptions::new()).collect().await;
    let second = turn(asked(&first), "reject").await;
    let checkpoint = second.iter().find_map(|chunk| match chunk {
        StreamChunk::Checkpoint { id, .. } => Some(id.clone()),
        _ => None,
    });
    let fork = agent.fork(&checkpoint.unwrap(), None, None).await.unwrap();
    let pending = &fork.checkpoint.active_pending_requests[0];
    for handle in [(pending.token.clone(), pending.request_id.clone()), asked(&second)] {
        let done = turn(handle, "approve").await;
        let Some(StreamChunk::Done { data: Some(done) }) = done.last() else { panic!("{done:?}") };
        assert_eq!(done.data, json!({"statuses": ["rejected", "completed", "refused"], "passes": 4}));
    }
}
