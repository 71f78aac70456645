//! Approval: what a person decides is what happens, whatever the tool, the model or later code does.

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt as _};
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ChatOptions};
use kortyx_protocol::{ChatMessage, FailureCode, Issue, RawJson, ResumeMeta, ResumeResponse, StreamChunk, Timestamp};
use kortyx_reason::{
    Approval, Reason, ReasonExt as _, Script, ScriptedModel, Tool, ToolContext, ToolError, ToolOutput, ToolPolicy,
    WhileWaiting,
};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use kortyx_store::ManualClock;
use serde_json::{Value, json};

use crate::world::{Effects, Order, agent, answer, asked, calling, data, open, reasoning, run, told};

fn with(model: &ScriptedModel) -> Reason {
    Reason::new(model.clone()).input("Go.")
}

/// A workflow in which every order needs approval.
fn gated(model: &ScriptedModel, effects: &Effects) -> Workflow {
    let (model, effects) = (model.clone(), effects.clone());
    reasoning(move || with(&model).tool(effects.tool("order").approve_always()).tool(effects.tool("note")))
}

fn tea() -> (&'static str, Value) {
    ("order", json!({"what": "tea"}))
}

#[tokio::test]
async fn the_question_shows_the_final_arguments_and_an_approved_call_runs_once() {
    let (model, effects) = (calling([tea()]), Effects::default());
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let question = &open(&paused)[0];
    assert_eq!(question.input.contract.as_deref(), Some("tool_approval"));
    let request = question.input.request.clone().unwrap();
    assert_eq!(request["arguments"], json!({"what": "tea", "amount": 500}));
    assert_eq!((&request["tool"], request["digest"].as_str().unwrap().len()), (&json!("order"), 64));
    assert_eq!(effects.count(), 0);
    let digest = request["digest"].clone();
    let done = data(answer(&agent, &paused, 0, json!({"decision": "approve", "digest": digest})).await);
    assert_eq!(done["results"], json!([["order", "completed", {"done": "tea"}]]));
    assert_eq!((effects.count(), model.played().len()), (1, 2));
}

#[tokio::test]
async fn b002_a_rejected_call_is_not_made_and_the_model_is_told_what_the_person_says() {
    let (model, effects) = (calling([tea()]), Effects::default());
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let done = data(answer(&agent, &paused, 0, json!({"decision": "reject", "feedback": "Coffee."})).await);
    assert_eq!(done["results"], json!([["order", "rejected", null]]));
    assert_eq!(told(&model), ["A person rejected this call; it was not made. They say: Coffee."]);
    assert_eq!(effects.count(), 0);
}

/// A tool of the lowest level, which does not care what anybody decided.
struct Careless(Effects, ToolPolicy);

impl Tool for Careless {
    fn name(&self) -> &'static str {
        "careless"
    }

    fn description(&self) -> &'static str {
        "Does it"
    }

    fn parameters(&self) -> Result<RawJson, String> {
        RawJson::parse(r#"{"type": "object"}"#).map_err(|error| error.to_string())
    }

    fn policy(&self) -> &ToolPolicy {
        &self.1
    }

    fn accept(&self, arguments: &Value) -> Result<Value, Vec<Issue>> {
        Ok(arguments.clone())
    }

    fn needs_approval<'a>(&'a self, _: &'a Value) -> BoxFuture<'a, bool> {
        async { panic!("nobody knows") }.boxed()
    }

    fn call(&self, _: Value, _: ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.0.judge();
        async { Ok(ToolOutput::of("done")?) }.boxed()
    }
}

#[tokio::test]
async fn a_tool_of_the_lowest_level_is_not_entered_without_approval_and_one_that_cannot_judge_asks() {
    for approval in [Approval::Always, Approval::Decide] {
        let (model, effects) = (calling([("careless", json!({}))]), Effects::default());
        let entered = effects.clone();
        let workflow =
            reasoning(move || with(&model).tool(Careless(effects.clone(), ToolPolicy::new().approval(approval))));
        let agent = agent(&workflow).await;
        let paused = run(&agent, &workflow).await;
        let done = data(answer(&agent, &paused, 0, json!({"decision": "reject"})).await);
        assert_eq!(done["results"][0][1], "rejected");
        assert_eq!(entered.judged(), 0);
    }
}

#[tokio::test]
async fn b003_a_missing_null_or_unknown_decision_is_refused_and_everything_stays_open() {
    let (model, effects) = (calling([tea(), ("order", json!({"what": "cake"}))]), Effects::default());
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let (_, handle) = asked(&paused, 0);
    let (_, other) = asked(&paused, 1);
    for wrong in [
        json!(null),
        json!({}),
        json!({"decision": null}),
        json!({"decision": "banana"}),
        json!({"decision": true}),
        json!("approve"),
        json!({"decision": "approve", "digest": "0"}),
        json!({"decision": "approve", "arguments": {"amount": 3}}),
        json!({"decision": "approve", "verdict": "no"}),
    ] {
        let refused = agent.resume(&handle, ResumeResponse::value(wrong.clone())).await.unwrap_err();
        let failure: kortyx_protocol::Failure = refused.into();
        assert_eq!(failure.code, FailureCode::InvalidResponse, "{wrong}");
    }
    let text = agent.resume(&handle, ResumeResponse::text("approve")).await.unwrap_err();
    assert_eq!(kortyx_protocol::Failure::from(text).code, FailureCode::InvalidResponse);
    assert_eq!(effects.count(), 0);
    let still = agent.resume(&handle, ResumeResponse::value(json!({"decision": "approve"}))).await.unwrap();
    assert_eq!((open(&still).len(), effects.count()), (1, 0), "the other one still waits, and so does the turn");
    let done = data(agent.resume(&other, ResumeResponse::value(json!({"decision": "approve"}))).await.unwrap());
    assert_eq!((done["results"].as_array().unwrap().len(), effects.count()), (2, 2));
}

#[tokio::test]
async fn b012_edited_arguments_are_checked_again_and_only_they_run() {
    let (model, effects) = (calling([tea()]), Effects::default());
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    // It fits the schema, but the tool cannot read it: the question is asked again.
    let unread = json!({"decision": "approve", "arguments": {"what": "tea", "amount": "many"}});
    let paused = answer(&agent, &paused, 0, unread).await;
    assert_eq!((open(&paused).len(), effects.count()), (1, 0));
    let edited = json!({"decision": "approve", "arguments": {"what": "tea", "amount": "2"}});
    let done = data(answer(&agent, &paused, 0, edited).await);
    assert_eq!((&done["results"][0][1], effects.amounts()), (&json!("completed"), vec![2]));
    let expected = r#"A person changed the arguments to {"amount":2,"what":"tea"}. {"done":"tea"}"#;
    assert_eq!(told(&model), [expected]);
}

#[tokio::test]
async fn b012_code_that_would_run_other_arguments_than_those_approved_runs_nothing() {
    let effects = Effects::default();
    let store = Arc::new(MemoryStore::new());
    let drifting = |amount: u64| {
        let (model, effects) = (calling([("drift", json!({}))]), effects.clone());
        reasoning(move || {
            with(&model).tool(Drifting(amount, effects.clone(), ToolPolicy::new().approval(Approval::Always)))
        })
    };
    let before = drifting(100);
    let agent = Agent::builder().workflow(&before).shared_store(store.clone()).without_worker().build().await.unwrap();
    let paused = run(&agent, &before).await;
    assert_eq!(asked(&paused, 0).0["arguments"], json!({"amount": 100}));
    let after = drifting(50);
    let agent = Agent::builder().workflow(&after).shared_store(store).without_worker().build().await.unwrap();
    let done = data(answer(&agent, &paused, 0, json!({"decision": "approve"})).await);
    assert_eq!((&done["results"][0][1], effects.judged()), (&json!("invalid"), 0));
}

/// A tool that always means its own amount.
struct Drifting(u64, Effects, ToolPolicy);

impl Tool for Drifting {
    fn name(&self) -> &'static str {
        "drift"
    }

    fn description(&self) -> &'static str {
        "Pays"
    }

    fn parameters(&self) -> Result<RawJson, String> {
        RawJson::parse(r#"{"type": "object"}"#).map_err(|error| error.to_string())
    }

    fn policy(&self) -> &ToolPolicy {
        &self.2
    }

    fn accept(&self, _: &Value) -> Result<Value, Vec<Issue>> {
        Ok(json!({"amount": self.0}))
    }

    fn needs_approval<'a>(&'a self, _: &'a Value) -> BoxFuture<'a, bool> {
        async { true }.boxed()
    }

    fn call(&self, _: Value, _: ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.1.judge();
        async { Ok(ToolOutput::of("paid")?) }.boxed()
    }
}

#[tokio::test]
async fn b013_the_predicate_sees_what_would_be_executed() {
    for (arguments, waits) in [
        (json!({"what": "tea"}), true),
        (json!({"what": "tea", "amount": "500"}), true),
        (json!({"what": "tea", "amount": 500}), true),
        (json!({"what": "tea", "amount": "99"}), false),
    ] {
        let (model, effects) = (calling([("order", arguments.clone())]), Effects::default());
        let workflow = reasoning(move || {
            with(&model).tool(effects.tool("order").approve_when(|order: Order| async move { order.amount > 100 }))
        });
        let status = run(&agent(&workflow).await, &workflow).await;
        assert_eq!(status.status() == "suspended", waits, "{arguments}");
    }
}

#[tokio::test]
async fn b014_the_predicate_runs_once_for_each_call() {
    let (model, effects) = (calling([tea(), ("order", json!({"what": "cake"}))]), Effects::default());
    let (counted, given) = (effects.clone(), model.clone());
    let workflow = reasoning(move || {
        let judge = counted.clone();
        with(&given).tool(counted.tool("order").approve_when(move |_: Order| {
            let count = judge.judge();
            async move {
                assert!(count <= 2, "judged again");
                true
            }
        }))
    });
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    assert_eq!(open(&paused).len(), 2);
    let paused = answer(&agent, &paused, 1, json!({"decision": "approve"})).await;
    data(answer(&agent, &paused, 0, json!({"decision": "approve"})).await);
    assert_eq!((effects.judged(), effects.count()), (2, 2));
}

#[tokio::test]
async fn b001_later_code_without_the_gate_does_not_run_what_was_declined() {
    let (model, effects) = (calling([tea()]), Effects::default());
    let store = Arc::new(MemoryStore::new());
    let workflow = gated(&model, &effects);
    let agent =
        Agent::builder().workflow(&workflow).shared_store(store.clone()).without_worker().build().await.unwrap();
    let paused = run(&agent, &workflow).await;
    let (ungated, given) = (effects.clone(), model.clone());
    let later = reasoning(move || with(&given).tool(ungated.tool("order")).tool(ungated.tool("note")));
    let agent = Agent::builder().workflow(&later).shared_store(store).without_worker().build().await.unwrap();
    let done = data(answer(&agent, &paused, 0, json!({"decision": "reject"})).await);
    assert_eq!((&done["results"][0][1], effects.count()), (&json!("rejected"), 0));
}

#[tokio::test]
async fn b166_a_tool_that_is_gone_sets_the_run_aside_and_its_answer_stays() {
    let (model, effects) = (calling([tea()]), Effects::default());
    let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_767_225_600_000)));
    let store = Arc::new(MemoryStore::builder().with_clock(clock.clone()).build());
    let workflow = gated(&model, &effects);
    let with_store = |workflow: Workflow| {
        let store = store.clone();
        async move { Agent::builder().workflow(&workflow).shared_store(store).without_worker().build().await.unwrap() }
    };
    let paused = run(&with_store(workflow.clone()).await, &workflow).await;
    let (_, handle) = asked(&paused, 0);
    let given = model.clone();
    let bare = with_store(reasoning(move || with(&given))).await;
    let approve = ResumeResponse::value(json!({"decision": "approve"}));
    let failure: kortyx_protocol::Failure = bare.resume(&handle, approve.clone()).await.unwrap_err().into();
    assert_eq!(failure.code, FailureCode::ReplayDiverged);
    assert!(failure.message.contains("`order`"), "{failure}");
    let back = with_store(workflow).await;
    clock.advance(Duration::from_secs(1));
    assert_eq!(back.worker().pass().await.unwrap().recovered, 1, "it is tried again by a process that began later");
    let done = back.resume(&handle, approve).await.unwrap();
    assert_eq!((data(done)["results"][0][1].clone(), effects.count()), (json!("completed"), 1));
}

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
async fn hold_makes_the_calls_before_the_one_that_waits_and_none_after_it() {
    let calls = [("note", json!({"what": "a"})), tea(), ("note", json!({"what": "b"}))];
    let (model, effects) = (calling(calls), Effects::default());
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    assert_eq!(effects.count(), 1);
    data(answer(&agent, &paused, 0, json!({"decision": "approve"})).await);
    assert_eq!(effects.count(), 3);
    assert_eq!(told(&model), [r#"{"done":"a"}"#, r#"{"done":"tea"}"#, r#"{"done":"b"}"#]);
}

#[tokio::test]
async fn proceed_makes_the_calls_that_wait_for_nobody_and_each_other_with_its_answer() {
    let calls = [tea(), ("note", json!({"what": "a"})), ("order", json!({"what": "cake"}))];
    let (model, effects) = (calling(calls), Effects::default());
    let (given, counted) = (model.clone(), effects.clone());
    let workflow = reasoning(move || {
        let tools = (counted.tool("order").approve_always(), counted.tool("note"));
        with(&given).tool(tools.0).tool(tools.1).while_waiting(WhileWaiting::Proceed)
    });
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    assert_eq!((open(&paused).len(), effects.count()), (2, 1));
    let paused = answer(&agent, &paused, 1, json!({"decision": "approve"})).await;
    assert_eq!(effects.count(), 2);
    let done = data(answer(&agent, &paused, 0, json!({"decision": "reject"})).await);
    assert_eq!(effects.count(), 2);
    assert_eq!(done["results"][2], json!(["order", "completed", {"done": "cake"}]));
    assert_eq!(told(&model)[1..], [r#"{"done":"a"}"#, r#"{"done":"cake"}"#]);
}

#[tokio::test]
async fn what_is_redacted_is_hidden_from_the_person_and_given_to_the_tool() {
    let (model, effects) = (calling([("order", json!({"what": "tea", "amount": 7}))]), Effects::default());
    let counted = effects.clone();
    let workflow = reasoning(move || with(&model).tool(counted.tool("order").approve_always().redact("/amount")));
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let (request, _) = asked(&paused, 0);
    assert_eq!(request["arguments"], json!({"what": "tea", "amount": "[redacted]"}));
    let edited = json!({"decision": "approve", "arguments": {"what": "cake", "amount": "[redacted]"}});
    data(answer(&agent, &paused, 0, edited).await);
    assert_eq!(effects.amounts(), [7]);
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

#[tokio::test]
async fn an_approval_that_nobody_gives_in_its_time_ends_the_run_and_the_call_is_not_made() {
    let (model, effects) = (calling([tea()]), Effects::default());
    let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_767_225_600_000)));
    let store = Arc::new(MemoryStore::builder().with_clock(clock.clone()).build());
    let counted = effects.clone();
    let workflow = reasoning(move || {
        with(&model).tool(counted.tool("order").approve_always().approval_expires_in(Duration::from_mins(1)))
    });
    let agent = Agent::builder().workflow(&workflow).shared_store(store).without_worker().build().await.unwrap();
    let paused = run(&agent, &workflow).await;
    let (_, handle) = asked(&paused, 0);
    clock.advance(Duration::from_secs(61));
    let late = agent.resume(&handle, ResumeResponse::value(json!({"decision": "approve"}))).await.unwrap_err();
    assert_eq!(kortyx_protocol::Failure::from(late).code, FailureCode::InterruptExpired);
    assert_eq!(effects.count(), 0);
}
