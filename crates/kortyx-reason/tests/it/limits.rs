//! What a run shares with its branches and its children: passes, calls of tools, tokens.

use futures_util::future::try_join_all;
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ChatOptions, ExecuteOptions};
use kortyx_protocol::{ChatMessage, ExecutionResult, FailureCode, ResumeMeta, ResumeResponse, StreamChunk, Usage};
use kortyx_reason::{
    FinishReason, MODEL_PASSES, ReasonExt as _, Script, ScriptedModel, TOOL_CALLS, ToolContext, ToolError, tool,
};
use kortyx_runtime::{NodeContext, NodeOutput, TOKENS, Workflow};
use kortyx_store::Scope;
use serde_json::{Value, json};

use crate::world::{Effects, Order, agent, calling, data, failure, open, reasoning, run, with};

/// Answers the first question: whether the run may go on.
async fn decide(agent: &Agent, result: &ExecutionResult, choice: &str) -> ExecutionResult {
    let question = &open(result)[0];
    assert_eq!(question.input.id.as_deref(), Some("limit-reached"));
    agent.resume(&question.resume, ResumeResponse::select([choice])).await.unwrap()
}

fn usage(result: &ExecutionResult) -> (u64, u64, u64) {
    let Usage { input, output, total } = result.usage().expect("it is known");
    (input, output, total)
}

/// A node that reasons with a tool, in a workflow within these limits.
fn noting(model: &ScriptedModel, effects: &Effects) -> kortyx_runtime::workflow::WorkflowBuilder {
    let (model, effects) = (model.clone(), effects.clone());
    Workflow::builder("noting").node("brief", move |ctx: NodeContext| {
        let reason = with(&model).tool(effects.tool("note")).emit();
        async move { Ok(crate::world::output(&ctx.reason("brief", reason).await?)) }
    })
}

/// A chunk without the names that differ from run to run.
fn plain(chunk: &StreamChunk) -> Value {
    let mut chunk = serde_json::to_value(chunk).unwrap();
    let fields = chunk.as_object_mut().unwrap();
    for name in ["opId", "runId", "sessionId", "requestId", "resumeToken", "expiresAt"] {
        if let Some(value) = fields.get_mut(name) {
            *value = json!("…");
        }
    }
    if fields["type"] == "checkpoint" || fields["type"] == "done" {
        fields.retain(|name, _| name == "type");
    }
    chunk
}

#[tokio::test]
async fn a_turn_at_a_limit_says_what_is_reached_then_asks_and_goes_on_where_it_was() {
    let (model, effects) = (calling([("note", json!({"what": "a", "amount": 1}))]), Effects::default());
    let workflow = noting(&model, &effects).limit(MODEL_PASSES, 1).build().unwrap();
    let agent = agent(&workflow).await;
    let chunks = agent.stream_chat(vec![ChatMessage::user("Hi")], ChatOptions::new()).collect().await;
    let asks = json!({
        "kind": "choice", "multiple": false, "id": "limit-reached",
        "question": "The run has used 1 model passes of 1 that it may. Let it go on?",
        "options": [{"id": "continue", "label": "Go on"}, {"id": "stop", "label": "Stop"}],
        "meta": {"limit": "max_model_passes", "maximum": 1, "consumed": 1},
    });
    assert_eq!(
        chunks.iter().map(plain).collect::<Vec<_>>(),
        [
            json!({"type": "session", "sessionId": "…"}),
            json!({"type": "tool-call-start", "node": "brief", "opId": "…", "tool": "note", "toolCallId": "call_0_0", "input": {"what": "a", "amount": 1}}),
            json!({"type": "tool-call-result", "node": "brief", "opId": "…", "tool": "note", "toolCallId": "call_0_0", "content": {"done": "a"}, "structuredContent": {"done": "a"}}),
            json!({"type": "limit-reached", "runId": "…", "limit": "max_model_passes", "maximum": 1, "consumed": 1}),
            json!({"type": "interrupt", "requestId": "…", "resumeToken": "…", "workflow": "noting", "node": "brief", "id": "limit-reached", "expiresAt": "…", "input": asks}),
            json!({"type": "checkpoint"}),
            json!({"type": "done"}),
        ]
    );
    let question = chunks.iter().find_map(|chunk| match chunk {
        StreamChunk::Interrupt(question) => Some(question),
        _ => None,
    });
    let question = question.unwrap();
    let mut meta = ResumeMeta::new(question.resume_token.clone(), question.request_id.clone());
    meta.selected = vec!["continue".into()];
    let turn = vec![ChatMessage::user("Go on").with_resume(&meta)];
    let chunks = agent.stream_chat(turn, ChatOptions::new()).collect().await;
    let said: Vec<Value> = chunks.iter().map(|chunk| plain(chunk)["type"].clone()).collect();
    assert_eq!(json!(said), json!(["session", "text-start", "text-delta", "text-end", "checkpoint", "done"]));
    assert_eq!((effects.count(), model.played().len()), (1, 2));
}

#[tokio::test]
async fn calls_of_one_turn_stop_at_the_limit_and_a_fresh_allowance_makes_the_rest() {
    let note = |what: &str| ("note", json!({ "what": what }));
    let (model, effects) = (calling([note("a"), note("b"), note("c")]), Effects::default());
    let workflow = noting(&model, &effects).limit(TOOL_CALLS, 2).build().unwrap();
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    assert_eq!((effects.count(), model.played().len()), (2, 1));
    let done = data(decide(&agent, &paused, "continue").await);
    assert_eq!((effects.count(), done["results"].as_array().unwrap().len()), (3, 3));
}

#[tokio::test]
async fn a_no_fails_the_run_with_a_stable_code_and_the_model_is_not_asked_again() {
    let (model, effects) = (calling([("note", json!({"what": "a"}))]), Effects::default());
    let workflow = noting(&model, &effects).build().unwrap();
    let agent = agent(&workflow).await;
    let options = ExecuteOptions::new().limit(MODEL_PASSES, 1);
    let paused = agent.execute(&workflow, json!({}), options).await.unwrap();
    let failed = failure(decide(&agent, &paused, "stop").await);
    assert_eq!((failed.code, failed.retryable), (FailureCode::LimitReached, Some(false)));
    assert_eq!(failed.message, "the run was stopped at its limit `max_model_passes` of 1, of which it had used 1");
    assert_eq!((effects.count(), model.played().len()), (1, 1));
}

#[tokio::test]
async fn tokens_are_known_after_a_pass_and_checked_before_the_next_one() {
    let model = ScriptedModel::new([
        Script::new().call("note", json!({"what": "a"})).usage(70, 50),
        Script::new().text("Done.").usage(5, 6),
    ]);
    let workflow = noting(&model, &Effects::default()).limit(TOKENS, 100).build().unwrap();
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let meta = open(&paused)[0].input.meta.clone().unwrap();
    assert_eq!(meta, json!({"limit": "max_tokens", "maximum": 100, "consumed": 120}));
    assert_eq!(usage(&paused), (70, 50, 120));
    let done = decide(&agent, &paused, "continue").await;
    assert_eq!(usage(&done), (75, 56, 131));
    let ExecutionResult::Completed { .. } = done else { panic!("{done:?}") };
}

#[tokio::test]
async fn a_pass_that_comes_to_nothing_counts_what_it_cost() {
    let refuses = Script::new().text("No.").finish(FinishReason::Refusal).usage(3, 4);
    let model = ScriptedModel::new([refuses]);
    let result = crate::world::reason(move || with(&model)).await;
    assert_eq!(usage(&result), (3, 4, 7));
    assert_eq!(failure(result).code, FailureCode::ProviderRefusal);
}

#[tokio::test]
async fn what_a_tool_uses_itself_counts_with_the_rest() {
    let model = calling([("ask_other", json!({"what": "a"}))]);
    let workflow = reasoning(move || {
        with(&model).tool(tool("ask_other", "Asks another model", |order: Order, ctx: ToolContext| async move {
            ctx.node().spend(TOKENS, 40).map_err(|error| ToolError::new(error.to_string()))?;
            Ok::<_, ToolError>(order.what)
        }))
    });
    let done = run(&agent(&workflow).await, &workflow).await;
    assert_eq!(usage(&done), (0, 0, 40));
}

#[tokio::test]
async fn children_and_joined_reasoning_share_the_limits_of_the_run_and_its_usage() {
    let (models, effects) = ([(); 4].map(|()| calling([("note", json!({"what": "a"}))])), Effects::default());
    let all = models.clone();
    let child = {
        let (model, effects) = (models[3].clone(), effects.clone());
        reasoning(move || with(&model).tool(effects.tool("note")))
    };
    let (inner, counted) = (child.clone(), effects.clone());
    let node = move |ctx: NodeContext| {
        let (models, effects, child) = (models.clone(), counted.clone(), inner.clone());
        async move {
            let reasons = models.iter().take(3).enumerate().map(|(at, model)| {
                let (ctx, reason) = (ctx.clone(), with(model).tool(effects.tool("note")));
                async move { ctx.reason(&format!("r{at}"), reason).await }
            });
            let joined = async { try_join_all(reasons).await.map_err(kortyx_runtime::NodeError::from) };
            let called = async { ctx.call::<_, Value>("child", &child, json!({})).await.map_err(Into::into) };
            futures_util::future::try_join(joined, called).await?;
            let level = ctx.level(MODEL_PASSES)?;
            Ok(NodeOutput::new().data("passes", &level.used).data("allowed", &level.allowed))
        }
    };
    let workflow = Workflow::builder("outer").node("outer", node).limit(MODEL_PASSES, 5).build().unwrap();
    let builder = Agent::builder().workflow(&workflow).workflow(&child);
    let agent = builder.store(MemoryStore::new()).without_worker().build().await.unwrap();
    let played = || all.iter().map(|model| model.played().len()).sum::<usize>();
    let paused = run(&agent, &workflow).await;
    assert_eq!((open(&paused).len(), played()), (1, 5), "five passes, one question");
    assert_eq!(open(&paused)[0].workflow, "outer");
    let done = data(decide(&agent, &paused, "continue").await);
    assert_eq!((done, played(), effects.count()), (json!({"passes": 8, "allowed": 10}), 8, 4));
}

#[tokio::test]
async fn another_process_counts_on_where_the_first_one_stopped() {
    let passes = |count: usize| {
        let calls = (0..count).map(|at| Script::new().call("note", json!({"what": at.to_string()})).usage(1, 1));
        ScriptedModel::new(calls.chain([Script::new().text("Done.").usage(1, 1)]))
    };
    let (model, effects) = (passes(5), Effects::default());
    let workflow = noting(&model, &effects).limit(MODEL_PASSES, 3).build().unwrap();
    let store = std::sync::Arc::new(MemoryStore::new());
    let process = async || {
        let builder = Agent::builder().workflow(&workflow).shared_store(store.clone()).without_worker();
        builder.build().await.unwrap()
    };
    let paused = run(&process().await, &workflow).await;
    assert_eq!(usage(&paused), (3, 3, 6));
    let done = decide(&process().await, &paused, "continue").await;
    assert_eq!((usage(&done), model.played().len()), ((6, 6, 12), 6));
    let view = process().await.get_run(done.run_id(), &Scope::session(done.session_id().clone())).await.unwrap();
    assert!(view.is_some());
    // Whoever answers again is told the same.
    let again = decide(&process().await, &paused, "continue").await;
    assert_eq!(usage(&again), (6, 6, 12));
}

#[tokio::test]
async fn an_agent_has_limits_for_all_its_runs() {
    let model = calling([("note", json!({"what": "a"}))]);
    let workflow = noting(&model, &Effects::default()).build().unwrap();
    let builder = Agent::builder().workflow(&workflow).store(MemoryStore::new()).without_worker();
    let agent = builder.limit(MODEL_PASSES, 1).build().await.unwrap();
    assert_eq!(open(&run(&agent, &workflow).await).len(), 1);
    let options = ExecuteOptions::new().unlimited(MODEL_PASSES);
    data(agent.execute(&workflow, json!({}), options).await.unwrap());
}
