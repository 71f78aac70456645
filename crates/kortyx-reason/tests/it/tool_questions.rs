//! Questions that tools ask: the call ends at the question and is made again with the answer.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use kortyx_contracts::{AskExt as _, Choice, Text};
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::Agent;
use kortyx_protocol::{Failure, FailureCode, ResumeResponse};
use kortyx_reason::{FunctionTool, ToolContext, ToolError, WhileWaiting, tool};
use kortyx_runtime::Workflow;
use serde_json::{Value, json};

use crate::world::{Effects, Order, agent, calling, data, open, reasoning, run, tea, told, with};

/// What a tool does, call by call: where it got to, and the key.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(String, String)>>>);

impl Log {
    fn note(&self, what: impl Into<String>, ctx: &ToolContext) {
        self.0.lock().unwrap().push((what.into(), ctx.idempotency_key()));
    }

    fn places(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(place, _)| place.clone()).collect()
    }

    fn keys(&self) -> usize {
        let mut keys: Vec<String> = self.0.lock().unwrap().iter().map(|(_, key)| key.clone()).collect();
        keys.sort();
        keys.dedup();
        keys.len()
    }
}

fn colour() -> Choice {
    Choice::new("Which colour?").option("green", "Green").option("black", "Black")
}

/// Asks for a colour, then for a note, and only then does it.
fn asking(log: &Log) -> FunctionTool<Order> {
    let log = log.clone();
    tool("order", "Orders", move |order: Order, ctx: ToolContext| {
        let log = log.clone();
        async move {
            log.note("begun", &ctx);
            let colour = ctx.ask("colour", colour()).await?;
            log.note("colour", &ctx);
            let note = ctx.ask("note", Text::new("Any note?").optional_cancel()).await?;
            log.note("done", &ctx);
            Ok::<_, ToolError>(json!([order.what, colour, note]))
        }
    })
}

async fn agent_on(store: &Arc<MemoryStore>, workflow: &Workflow) -> Agent {
    Agent::builder().workflow(workflow).shared_store(store.clone()).without_worker().build().await.unwrap()
}

#[tokio::test]
async fn a_tool_that_asks_is_called_again_with_the_answer_in_whatever_process_and_only_for_that() {
    let (model, log, store) = (calling([tea()]), Log::default(), Arc::new(MemoryStore::new()));
    let (given, logged) = (model.clone(), log.clone());
    let workflow = reasoning(move || with(&given).tool(asking(&logged)));
    let first = agent_on(&store, &workflow).await;
    let paused = run(&first, &workflow).await;
    drop(first);
    let question = &open(&paused)[0];
    assert_eq!(question.input.question.as_deref(), Some("Which colour?"));
    let second = agent_on(&store, &workflow).await;
    let wrong = second.resume(&question.resume, ResumeResponse::select(["pink"])).await.unwrap_err();
    assert_eq!(Failure::from(wrong).code, FailureCode::InvalidResponse);
    assert_eq!(log.places(), ["begun"], "a wrong answer calls nothing");
    let paused = second.resume(&question.resume, ResumeResponse::select(["green"])).await.unwrap();
    drop(second);
    assert_eq!(log.places(), ["begun", "begun", "colour"]);
    let third = agent_on(&store, &workflow).await;
    let done = third.resume(&open(&paused)[0].resume, ResumeResponse::text("Hot")).await.unwrap();
    assert_eq!(data(done)["results"], json!([["order", "completed", ["tea", "green", "Hot"]]]));
    assert_eq!(log.places(), ["begun", "begun", "colour", "begun", "colour", "done"]);
    assert_eq!((log.keys(), model.played().len()), (1, 2), "one key, and the model was not asked again");
}

#[tokio::test]
async fn a_tool_sees_that_a_question_was_cancelled_where_it_wants_to() {
    let (model, log) = (calling([tea()]), Log::default());
    let workflow = reasoning(move || with(&model).tool(asking(&log)));
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let paused = agent.resume(&open(&paused)[0].resume, ResumeResponse::select(["black"])).await.unwrap();
    let done = agent.resume(&open(&paused)[0].resume, ResumeResponse::Cancel).await.unwrap();
    assert_eq!(data(done)["results"][0][2], json!(["tea", "black", null]));
}

/// Answers one open question after the other with `1`, `2`, …; returns how many there were and the end.
async fn answer_all(workflow: &Workflow) -> (usize, Value) {
    let agent = agent(workflow).await;
    let mut result = run(&agent, workflow).await;
    let mut asked = 0;
    while result.status() == "suspended" {
        asked += 1;
        result = agent.resume(&open(&result)[0].resume, ResumeResponse::text(asked.to_string())).await.unwrap();
    }
    (asked, data(result))
}

#[tokio::test]
async fn each_use_of_an_id_has_its_own_answer_and_questions_at_once_are_open_together() {
    let both = tool("order", "Orders", |_: Order, ctx: ToolContext| async move {
        let (first, second) = tokio::join!(ctx.ask("n", Text::new("A?")), ctx.ask("n", Text::new("B?")));
        let third = ctx.ask("n", Text::new("C?")).await?;
        Ok::<_, ToolError>(json!([first?, second?, third]))
    });
    let (model, both) = (calling([tea()]), Arc::new(both));
    let workflow = reasoning(move || with(&model).tools([both.clone() as Arc<dyn kortyx_reason::Tool>]));
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let texts: Vec<_> = open(&paused).iter().map(|open| open.input.question.clone().unwrap()).collect();
    assert_eq!(texts, ["A?", "B?"]);
    let still = agent.resume(&open(&paused)[1].resume, ResumeResponse::text("b")).await.unwrap();
    assert_eq!(open(&still).len(), 1);
    let third = agent.resume(&open(&still)[0].resume, ResumeResponse::text("a")).await.unwrap();
    let done = agent.resume(&open(&third)[0].resume, ResumeResponse::text("c")).await.unwrap();
    assert_eq!(data(done)["results"][0][2], json!(["a", "b", "c"]));
}

#[tokio::test]
async fn b172_nothing_in_a_tool_swallows_the_pause_and_a_question_that_is_dropped_is_not_asked() {
    let stubborn = |_: Order, ctx: ToolContext| async move {
        tokio::select! {
            biased;
            _ = ctx.ask("never", Text::new("Never?")) => {}
            () = std::future::ready(()) => {}
        }
        let patience = tokio::time::timeout(Duration::from_millis(1), ctx.ask("n", Text::new("Well?"))).await;
        let said = patience.map_err(|_| ToolError::new("gave up"))?.unwrap_or_else(|_| "swallowed".into());
        Ok::<_, ToolError>(said)
    };
    let model = calling([tea()]);
    let workflow = reasoning(move || with(&model).tool(tool("order", "Orders", stubborn)));
    let (asked, end) = answer_all(&workflow).await;
    assert_eq!((asked, &end["results"][0][2]), (1, &json!("1")));
}

#[tokio::test]
async fn a_tool_that_asks_too_much_fails_and_the_model_is_told() {
    let endless = |_: Order, ctx: ToolContext| async move {
        loop {
            ctx.ask("more", Text::new("More?")).await?;
        }
        #[expect(unreachable_code, reason = "it gives the closure its type")]
        Ok::<(), ToolError>(())
    };
    let model = calling([tea()]);
    let given = model.clone();
    let workflow = reasoning(move || with(&given).tool(tool("order", "Orders", endless).max_questions(3)));
    let (asked, end) = answer_all(&workflow).await;
    assert_eq!((asked, &end["results"][0][1]), (3, &json!("failed")));
    assert_eq!(told(&model), ["the tool asks more than 3 questions"]);
}

#[tokio::test]
async fn a_call_that_was_approved_is_not_approved_again_for_its_question() {
    let (model, log) = (calling([tea()]), Log::default());
    let logged = log.clone();
    let workflow = reasoning(move || with(&model).tool(asking(&logged).approve_always()));
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    assert_eq!(open(&paused)[0].input.contract.as_deref(), Some("tool_approval"));
    let approve = ResumeResponse::value(json!({"decision": "approve"}));
    let paused = agent.resume(&open(&paused)[0].resume, approve).await.unwrap();
    let paused = agent.resume(&open(&paused)[0].resume, ResumeResponse::select(["green"])).await.unwrap();
    let done = agent.resume(&open(&paused)[0].resume, ResumeResponse::text("Hot")).await.unwrap();
    assert_eq!((data(done)["results"][0][1].clone(), log.keys()), (json!("completed"), 1));
}

#[tokio::test]
async fn the_calls_behind_one_that_asks_are_held_or_proceed_by_policy() {
    for (policy, runs) in [(WhileWaiting::Hold, 0), (WhileWaiting::Proceed, 1)] {
        let (model, log, effects) =
            (calling([tea(), ("note", json!({"what": "bye"}))]), Log::default(), Effects::default());
        let counted = effects.clone();
        let workflow =
            reasoning(move || with(&model).tool(asking(&log)).tool(counted.tool("note")).while_waiting(policy));
        let agent = agent(&workflow).await;
        let paused = run(&agent, &workflow).await;
        assert_eq!(effects.count(), runs, "{policy:?}");
        let paused = agent.resume(&open(&paused)[0].resume, ResumeResponse::select(["green"])).await.unwrap();
        let done = data(agent.resume(&open(&paused)[0].resume, ResumeResponse::text("Hot")).await.unwrap());
        let ended = [&done["results"][0][0], &done["results"][1][0]];
        assert_eq!((ended, effects.count()), ([&json!("order"), &json!("note")], 1), "{policy:?}");
    }
}
