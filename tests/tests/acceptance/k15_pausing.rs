//! K15 and K17: a pause is armed whatever is configured, and is no error in anybody's eyes.

use std::time::Duration;

use kortyx::{Agent, ExecuteOptions, NodeError, NodeOptions, NodeOutput, Retry, Workflow, protocol::ResumeResponse};
use kortyx_tests::{Counter, Heard, World, approve_or_decline, data, one_node, only, with};
use serde_json::json;
use tracing::{Level, subscriber::set_default};

/// A gate before an action.
fn gated(acts: &Counter) -> Workflow {
    one_node(
        "gated",
        with(acts.clone(), |ctx, acts| async move {
            let decision = ctx.interrupt("gate", approve_or_decline("Act?")).await?;
            if decision == "approve" {
                ctx.step("act", || async { Ok::<_, NodeError>(acts.hit()) }).await?;
            }
            Ok(NodeOutput::new().data("decision", &decision))
        }),
    )
}

/// There is no agent without a store: one that is given none keeps its runs in memory, says so once, and pauses like any other.
#[tokio::test]
async fn b173_without_a_configured_store_a_gate_still_pauses_and_a_warning_says_what_that_means() {
    let heard = Heard::default();
    let listening = set_default(heard.clone());
    let acts = Counter::new();
    let workflow = gated(&acts);
    let agent = Agent::builder().workflow(&workflow).build().await.unwrap();
    let warnings = heard.at(Level::WARN);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("do not survive a restart"), "{warnings:?}");

    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    assert_eq!((paused.status(), acts.count()), ("suspended", 0));
    let result = agent.resume(&only(&paused).resume, ResumeResponse::select(["decline"])).await.unwrap();
    assert_eq!((data(result)["decision"].as_str(), acts.count()), (Some("decline"), 0));
    let none_set = Agent::builder().workflow(&workflow).from_variables(|_| None).build().await.unwrap();
    assert_eq!(heard.at(Level::WARN).len(), 2);
    drop(listening);
    for agent in [agent, none_set] {
        agent.shutdown(Duration::from_secs(10)).await;
    }
}

#[tokio::test]
async fn b173_a_store_that_is_named_and_cannot_be_used_is_an_error_at_the_start() {
    for (variable, value) in [
        ("KORTYX_POSTGRES_URL", "mysql://u:hunter2@h/d"),
        ("REDIS_URL", "http://u:hunter2@h"),
        ("KORTYX_SQLITE_PATH", ""),
    ] {
        let variables = move |name: &str| (name == variable).then(|| value.into());
        let refused = Agent::builder().from_variables(variables).build().await.unwrap_err();
        let source = std::error::Error::source(&refused).unwrap().to_string();
        assert!(source.contains(variable) && source.contains("feature") && !source.contains("hunter2"), "{source}");
    }
}

/// There are no breakpoints to configure: a pause is in the code of a node (or in its workflow's limits), so it is there on every
/// path by which a run can begin, and again each time the code comes by.
#[tokio::test]
async fn b174_a_gate_is_met_on_every_path_and_each_time() {
    let world = World::new();
    let acts = Counter::new();
    let looping = Workflow::builder("looping")
        .node("gate", |ctx| async move {
            let decision = ctx.interrupt("gate", approve_or_decline("Act?")).await?;
            Ok(NodeOutput::new().condition(decision))
        })
        .node(
            "act",
            with(acts.clone(), |_, acts| async move {
                let done = acts.hit() + 1;
                Ok(NodeOutput::new().condition(if done % 3 == 0 { "enough" } else { "more" }))
            }),
        )
        .edge_if("gate", "act", "approve")
        .edge_if("gate", kortyx::END, "decline")
        .edge_if("act", "gate", "more")
        .edge_if("act", kortyx::END, "enough")
        .build()
        .unwrap();
    let agent = world.agent(&looping).await;
    let by_type = agent.execute(&looping, json!({}), ExecuteOptions::new()).await.unwrap();
    let null = kortyx::protocol::RawJson::null();
    let by_id = agent.execute_by_id("looping", None, null, ExecuteOptions::new()).await.unwrap();
    for mut result in [by_type, by_id] {
        let mut gates = 0;
        while result.status() == "suspended" {
            gates += 1;
            let elsewhere = world.agent(&looping).await;
            result = elsewhere.resume(&only(&result).resume, ResumeResponse::select(["approve"])).await.unwrap();
        }
        assert_eq!(gates, 3);
    }
    assert_eq!(acts.count(), 6);
}

/// What swallows a pause elsewhere has nothing to swallow here: the future is dropped, and with it whatever is around it.
#[tokio::test]
async fn b172_no_wrapper_around_a_question_turns_the_pause_into_a_value() {
    let world = World::new();
    let (attempts, swallowed) = (Counter::new(), Counter::new());
    let workflow = Workflow::builder("wrapped")
        .node_with(
            "node",
            NodeOptions::new().retry(Retry::attempts(5).delay(Duration::ZERO)),
            with((attempts.clone(), swallowed.clone()), |ctx, (attempts, swallowed)| async move {
                attempts.hit();
                let caught = async {
                    let decision = ctx.interrupt("gate", approve_or_decline("Act?")).await;
                    decision.unwrap_or_else(|_| {
                        swallowed.hit();
                        "approve".to_owned()
                    })
                };
                let timed = tokio::time::timeout(Duration::from_nanos(1), caught).await.unwrap_or_else(|_| {
                    swallowed.hit();
                    "approve".to_owned()
                });
                Ok(NodeOutput::new().data("decision", &timed))
            }),
        )
        .build()
        .unwrap();
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    assert_eq!((paused.status(), attempts.count(), swallowed.count()), ("suspended", 1, 0));
    let result = agent.resume(&only(&paused).resume, ResumeResponse::select(["decline"])).await.unwrap();
    assert_eq!((data(result)["decision"].as_str(), attempts.count(), swallowed.count()), (Some("decline"), 2, 0));
}

#[tokio::test]
async fn b181_a_pause_at_any_depth_is_no_error_and_no_warning_in_traces() {
    let world = World::new();
    let heard = Heard::default();
    let acts = Counter::new();
    let child = gated(&acts);
    let parent = one_node(
        "parent",
        with(child.clone(), |ctx, child| async move {
            let own = ctx.interrupt("own", approve_or_decline("Call it?")).await?;
            let output: serde_json::Value = ctx.call("child", &child, json!({})).await?;
            Ok(NodeOutput::new().data("own", &own).data("child", &output))
        }),
    );
    let agent = world.builder().await.workflow(&parent).workflow(&child).build().await.unwrap();
    let listening = set_default(heard.clone());
    let mut result = agent.execute(&parent, json!({}), ExecuteOptions::new()).await.unwrap();
    while result.status() == "suspended" {
        result = agent.resume(&only(&result).resume, ResumeResponse::select(["approve"])).await.unwrap();
    }
    drop(listening);
    assert_eq!(acts.count(), 1);
    assert_eq!((heard.at(Level::ERROR), heard.at(Level::WARN)), (Vec::new(), Vec::new()));
}
