//! Approval: what a person decides is what happens, whatever the tool, the model or later code does.

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt as _};
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::Agent;
use kortyx_protocol::{FailureCode, Issue, RawJson, ResumeResponse, Timestamp};
use kortyx_reason::{Approval, Tool, ToolContext, ToolError, ToolOutput, ToolPolicy};
use kortyx_store::ManualClock;
use serde_json::{Value, json};

use crate::world::{Effects, Order, agent, answer, asked, calling, data, gated, open, reasoning, run, tea, told, with};

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
