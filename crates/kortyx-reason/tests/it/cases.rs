//! Fault cases that no store has a part in, and the table of all that concern tools, approval and models.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, Answer, ExecuteOptions};
use kortyx_protocol::{ResumeResponse, Timestamp};
use kortyx_reason::{Message, Reason, Script, ScriptedModel, ToolContext, ToolError, tool};
use kortyx_store::{ClaimRequest, Driver, ManualClock, Store as _, WorkflowPin};
use kortyx_testkit::{Faulty, When};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::world::{Effects, Order, agent, answer, asked, calling, data, gated, open, reasoning, run, tea, with};

/// What a run of a workflow is bound to.
fn pin(workflow: &kortyx_runtime::Workflow) -> WorkflowPin {
    let definition = workflow.definition();
    WorkflowPin {
        id: definition.id().clone(),
        version: definition.version().clone(),
        fingerprint: definition.fingerprint().into(),
    }
}

#[tokio::test]
async fn b019_a_call_that_was_not_made_never_ends_as_done() {
    let model = ScriptedModel::new([
        Script::new().call("order", json!({"what": "tea"})),
        Script::new().call("order", json!({"what": "tea"})).call("order", json!({})).call("nothing", json!({})),
        Script::new().text("Ordered!"),
    ]);
    let effects = Effects::default();
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let done = data(answer(&agent, &paused, 0, json!({"decision": "reject"})).await);
    let ends: Vec<&str> = done["results"].as_array().unwrap().iter().filter_map(|end| end[1].as_str()).collect();
    assert_eq!(ends, ["rejected", "refused", "invalid", "invalid"], "whatever the model says of it");
    let last = model.played().pop().unwrap().messages;
    let failed = last.iter().filter(|message| matches!(message, Message::Tool { is_error: true, .. }));
    assert_eq!((failed.count(), effects.count()), (4, 0));
}

/// A client that comes back again and again while a tool works.
#[tokio::test]
async fn b048_b051_eight_equal_approvals_during_one_slow_call_make_it_once() {
    let (begun, ends) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (model, effects) = (calling([tea()]), Effects::default());
    let workflow = reasoning({
        let (model, effects, begun, ends) = (model.clone(), effects.clone(), begun.clone(), ends.clone());
        move || {
            let (effects, begun, ends) = (effects.clone(), begun.clone(), ends.clone());
            let slow = tool("order", "Takes its time", move |order: Order, _: ToolContext| {
                effects.judge();
                begun.add_permits(1);
                let ends = ends.clone();
                async move {
                    ends.acquire().await.unwrap().forget();
                    Ok::<_, ToolError>(order.what)
                }
            });
            with(&model).tool(slow.approve_always())
        }
    });
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let (_, handle) = asked(&paused, 0);
    let approvals: Vec<_> = (0..8)
        .map(|_| {
            let (agent, handle) = (agent.clone(), handle.clone());
            tokio::spawn(
                async move { agent.resume(&handle, ResumeResponse::value(json!({"decision": "approve"}))).await },
            )
        })
        .collect();
    begun.acquire().await.unwrap().forget();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    ends.add_permits(100);
    for approval in approvals {
        let result = approval.await.unwrap().unwrap();
        assert_eq!(data(result)["results"], json!([["order", "completed", "tea"]]));
    }
    assert_eq!((effects.judged(), model.played().len()), (1, 2));
}

/// What is stored of a pass is what the model said, and never the conversation again.
#[tokio::test]
async fn b154_a_history_is_stored_once_however_many_passes_follow() {
    const NEEDLE: &str = "what was said long ago";
    const PASSES: usize = 30;
    let mut scripts = vec![Script::new().text("Yes.").call("note", json!({"what": "a"})); PASSES];
    scripts.push(Script::new().call("order", json!({"what": "tea"})));
    let (model, effects) = (ScriptedModel::new(scripts), Effects::default());
    let workflow = reasoning(move || {
        let reason = Reason::new(model.clone()).history([Message::assistant(NEEDLE)]).input("Go.").max_steps(100);
        reason.tool(effects.tool("note")).tool(effects.tool("order").approve_always())
    });
    // While it is driven, dead just before it would end; and at rest.
    for writes in [Some(40), None] {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_767_225_600_000)));
        let store = Arc::new(MemoryStore::builder().with_clock(clock.clone()).build());
        let dying = Faulty::dying(store.clone(), writes.unwrap_or(u64::MAX), When::After);
        let builder = Agent::builder().workflow(&workflow).shared_store(dying.clone()).without_worker();
        let agent = builder.build().await.unwrap();
        let begun = tokio::spawn({
            let (agent, workflow) = (agent.clone(), workflow.clone());
            async move { agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap() }
        });
        if writes.is_some() {
            dying.died().await;
            clock.advance(Duration::from_secs(31));
        } else {
            let (_, handle) = asked(&begun.await.unwrap(), 0);
            let web = Agent::builder().shared_store(store.clone()).accept_only().build().await.unwrap();
            let reject = ResumeResponse::value(json!({"decision": "reject"}));
            web.submit(vec![Answer::with_handle(&handle, reject)]).await.unwrap();
        }
        let driver = Driver { id: "another".into(), ttl: Duration::from_secs(30) };
        let request = ClaimRequest { driver, workflows: vec![pin(&workflow)], parked_before: None, limit: 1 };
        let claimed = store.claim_orphans(request).await.unwrap().pop().unwrap();
        let stored: Vec<&[u8]> = claimed.entries.iter().chain([&claimed.snapshot]).map(AsRef::as_ref).collect();
        let stored = stored.concat();
        let found = stored.windows(NEEDLE.len()).filter(|part| *part == NEEDLE.as_bytes()).count();
        assert_eq!(found, 1, "in {} bytes", stored.len());
    }
}

/// There is no agent without a store: one that is given none keeps its runs in memory and pauses like any other.
#[tokio::test]
async fn b173_without_a_configured_store_an_approval_still_pauses() {
    let (model, effects) = (calling([tea()]), Effects::default());
    let workflow = gated(&model, &effects);
    let agent = Agent::builder().workflow(&workflow).without_worker().build().await.unwrap();
    let paused = run(&agent, &workflow).await;
    assert_eq!((open(&paused).len(), effects.count()), (1, 0));
    let done = data(answer(&agent, &paused, 0, json!({"decision": "reject"})).await);
    assert_eq!((&done["results"][0][1], effects.count()), (&json!("rejected"), 0));
}

/// Every test that the table names is there.
#[test]
fn the_table_of_cases_names_tests_that_exist() {
    let table = include_str!("../CASES.md");
    let mut sources = String::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders: Vec<PathBuf> = ["crates", "tests"].map(|folder| root.join(folder)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources += &fs::read_to_string(path).unwrap();
            }
        }
    }
    let named: Vec<&str> =
        table.split('`').skip(1).step_by(2).filter(|name| name.starts_with('b') && name.len() > 20).collect();
    assert!(named.len() > 50, "{named:?}");
    for name in named {
        assert!(sources.contains(&format!("fn {name}(")) || sources.contains(&format!("\"{name}\"")), "no test {name}");
    }
    let cases = table.lines().filter(|line| line.starts_with("| B"));
    for case in cases {
        assert!(case.contains('`') || case.contains("by construction"), "nothing proves it: {case}");
    }
}
