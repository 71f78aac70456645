//! Later code, and other copies of a run: what a person decided is bound to the call that they saw.

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt as _};
use kortyx_contracts::OutputContract;
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ChatOptions};
use kortyx_protocol::{ChatMessage, FailureCode, Issue, RawJson, ResumeResponse, Timestamp};
use kortyx_reason::{
    Approval, Outputs, Script, ScriptedModel, Tool, ToolContext, ToolError, ToolOutput, ToolPolicy, partial::Field,
};
use kortyx_runtime::Workflow;
use kortyx_store::ManualClock;
use serde_json::{Value, json};

use crate::{
    deliveries::{CARD, EMIT, cards, seeing},
    world::{ASK, Effects, agent, answer, asked, calling, clarify, data, gated, reasoning, run, tea, with},
};

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
async fn b005_approving_one_copy_of_a_paused_run_approves_no_other() {
    let (model, effects) = (calling([tea()]), Effects::default());
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow).await;
    let session = kortyx_protocol::SessionId::new("session-1").unwrap();
    let first = agent.stream_chat(vec![ChatMessage::user("Go.")], ChatOptions::new().session(session.clone()));
    first.collect().await;
    let paused = agent.list_checkpoints(&session, None).await.unwrap().pop().unwrap();
    let copy = agent.fork(&paused.id, None, None).await.unwrap();
    let original = agent.get_checkpoint(&paused.id, None).await.unwrap().unwrap();
    let decide = |checkpoint: &kortyx_protocol::CheckpointView, decision: &str| {
        let open = &checkpoint.active_pending_requests[0];
        let handle = kortyx_protocol::ResumeHandle {
            token: open.token.clone(),
            request_id: open.request_id.clone(),
            session_id: open.session_id.clone(),
            run_id: open.run_id.clone(),
        };
        let (agent, answer) = (agent.clone(), ResumeResponse::value(json!({ "decision": decision })));
        async move { data(agent.resume(&handle, answer).await.unwrap())["results"][0][1].clone() }
    };
    assert_eq!((decide(&original, "approve").await, effects.count()), (json!("completed"), 1));
    let open = kortyx_store::InterruptQuery {
        scope: kortyx_store::Scope::session(copy.session_id.clone()),
        ..Default::default()
    };
    assert_eq!(agent.list_interrupts(open).await.unwrap().interrupts.len(), 1, "the copy still waits");
    assert_eq!((decide(&copy.checkpoint, "reject").await, effects.count()), (json!("rejected"), 1));
}

#[tokio::test]
async fn what_was_emitted_counts_as_it_was_and_code_without_its_contract_sets_the_run_aside() {
    const LATER: OutputContract<Later> =
        OutputContract::new("card").description("Shows a card").schema_id("acme.card").version("2");
    let model = ScriptedModel::new([
        Script::new().call(EMIT, json!({"title": "a"})).call(ASK, json!({"question": "?"})),
        Script::new().text("Done."),
    ]);
    let store = Arc::new(MemoryStore::new());
    let outputs = |outputs: Outputs| {
        let model = model.clone();
        seeing(move || with(&model).outputs(outputs.clone()).interrupts(clarify()))
    };
    let deployed = |workflow: Workflow| {
        let store = store.clone();
        async move { Agent::builder().workflow(&workflow).shared_store(store).without_worker().build().await.unwrap() }
    };
    let (workflow, _) = outputs(cards());
    let agent = deployed(workflow.clone()).await;
    let (_, first) = asked(&run(&agent, &workflow).await, 0);
    let (_, second) = asked(&run(&agent, &workflow).await, 0);
    let yes = || ResumeResponse::value(json!({"text": "Yes."}));
    let (without, _) = outputs(Outputs::new());
    let failure: kortyx_protocol::Failure = deployed(without).await.resume(&first, yes()).await.unwrap_err().into();
    assert_eq!(failure.code, FailureCode::ReplayDiverged);
    assert!(failure.message.contains(EMIT), "{failure}");
    let (later, seen) = outputs(Outputs::new().emit(&LATER).fields([Field::set("heading")]));
    data(deployed(later).await.resume(&second, yes()).await.unwrap());
    let emissions = seen.lock().unwrap().pop().unwrap().emissions;
    assert_eq!((emissions.of(&CARD).unwrap().len(), emissions.of(&LATER).unwrap().len()), (1, 0));
    assert_eq!(emissions.all()[0].schema_version, "1");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Later {
    #[expect(dead_code, reason = "its schema counts")]
    heading: String,
}
