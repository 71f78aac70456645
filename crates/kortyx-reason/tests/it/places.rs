//! Where a node reasons: in a child, in branches, in a node that is tried again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kortyx_reason::{OnError, Reason, ReasonExt as _, ScriptedModel, ToolContext, ToolError, tool};
use kortyx_runtime::{
    NodeContext, NodeOutput, Workflow,
    workflow::{NodeOptions, Retry},
};
use serde_json::{Value, json};

use crate::world::{Effects, Order, agent, answer, asked, calling, data, open, reasoning, run};

fn ordering(model: &ScriptedModel, effects: &Effects) -> Reason {
    let reason = Reason::new(model.clone()).input("Go.").tool(effects.tool("note"));
    reason.tool(effects.tool("order").approve_always())
}

#[tokio::test]
async fn b042_a_child_that_reasons_asks_through_its_caller_and_repeats_nothing() {
    let calls = [("note", json!({"what": "a"})), ("order", json!({"what": "tea"})), ("note", json!({"what": "b"}))];
    let (model, effects) = (calling(calls), Effects::default());
    let (given, counted) = (model.clone(), effects.clone());
    let child = reasoning(move || ordering(&given, &counted));
    let called = child.clone();
    let middle = move |ctx: NodeContext| {
        let child = called.clone();
        async move {
            let output: Value = ctx.call("child", &child, json!({})).await?;
            Ok(NodeOutput::new().data("results", &output["results"]))
        }
    };
    let workflow = Workflow::builder("outer").node("middle", middle).build().unwrap();
    let builder = kortyx_orchestrator::Agent::builder().workflow(&workflow).workflow(&child);
    let agent = builder.store(kortyx_memory::MemoryStore::new()).without_worker().build().await.unwrap();
    let paused = run(&agent, &workflow).await;
    assert_eq!((open(&paused)[0].workflow.as_str(), effects.count()), ("reasoning", 1));
    let done = data(answer(&agent, &paused, 0, json!({"decision": "approve"})).await);
    assert_eq!(done["results"].as_array().unwrap().len(), 3);
    assert_eq!((effects.count(), model.played().len()), (3, 2));
}

#[tokio::test]
async fn branches_that_reason_are_answered_in_any_order() {
    let effects = Effects::default();
    let branch = |what: &'static str| {
        let (model, effects) = (calling([("order", json!({ "what": what }))]), effects.clone());
        move |ctx: NodeContext| {
            let reason = ordering(&model, &effects);
            async move {
                let status = ctx.reason("brief", reason).await?.tool_results[0].status;
                Ok(NodeOutput::new().data(ctx.node().to_owned(), &status))
            }
        }
    };
    let workflow = Workflow::builder("branches")
        .node("fork", |_: NodeContext| async { Ok(NodeOutput::new()) })
        .node("tea", branch("tea"))
        .node("cake", branch("cake"))
        .edge("fork", "tea")
        .edge("fork", "cake")
        .build()
        .unwrap();
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let cake = (0..2).find(|place| asked(&paused, *place).0["arguments"]["what"] == "cake").unwrap();
    let paused = answer(&agent, &paused, cake, json!({"decision": "reject"})).await;
    let done = data(answer(&agent, &paused, 0, json!({"decision": "approve"})).await);
    assert_eq!((done, effects.count()), (json!({"tea": "completed", "cake": "rejected"}), 1));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_tried_again_goes_on_at_the_call_that_failed() {
    let calls = [("note", json!({"what": "a"})), ("flaky", json!({"what": "b"}))];
    let (model, effects, failed) = (calling(calls), Effects::default(), Arc::new(AtomicBool::new(false)));
    let (given, counted) = (model.clone(), effects.clone());
    let node = move |ctx: NodeContext| {
        let failed = failed.clone();
        let flaky = tool("flaky", "Fails once", move |order: Order, _: ToolContext| {
            let fails = !failed.swap(true, Ordering::SeqCst);
            async move { if fails { Err(ToolError::new("not now")) } else { Ok(order.what) } }
        });
        let reason = ordering(&given, &counted).tool(flaky.on_error(OnError::EndRun));
        async move { Ok(crate::world::output(&ctx.reason("brief", reason).await?)) }
    };
    let options = NodeOptions::new().retry(Retry::attempts(2).delay(Duration::from_secs(1)));
    let workflow = Workflow::builder("retried").node_with("brief", options, node).build().unwrap();
    let done = data(run(&agent(&workflow).await, &workflow).await);
    assert_eq!(done["results"][1], json!(["flaky", "completed", "b"]));
    assert_eq!((effects.count(), model.played().len()), (1, 2), "the first tool and the first pass stand");
}
