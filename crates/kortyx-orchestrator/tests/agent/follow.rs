//! Following a run: from any place, across pauses, in any process.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::FutureExt as _;
use kortyx_contracts::Text;
use kortyx_orchestrator::{Agent, AgentBuilder, RunStream};
use kortyx_protocol::{FailureCode, ResumeResponse, RunId, StreamChunk};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Workflow};
use kortyx_store::{
    AnswerRequest, Bytes, CancelTarget, InterruptQuery, NewAnswer, Proof, Retention, Scalar, Scope, Store as _,
};
use serde_json::json;
use tokio::time::timeout;

use crate::world::{Gate, World, ask, code, handle, in_session, scope, settle};
use kortyx_testkit::{Faulty, Op, When};

/// Says something, asks, says what was answered.
fn chatty() -> Workflow {
    let node = |ctx: NodeContext| async move {
        ctx.text("Hel").await;
        ctx.text("lo.").await;
        let name = ctx.interrupt("name", Text::new("Name?")).await?;
        ctx.message(format!("Bye, {name}.")).await;
        Ok(NodeOutput::new().data("name", &name))
    };
    Workflow::builder("chatty").node("talk", node).build().unwrap()
}

/// Says something, and something more in a step that takes as long as the test wants. The node tells its run.
fn slowly(gate: &Gate, run: &Arc<OnceLock<RunId>>) -> Workflow {
    let (gate, run) = (gate.clone(), run.clone());
    let node = move |ctx: NodeContext| {
        let (gate, run) = (gate.clone(), run.clone());
        async move {
            let _ = run.set(ctx.run_id().clone());
            ctx.text("one").await;
            let inner = ctx.clone();
            let work = || async move {
                inner.text("two").await;
                gate.pass().await
            };
            ctx.step("wait", work).await?;
            Ok(NodeOutput::new())
        }
    };
    Workflow::builder("slowly").node("talk", node).build().unwrap()
}

/// A run that has said something and works on.
async fn talking(world: &World, agent: impl FnOnce(AgentBuilder) -> AgentBuilder) -> (Agent, RunId, Gate) {
    let (gate, run) = (Gate::new(), Arc::new(OnceLock::new()));
    let workflow = slowly(&gate, &run);
    let agent = agent(world.builder().workflow(&workflow)).build().await.unwrap();
    let (driving, own) = (agent.clone(), workflow.clone());
    tokio::spawn(async move { driving.execute(&own, json!({}), in_session()).await });
    gate.begun().await;
    (agent, run.get().unwrap().clone(), gate)
}

/// What a stream gives until it would wait, as `number:kind` and, of what has one, its text.
fn given(stream: &mut RunStream) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(Ok(Some(piece))) = stream.next().now_or_never() {
        all.push(shown(&piece));
    }
    all
}

async fn rest(mut stream: RunStream) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(piece) = stream.next().await.unwrap() {
        all.push(shown(&piece));
    }
    all
}

fn shown(piece: &kortyx_orchestrator::RunChunk) -> String {
    let number = piece.number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    match piece.chunk().unwrap() {
        StreamChunk::TextDelta(text) => format!("{number}:{}", text.delta),
        StreamChunk::Message { content, .. } => format!("{number}:{content}"),
        StreamChunk::Done { data } => format!("{number}:done {}", data.unwrap().status),
        chunk => format!("{number}:{}", chunk.kind()),
    }
}

async fn follow(agent: &Agent, run_id: &RunId, after: u64) -> RunStream {
    agent.follow(run_id, &scope(), after).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_run_is_followed_across_its_pause_from_any_place_and_in_another_process() {
    let world = World::new();
    let (asking, answering) = (world.agent(&chatty()).await, world.agent(&chatty()).await);
    let waiting = ask(&asking, &chatty()).await;
    let run_id = waiting.run_id().clone();
    let mut early = follow(&asking, &run_id, 0).await;
    assert_eq!(given(&mut early), ["-:session", "1:Hel", "2:lo.", "-:interrupt"]);
    assert_eq!(given(&mut follow(&answering, &run_id, 1).await), ["-:session", "2:lo.", "-:interrupt"]);

    answering.resume(&handle(&waiting, "name"), ResumeResponse::text("Ann")).await.unwrap();

    let end = ["3:Bye, Ann.", "-:done completed"];
    assert_eq!(rest(early).await, end);
    assert_eq!(rest(follow(&asking, &run_id, 2).await).await, ["-:session", end[0], end[1]]);
    assert_eq!(rest(follow(&asking, &run_id, 99).await).await, ["-:session", end[1]]);
}

#[tokio::test(start_paused = true)]
async fn what_a_run_says_while_it_works_is_heard_soon_by_others_too() {
    let world = World::new();
    let (agent, run_id, gate) = talking(&world, |builder| builder).await;
    let other = world.builder().build().await.unwrap();
    let mut here = follow(&agent, &run_id, 0).await;
    let mut heard = given(&mut here);
    tokio::time::sleep(Duration::from_millis(150)).await;
    heard.extend(given(&mut here));
    assert_eq!(heard, ["-:session", "1:one", "2:two"]);
    let there = follow(&other, &run_id, 0).await;
    gate.open();
    assert_eq!(rest(here).await, ["-:done completed"]);
    assert_eq!(rest(there).await, ["-:session", "1:one", "2:two", "-:done completed"]);
}

#[tokio::test(start_paused = true)]
async fn another_driver_says_again_only_what_a_step_said_that_it_runs_again() {
    let world = World::new();
    let (agent, run_id, gate) = talking(&world, |builder| builder).await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    world.clock.advance(Duration::from_secs(31));
    let workflow = slowly(&gate, &Arc::default());
    let other = world.agent(&workflow).await;
    assert_eq!(other.worker().pass().await.unwrap().recovered, 1);
    gate.begun().await;
    while agent.driven_runs() > 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    gate.open();
    let heard = rest(follow(&other, &run_id, 0).await).await;
    assert_eq!(heard, ["-:session", "1:one", "2:two", "3:two", "-:done completed"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_an_answer_held_back_a_pause_is_stored_with_the_next() {
    let (world, gate) = (World::new(), Gate::new());
    let held = gate.clone();
    let work = move |ctx: NodeContext| {
        let held = held.clone();
        async move {
            held.pass().await?;
            ctx.text("worked").await;
            Ok(NodeOutput::new())
        }
    };
    let ask = |ctx: NodeContext| async move {
        ctx.interrupt("name", Text::new("Name?")).await?;
        Ok(NodeOutput::new())
    };
    let fork = |_: NodeContext| async move { Ok(NodeOutput::new()) };
    let workflow = Workflow::builder("held").node("fork", fork).node("work", work).node("ask", ask);
    let workflow = workflow.edge("fork", "work").edge("fork", "ask").build().unwrap();
    let (driving, other) = (world.agent(&workflow).await, world.agent(&workflow).await);
    let run = tokio::spawn({
        let workflow = workflow.clone();
        async move { driving.execute(&workflow, json!({}), in_session()).await.unwrap() }
    });
    gate.begun().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let query = InterruptQuery { scope: scope(), ..InterruptQuery::default() };
    let asked = other.list_interrupts(query).await.unwrap().interrupts.remove(0);
    let answer = NewAnswer {
        request_id: asked.id.clone(),
        proof: Proof::Token(asked.handle().token.clone()),
        session_id: None,
        run_id: None,
        answer: Bytes::from_static(br#"{"text":"Ann","type":"text"}"#),
        cancel: false,
        actor: None,
    };
    // Nothing runs in between: the driver has not looked when it comes to its pause, and storage gives it the answer instead.
    world.store.answer(AnswerRequest { answers: vec![answer], driver: None }).await.unwrap();
    gate.open();
    let done = run.await.unwrap();
    let heard = rest(follow(&other, done.run_id(), 0).await).await;
    assert_eq!(heard, ["-:session", "1:worked", "-:done completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_storage_does_not_know_yet_is_followed_where_it_is_driven() {
    let world = World::new();
    let (gate, run) = (Gate::new(), Arc::new(OnceLock::new()));
    let (held, told) = (gate.clone(), run.clone());
    let node = move |ctx: NodeContext| {
        let (held, told) = (held.clone(), told.clone());
        async move {
            let _ = told.set(ctx.run_id().clone());
            held.pass().await?;
            ctx.text("at last").await;
            Ok(NodeOutput::new())
        }
    };
    let workflow = Workflow::builder("quiet").node("wait", node).build().unwrap();
    let agent = world.agent(&workflow).await;
    let driving = agent.clone();
    let run_of = tokio::spawn(async move { driving.execute(&workflow, json!({}), in_session()).await });
    gate.begun().await;
    let run_id = run.get().unwrap();
    assert!(world.store.run(run_id).await.unwrap().is_none());
    let elsewhere = Scope::session("session-2".parse().unwrap());
    assert_eq!(code(agent.follow(run_id, &elsewhere, 0).await), FailureCode::NotFound);
    let mut stream = follow(&agent, run_id, 0).await;
    assert_eq!(given(&mut stream), ["-:session"]);
    gate.open();
    assert_eq!(rest(stream).await, ["1:at last", "-:done completed"]);
    run_of.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_keeps_no_output_stores_none() {
    let world = World::new();
    let (agent, run_id, gate) = talking(&world, |builder| builder.keep_output(false)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    gate.open();
    settle(&agent).await;
    assert_eq!(rest(follow(&agent, &run_id, 0).await).await, ["-:session", "-:done completed"]);
}

#[tokio::test(start_paused = true)]
async fn how_a_run_ended_is_said() {
    let failing = |_: NodeContext| async move { Err::<NodeOutput, _>(NodeError::message("no")) };
    let failing = Workflow::builder("failing").node("fail", failing).build().unwrap();
    let world = World::new();
    let agent = world.builder().workflow(&failing).workflow(&chatty()).build().await.unwrap();
    let failed = agent.execute(&failing, json!({}), in_session()).await.unwrap();
    assert_eq!(rest(follow(&agent, failed.run_id(), 0).await).await, ["-:session", "-:error", "-:done failed"]);

    let waiting = ask(&agent, &chatty()).await;
    let mut stream = follow(&agent, waiting.run_id(), 2).await;
    assert_eq!(given(&mut stream), ["-:session", "-:interrupt"]);
    agent.cancel(CancelTarget::Run(waiting.run_id().clone()), scope(), None).await.unwrap();
    assert_eq!(rest(stream).await, ["-:cancelled", "-:done cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_and_asked_after_the_response_is_not_for_its_readers() {
    let node = |ctx: NodeContext| async move {
        ctx.text("Working on it.").await;
        ctx.complete_response("You will hear from us.").await?;
        ctx.text("for nobody").await;
        let name = ctx.interrupt("name", Text::new("Name?")).await?;
        Ok(NodeOutput::new().data("name", &name))
    };
    let workflow = Workflow::builder("later").node("work", node).build().unwrap();
    let world = World::new();
    let agent = world.agent(&workflow).await;
    let responded = agent.execute(&workflow, json!({}), in_session()).await.unwrap();
    settle(&agent).await;
    let stream = follow(&agent, responded.run_id(), 0).await;
    let ending = ["-:session", "1:Working on it.", "2:You will hear from us.", "-:done running"];
    assert_eq!(rest(stream).await, ending);
    let query = InterruptQuery { scope: scope(), ..InterruptQuery::default() };
    let asked = agent.list_interrupts(query).await.unwrap().interrupts.remove(0);
    assert!(asked.after_response_completed);
    agent.resume(asked.handle(), ResumeResponse::text("Ann")).await.unwrap();
    assert_eq!(rest(follow(&agent, responded.run_id(), 0).await).await, ending, "also when the run has ended");
}

#[tokio::test(start_paused = true)]
async fn only_runs_of_the_scope_are_followed() {
    let world = World::new();
    let agent = world.agent(&chatty()).await;
    let options = in_session().context("tenant", "a");
    let waiting = agent.execute(&chatty(), json!({}), options).await.unwrap();
    let of_tenant = |tenant: &str| Scope::default().with("tenant", Scalar::Text(tenant.into()));
    for (run_id, scope, refusal) in [
        (waiting.run_id().clone(), of_tenant("b"), FailureCode::NotFound),
        (waiting.run_id().clone(), Scope::default(), FailureCode::ScopeRequired),
        (RunId::new("run-unknown").unwrap(), of_tenant("a"), FailureCode::NotFound),
    ] {
        assert_eq!(code(agent.follow(&run_id, &scope, 0).await), refusal);
    }
    assert!(agent.follow(waiting.run_id(), &of_tenant("a"), 0).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_the_agent_and_with_what_it_reads() {
    let world = World::new();
    let agent = world.agent(&chatty()).await;
    let waiting = ask(&agent, &chatty()).await;
    let stream = follow(&agent, waiting.run_id(), 0).await;
    let other = world.agent(&chatty()).await;
    other.resume(&handle(&waiting, "name"), ResumeResponse::text("Ann")).await.unwrap();
    let mut late = follow(&other, waiting.run_id(), 0).await;
    assert_eq!(given(&mut late).len(), 5);
    world.clock.advance(Duration::from_hours(25));
    assert_eq!(world.store.prune(&Retention::default(), 100).await.unwrap().runs, 1);
    // What had begun when its run was removed is over.
    assert_eq!(rest(stream).await, ["-:session"]);

    let waiting = ask(&agent, &chatty()).await;
    let mut stream = follow(&agent, waiting.run_id(), 2).await;
    assert_eq!(given(&mut stream).len(), 2);
    agent.shutdown(Duration::from_secs(1)).await;
    assert!(rest(stream).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_a_while_ends_no_stream() {
    let world = World::new();
    let faulty = Faulty::over(world.store.clone());
    let agent = Agent::builder().shared_store(faulty.clone()).workflow(&chatty()).without_worker();
    let agent = agent.build().await.unwrap();
    let waiting = ask(&agent, &chatty()).await;
    let stream = follow(&agent, waiting.run_id(), 2).await;
    for operation in [Op::Chunks, Op::Chunks, Op::Run] {
        faulty.fail(operation, When::Before, 1);
    }
    agent.cancel(CancelTarget::Run(waiting.run_id().clone()), scope(), None).await.unwrap();
    assert_eq!(rest(stream).await, ["-:session", "-:cancelled", "-:done cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_could_not_be_read_is_put_when_it_can_be() {
    let world = World::new();
    let faulty = Faulty::over(world.store.clone());
    let agent = Agent::builder().shared_store(faulty.clone()).workflow(&chatty()).without_worker();
    let agent = agent.build().await.unwrap();
    let waiting = ask(&agent, &chatty()).await;
    faulty.fail(Op::ListInterrupts, When::Before, 1);
    let mut stream = follow(&agent, waiting.run_id(), 2).await;
    assert_eq!(given(&mut stream), ["-:session"]);
    let asked = timeout(Duration::from_mins(1), stream.next()).await.unwrap().unwrap().unwrap().chunk().unwrap();
    assert!(matches!(asked, StreamChunk::Interrupt(_)), "{asked:?}");
}
