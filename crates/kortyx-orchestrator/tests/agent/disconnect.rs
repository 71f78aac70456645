//! Clients that go away or read slowly.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kortyx_contracts::Text;
use kortyx_orchestrator::{Agent, Answer, ChatOptions, Fact, OnDisconnect};
use kortyx_protocol::{ChatMessage, ResumeMeta, ResumeResponse, StreamChunk};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use kortyx_store::RunStatus;

use crate::world::{Gate, World, busy, review, scope, session, settle, slow};
use kortyx_testkit::{Faulty, Op};

fn turn(agent: &Agent) -> kortyx_orchestrator::ChatStream {
    agent.stream_chat(vec![ChatMessage::user("Hello")], ChatOptions::new().session(session()))
}

fn ended(world: &World) -> Option<RunStatus> {
    world.facts.all().iter().find_map(|fact| match fact {
        Fact::RunFinished { status, .. } => Some(*status),
        _ => None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_fresh_turn_whose_client_goes_away_is_cancelled() {
    let (world, gate) = (World::new(), Gate::new());
    let agent = world.agent(&slow(&gate)).await;
    let stream = turn(&agent);
    gate.begun().await;
    drop(stream);
    tokio::time::sleep(Duration::from_secs(6)).await;
    settle(&agent).await;
    assert_eq!((ended(&world), gate.passed()), (Some(RunStatus::Cancelled), 0));
}

#[tokio::test(start_paused = true)]
async fn a_fresh_turn_may_go_on_without_its_client() {
    let (world, gate) = (World::new(), Gate::new());
    let builder = world.builder().workflow(&slow(&gate)).on_disconnect(OnDisconnect::GoOn);
    let agent = builder.build().await.unwrap();
    let stream = turn(&agent);
    gate.begun().await;
    drop(stream);
    tokio::time::sleep(Duration::from_secs(6)).await;
    gate.open();
    settle(&agent).await;
    assert_eq!(ended(&world), Some(RunStatus::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_request_may_say_otherwise_than_the_agent_what_becomes_of_its_turn() {
    let cases = [
        (OnDisconnect::Cancel, OnDisconnect::GoOn, RunStatus::Completed),
        (OnDisconnect::GoOn, OnDisconnect::Cancel, RunStatus::Cancelled),
    ];
    for (of_agent, of_request, status) in cases {
        let (world, gate) = (World::new(), Gate::new());
        let builder = world.builder().workflow(&slow(&gate)).on_disconnect(of_agent);
        let agent = builder.build().await.unwrap();
        let options = ChatOptions::new().session(session()).on_disconnect(of_request);
        let stream = agent.stream_chat(vec![ChatMessage::user("Hello")], options);
        gate.begun().await;
        drop(stream);
        tokio::time::sleep(Duration::from_secs(6)).await;
        gate.open();
        settle(&agent).await;
        assert_eq!(ended(&world), Some(status));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_being_stored_as_the_client_leaves_stands_and_its_question_can_be_answered() {
    let world = World::new();
    let store = Faulty::over(world.store.clone());
    let builder = world.builder().shared_store(store.clone()).workflow(&review());
    let agent = builder.build().await.unwrap();
    let stream = turn(&agent);
    store.during(Op::Suspend, move || drop(stream));
    tokio::time::sleep(Duration::from_secs(30)).await;
    settle(&agent).await;
    assert_eq!(ended(&world), None);
    let query = kortyx_store::InterruptQuery { scope: scope(), ..Default::default() };
    let question = agent.list_interrupts(query).await.unwrap().interrupts.pop().unwrap();
    let result = agent.resume(question.handle(), ResumeResponse::select(["approve"])).await.unwrap();
    assert_eq!(result.status(), "completed");
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_end_is_being_stored_as_the_client_leaves_has_ended_well() {
    let (world, gate) = (World::new(), Gate::new());
    let store = Faulty::over(world.store.clone());
    let builder = world.builder().shared_store(store.clone()).workflow(&slow(&gate));
    let agent = builder.build().await.unwrap();
    let stream = turn(&agent);
    store.during(Op::Finish, move || drop(stream));
    gate.open();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!((ended(&world), gate.passed()), (Some(RunStatus::Completed), 1));
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_goes_on_without_its_client() {
    let (world, gate) = (World::new(), Gate::new());
    let held = gate.clone();
    let node = move |ctx: NodeContext| {
        let gate = held.clone();
        async move {
            ctx.interrupt("name", Text::new("Name?")).await?;
            ctx.step("wait", || async move { gate.pass().await }).await?;
            Ok(NodeOutput::new())
        }
    };
    let agent = world.agent(&Workflow::builder("ask").node("ask", node).build().unwrap()).await;
    let chunks = turn(&agent).collect().await;
    let StreamChunk::Interrupt(question) = &chunks[1] else { panic!("{chunks:?}") };
    let mut meta = ResumeMeta::new(question.resume_token.clone(), question.request_id.clone());
    meta.text = Some("Ann".to_owned());
    let stream = agent.stream_chat(vec![ChatMessage::user("Ann").with_resume(&meta)], ChatOptions::new());
    gate.begun().await;
    drop(stream);
    tokio::time::sleep(Duration::from_secs(6)).await;
    gate.open();
    settle(&agent).await;
    assert_eq!(ended(&world), Some(RunStatus::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_fresh_turn_that_holds_an_accepted_answer_goes_on_without_its_client() {
    let (world, gate) = (World::new(), Gate::new());
    let agent = world.agent(&busy(&gate)).await;
    let stream = turn(&agent);
    gate.begun().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let query = kortyx_store::InterruptQuery { scope: scope(), ..Default::default() };
    let question = agent.list_interrupts(query).await.unwrap().interrupts.pop().unwrap();
    agent.submit(vec![Answer::with_handle(question.handle(), ResumeResponse::text("Ann"))]).await.unwrap();
    drop(stream);
    tokio::time::sleep(Duration::from_secs(6)).await;
    gate.open();
    settle(&agent).await;
    assert_eq!(ended(&world), Some(RunStatus::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_node_is_held_back_while_nobody_reads() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let node = move |ctx: NodeContext| {
        let sent = counted.clone();
        async move {
            for n in 0..20 {
                ctx.text(format!("{n} ")).await;
                sent.fetch_add(1, Ordering::SeqCst);
            }
            Ok(NodeOutput::new())
        }
    };
    let world = World::new();
    let workflow = Workflow::builder("talk").node("talk", node).build().unwrap();
    let agent = world.builder().workflow(&workflow).chat_buffer(4).build().await.unwrap();
    let mut stream = turn(&agent);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(sent.load(Ordering::SeqCst) <= 4, "{sent:?}");
    let mut text = String::new();
    while let Some(chunk) = stream.next().await {
        if let StreamChunk::TextDelta(more) = chunk {
            text.push_str(&more.delta);
        }
    }
    let all: Vec<String> = (0..20).map(|n| format!("{n} ")).collect();
    assert_eq!(text, all.concat());
}
