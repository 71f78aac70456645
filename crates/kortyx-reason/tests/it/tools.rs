//! Tools: what reaches them, what becomes of what they do, and what is wrong with how they are set up.

use std::{sync::Arc, time::Duration};

use kortyx_orchestrator::ExecuteOptions;
use kortyx_protocol::{FailureCode, SessionId};
use kortyx_reason::{
    Approval, Capabilities, OnError, Reason, ReasonError, ReasonExt as _, Script, ScriptedModel, ToolContext,
    ToolError, WhileWaiting, tool,
};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use kortyx_store::{CancelTarget, Scope};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::world::{ASK, Effects, Order, agent, calling, clarify, data, failure, reason, run, told};

fn with(model: &ScriptedModel) -> Reason {
    Reason::new(model.clone()).input("Go.")
}

#[tokio::test]
async fn calls_of_one_turn_are_made_in_the_order_in_which_the_model_asked() {
    let model = calling([("second", json!({"what": "a"})), ("first", json!({"what": "b"}))]);
    let (effects, given) = (Effects::default(), model.clone());
    let result = data(reason(move || with(&given).tool(effects.tool("first")).tool(effects.tool("second"))).await);
    let both = json!([["second", "completed", {"done": "a"}], ["first", "completed", {"done": "b"}]]);
    assert_eq!(result["results"], both);
    assert_eq!(told(&model), [r#"{"done":"a"}"#, r#"{"done":"b"}"#]);
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_tool_and_the_model_is_told_why() {
    let first = Script::new()
        .call("order", json!({"amount": 3}))
        .call("order", json!({"what": 7}))
        .call_text("order", "{\"what\": ")
        .call("unheard_of", json!({}))
        .call("order", json!({"what": "tea", "amount": "many"}));
    let model = ScriptedModel::new([first, Script::new().text("Done.")]);
    let (effects, given) = (Effects::default(), model.clone());
    let order = effects.clone();
    let result = data(reason(move || with(&given).tool(order.tool("order"))).await);
    assert_eq!(effects.count(), 0);
    let statuses: Vec<&Value> = result["results"].as_array().unwrap().iter().map(|result| &result[1]).collect();
    assert_eq!(statuses, ["invalid"; 5]);
    let told = told(&model);
    assert!(told[0].contains("/what") && told[1].contains("/what"), "{told:?}");
    assert!(
        told[2].contains("not JSON") && told[3].contains("`unheard_of`") && told[4].contains("no number"),
        "{told:?}"
    );
}

/// A tool that fails in the way that its argument says.
fn failing() -> kortyx_reason::FunctionTool<Order> {
    tool("fail", "Fails", |order: Order, ctx: ToolContext| async move {
        match order.what.as_str() {
            "error" => Err(ToolError::new("there is no tea")),
            "panic" => panic!("the secret is 42"),
            "slow" => {
                ctx.cancelled().cancelled().await;
                Ok(String::new())
            }
            _ => Ok("long ".repeat(100)),
        }
    })
    .timeout(Duration::from_secs(5))
    .max_result_bytes(100)
}

#[tokio::test(start_paused = true)]
async fn errors_panics_delays_and_floods_of_a_tool_are_told_to_the_model() {
    let model = calling(["error", "panic", "slow", "long"].map(|what| ("fail", json!({"what": what}))));
    let given = model.clone();
    let result = data(reason(move || with(&given).tool(failing())).await);
    for place in 0..4 {
        assert_eq!(result["results"][place], json!(["fail", "failed", null]));
    }
    let told = told(&model);
    assert_eq!(told[..3], ["there is no tea", "the tool failed", "the tool took longer than 5s"]);
    assert!(told[3].contains("500 bytes"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn an_error_ends_the_run_where_the_policy_says_so() {
    let model = calling([("fail", json!({"what": "error"}))]);
    let failure = failure(reason(move || with(&model).tool(failing().on_error(OnError::EndRun))).await);
    assert_eq!(failure.code, FailureCode::ExecutionFailed);
    assert!(!failure.message.contains("tea"), "{failure}");
}

#[tokio::test]
async fn a_call_that_is_set_up_wrongly_is_refused_before_the_model_is_asked() {
    type Make = Box<dyn Fn(Reason) -> Reason + Send + Sync>;
    let effects = Effects::default();
    let (two, reserved, blank) = (effects.clone(), effects.clone(), effects.clone());
    let wrong: Vec<(&str, Make)> = vec![
        ("two tools", Box::new(move |reason| reason.tool(two.tool("order")).tool(two.tool("order")))),
        ("reserved", Box::new(move |reason| reason.tool(reserved.tool(ASK)))),
        ("not valid", Box::new(move |reason| reason.tool(blank.tool("order tea")))),
        ("two contracts", Box::new(|reason| reason.interrupts(clarify().contract(&crate::world::CLARIFY)))),
        ("required to ask", Box::new(|reason| reason.interrupts(kortyx_reason::Interrupts::required()))),
    ];
    for (why, make) in wrong {
        let model = ScriptedModel::new([]);
        let asked = model.clone();
        let make = Arc::new(make);
        let node = move |ctx: NodeContext| {
            let reason = make(with(&model));
            async move {
                let error = ctx.reason("brief", reason).await.expect_err("it is wrong");
                assert!(matches!(error, ReasonError::Definition(_)), "{error:?}");
                Ok(NodeOutput::new().data("why", &error.to_string()))
            }
        };
        let workflow = Workflow::builder("wrong").node("brief", node).build().unwrap();
        let result = data(run(&agent(&workflow).await, &workflow).await);
        assert!(result["why"].as_str().unwrap().contains(why), "{result}");
        assert!(asked.played().is_empty());
    }
}

#[tokio::test]
async fn a_model_that_cannot_call_tools_is_given_none() {
    let model = ScriptedModel::new([]).with_capabilities(Capabilities::default().with_tools(false));
    let effects = Effects::default();
    let failure = failure(reason(move || with(&model).tool(effects.tool("order"))).await);
    assert_eq!(failure.code, FailureCode::ExecutionFailed);
}

#[tokio::test(start_paused = true)]
async fn work_that_a_tool_began_elsewhere_is_told_when_its_time_is_up() {
    let told = Arc::new(Notify::new());
    let (model, elsewhere) = (calling([("spawn", json!({"what": "tea"}))]), told.clone());
    let spawning = move || {
        let elsewhere = elsewhere.clone();
        let begin = move |_: Order, ctx: ToolContext| {
            let elsewhere = elsewhere.clone();
            tokio::spawn(async move {
                ctx.cancelled().cancelled().await;
                elsewhere.notify_one();
            });
            std::future::pending::<Result<(), ToolError>>()
        };
        tool("spawn", "Begins something", begin).timeout(Duration::from_secs(5))
    };
    let result = data(reason(move || with(&model).tool(spawning())).await);
    assert_eq!(result["results"][0][1], "failed");
    tokio::time::timeout(Duration::from_secs(1), told.notified()).await.expect("it is told");
}

#[tokio::test]
async fn an_error_that_ends_the_run_withdraws_the_questions_beside_it() {
    let model = calling([("order", json!({"what": "tea"})), ("fail", json!({"what": "error"}))]);
    let effects = Effects::default();
    let result = reason(move || {
        let tools = (effects.tool("order").approve_always(), failing().on_error(OnError::EndRun));
        with(&model).tool(tools.0).tool(tools.1).while_waiting(WhileWaiting::Proceed)
    });
    assert_eq!(failure(result.await).code, FailureCode::ExecutionFailed);
}

#[tokio::test]
async fn arguments_about_which_nobody_could_be_asked_go_back_to_the_model() {
    let deep = (0..99).fold(json!(1), |inner, _| json!([inner]));
    let model = calling([("deep", json!({ "value": deep }))]);
    let given = model.clone();
    let deep = || {
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        struct Anything {
            value: Value,
        }
        tool("deep", "Takes anything", |given: Anything, _: ToolContext| async move { Ok::<_, ToolError>(given.value) })
    };
    let result = data(reason(move || with(&given).tool(deep().approve_always())).await);
    assert_eq!(result["results"][0][1], "invalid");
    assert!(told(&model)[0].contains("levels"), "{:?}", told(&model));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_stops_the_model_and_the_tool_at_once() {
    let slow_model = ScriptedModel::new([Script::new().wait(Duration::from_hours(1)).text("Never said.")]);
    let slow_tool = ScriptedModel::new([Script::new().call("fail", json!({"what": "slow"}))]);
    for model in [slow_model, slow_tool] {
        let asked = model.clone();
        let workflow = crate::world::reasoning(move || with(&model).tool(failing().timeout(Duration::from_hours(1))));
        let agent = agent(&workflow).await;
        let session = SessionId::new("session-1").unwrap();
        let options = ExecuteOptions::new().session(session.clone());
        let (running, own) = (agent.clone(), workflow.clone());
        let begun = tokio::time::Instant::now();
        let run = tokio::spawn(async move { running.execute(&own, json!({}), options).await });
        while asked.played().is_empty() {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let scope = Scope::session(session.clone());
        agent.cancel(CancelTarget::Session(session), scope, None).await.unwrap();
        assert_eq!(run.await.unwrap().unwrap().status(), "cancelled");
        assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    }
}

#[test]
fn the_policy_is_no_approval_unless_it_says_so() {
    assert_eq!(Approval::default(), Approval::Never);
}
