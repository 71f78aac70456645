//! Chat turns: every row of the resume table, the order of chunks, and what a client that goes away leaves behind.

use std::time::Duration;

use kortyx_orchestrator::{Agent, ChatInput, ChatOptions, WaitingPolicy};
use kortyx_protocol::{
    ChatMessage, DoneData, FailureCode, InterruptChunk, ResumeMeta, ResumeToken, SessionId, StreamChunk,
};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use serde_json::json;

use crate::world::{World, decision, pair, review, scope, session};

fn in_session() -> ChatOptions {
    ChatOptions::new().session(session())
}

async fn play(agent: &Agent, message: ChatMessage, options: ChatOptions) -> Vec<StreamChunk> {
    agent.stream_chat(vec![message], options).collect().await
}

fn kinds(chunks: &[StreamChunk]) -> Vec<&'static str> {
    chunks.iter().map(StreamChunk::kind).collect()
}

fn interrupts(chunks: &[StreamChunk]) -> Vec<&InterruptChunk> {
    chunks.iter().filter_map(interrupt).collect()
}

fn interrupt(chunk: &StreamChunk) -> Option<&InterruptChunk> {
    match chunk {
        StreamChunk::Interrupt(interrupt) => Some(interrupt),
        _ => None,
    }
}

fn failure(chunks: &[StreamChunk]) -> FailureCode {
    let error = chunks.iter().find_map(|chunk| match chunk {
        StreamChunk::Error { failure, .. } => Some(failure.code),
        _ => None,
    });
    error.unwrap_or_else(|| panic!("no error in {chunks:?}"))
}

fn done(chunks: &[StreamChunk]) -> &DoneData {
    match chunks.last() {
        Some(StreamChunk::Done { data: Some(data) }) => data,
        other => panic!("no end: {other:?}"),
    }
}

fn meta(chunk: &InterruptChunk) -> ResumeMeta {
    ResumeMeta::new(chunk.resume_token.clone(), chunk.request_id.clone())
}

fn select(chunk: &InterruptChunk, id: &str) -> ChatMessage {
    let mut meta = meta(chunk);
    meta.selected = vec![id.to_owned()];
    ChatMessage::user(id).with_resume(&meta)
}

async fn asked(agent: &Agent) -> InterruptChunk {
    let chunks = play(agent, ChatMessage::user("Hello"), in_session()).await;
    assert_eq!(kinds(&chunks), ["session", "interrupt", "checkpoint", "done"]);
    interrupts(&chunks)[0].clone()
}

#[tokio::test]
async fn a_fresh_turn_ends_with_every_open_question_and_where_the_run_stands() {
    let agent = World::new().agent(&pair()).await;
    let chunks = play(&agent, ChatMessage::user("Hello"), ChatOptions::new()).await;
    assert_eq!(kinds(&chunks), ["session", "interrupt", "interrupt", "checkpoint", "done"]);
    let StreamChunk::Session { session_id } = &chunks[0] else { panic!("{chunks:?}") };
    assert!(session_id.as_str().starts_with("session-"));
    let ids: Vec<_> = interrupts(&chunks).iter().map(|chunk| chunk.id.as_deref().unwrap()).collect();
    assert_eq!(ids, ["a", "b"]);
    let done = done(&chunks);
    assert_eq!((done.status.as_str(), done.awaiting_human_input), ("suspended", true));
    assert_eq!(done.current_workflow, "pair");
}

#[tokio::test]
async fn a_turn_gives_its_workflow_what_was_said_and_what_came_before() {
    let node = |ctx: NodeContext| async move {
        let input: ChatInput = ctx.input()?;
        let before: Vec<String> = ctx.history()?.into_iter().map(|message| message.content).collect();
        let tenant: serde_json::Value = ctx.context()?;
        ctx.message("hi").await;
        Ok(NodeOutput::new().data("input", &input.input).data("before", &before).data("context", &tenant))
    };
    let workflow = Workflow::builder("echo").node("echo", node).build().unwrap();
    let agent = World::new().agent(&workflow).await;
    let messages = vec![ChatMessage::user("one"), ChatMessage::assistant("two"), ChatMessage::user("three")];
    let chunks = agent.stream_chat(messages, in_session().context("tenant", "acme")).collect().await;
    assert_eq!(kinds(&chunks), ["session", "message", "checkpoint", "done"]);
    let wanted = json!({"input": "three", "before": ["one", "two"], "context": {"tenant": "acme"}});
    assert_eq!((done(&chunks).status.as_str(), &done(&chunks).data), ("completed", &wanted));
}

#[tokio::test]
async fn a_valid_answer_goes_on_with_the_run() {
    let agent = World::new().agent(&review()).await;
    let question = asked(&agent).await;
    let chunks = play(&agent, select(&question, "approve"), in_session()).await;
    assert_eq!(kinds(&chunks), ["session", "message", "checkpoint", "done"]);
    assert_eq!(done(&chunks).data, json!({"decision": "approve"}));
}

#[tokio::test]
async fn an_answer_without_a_session_is_in_that_of_its_question() {
    let agent = World::new().agent(&review()).await;
    let question = asked(&agent).await;
    let chunks = play(&agent, select(&question, "approve"), ChatOptions::new()).await;
    let StreamChunk::Session { session_id } = &chunks[0] else { panic!("{chunks:?}") };
    assert_eq!(*session_id, session());
    assert_eq!(done(&chunks).status, "completed");
}

#[tokio::test]
async fn an_invalid_answer_gets_its_issues_and_the_question_again() {
    let agent = World::new().agent(&review()).await;
    let question = asked(&agent).await;
    let chunks = play(&agent, select(&question, "banana"), in_session()).await;
    assert_eq!(kinds(&chunks), ["session", "error", "interrupt", "done"]);
    let StreamChunk::Error { failure, .. } = &chunks[1] else { panic!("{chunks:?}") };
    assert_eq!(failure.code, FailureCode::InvalidResponse);
    assert_eq!(failure.issues.as_ref().unwrap()[0].message, "`banana` is not one of the options");
    let again = interrupts(&chunks)[0];
    assert_eq!((&again.request_id, again.expires_at), (&question.request_id, question.expires_at));
    assert!(again.resume_token.matches(&question.resume_token));
}

#[tokio::test]
async fn a_cancellation_ends_the_run() {
    let agent = World::new().agent(&review()).await;
    let question = asked(&agent).await;
    let mut meta = meta(&question);
    meta.cancel = true;
    for _ in 0..2 {
        let chunks = play(&agent, ChatMessage::user("no").with_resume(&meta), in_session()).await;
        assert_eq!(kinds(&chunks), ["session", "cancelled", "done"]);
        assert_eq!(done(&chunks).status, "cancelled");
    }
}

#[tokio::test]
async fn an_expired_or_unknown_token_makes_an_ordinary_turn() {
    let world = World::new();
    let agent = world.agent(&review()).await;
    let question = asked(&agent).await;
    world.clock.advance(Duration::from_mins(16));
    world.facts.take();
    let late = play(&agent, select(&question, "approve"), in_session()).await;
    assert_eq!(kinds(&late), ["session", "interrupt", "checkpoint", "done"]);
    assert_ne!(interrupts(&late)[0].request_id, question.request_id, "a new run asks anew");
    assert_eq!(world.facts.take(), ["InterruptExpired", "AnswerLate", "InterruptCreated", "SessionCheckpointed"]);

    let mut forged = question.clone();
    forged.resume_token = ResumeToken::mint([1; 16], [1; 32]);
    let unknown = play(&agent, select(&forged, "approve"), in_session()).await;
    assert_eq!(kinds(&unknown), ["session", "interrupt", "checkpoint", "done"]);
    assert_eq!(world.facts.take(), ["AnswerLate", "InterruptCreated", "SessionCheckpointed"]);
}

#[tokio::test]
async fn the_same_answer_again_does_no_new_work() {
    let world = World::new();
    let agent = world.agent(&review()).await;
    let question = asked(&agent).await;
    play(&agent, select(&question, "approve"), in_session()).await;
    let chunks = play(&agent, select(&question, "approve"), in_session()).await;
    assert_eq!(kinds(&chunks), ["session", "message", "checkpoint", "done"]);
    let StreamChunk::Message { content, .. } = &chunks[1] else { panic!("{chunks:?}") };
    assert_eq!(content, "You chose approve.", "the final message is shown again");
    assert_eq!(world.facts.take().iter().filter(|fact| *fact == "RunFinished").count(), 1);
}

#[tokio::test]
async fn the_same_answer_again_shows_what_is_still_open() {
    let agent = World::new().agent(&pair()).await;
    let chunks = play(&agent, ChatMessage::user("Hello"), in_session()).await;
    let questions = interrupts(&chunks);
    let mut meta = meta(questions[0]);
    meta.text = Some("one".to_owned());
    for _ in 0..2 {
        let chunks = play(&agent, ChatMessage::user("one").with_resume(&meta), in_session()).await;
        assert_eq!(kinds(&chunks), ["session", "interrupt", "checkpoint", "done"]);
        assert_eq!(interrupts(&chunks)[0].request_id, questions[1].request_id);
    }
}

#[tokio::test]
async fn another_answer_to_an_answered_question_is_an_error() {
    let agent = World::new().agent(&review()).await;
    let question = asked(&agent).await;
    play(&agent, select(&question, "approve"), in_session()).await;
    for other in ["revise", "banana"] {
        let chunks = play(&agent, select(&question, other), in_session()).await;
        assert_eq!(kinds(&chunks), ["session", "error", "done"]);
        assert_eq!(failure(&chunks), FailureCode::InterruptAlreadyResolved);
    }
}

#[tokio::test]
async fn an_answer_in_another_session_or_for_another_question_consumes_nothing() {
    let agent = World::new().agent(&review()).await;
    let (question, other) = (asked(&agent).await, asked(&agent).await);
    let elsewhere = ChatOptions::new().session(SessionId::new("session-2").unwrap());
    let chunks = play(&agent, select(&question, "approve"), elsewhere).await;
    assert_eq!((kinds(&chunks), failure(&chunks)), (vec!["session", "error", "done"], FailureCode::InterruptMismatch));
    let mut mixed = question.clone();
    mixed.request_id = other.request_id.clone();
    let chunks = play(&agent, select(&mixed, "approve"), in_session()).await;
    assert_eq!((kinds(&chunks), failure(&chunks)), (vec!["session", "error", "done"], FailureCode::InterruptMismatch));
    for question in [question, other] {
        assert_eq!(done(&play(&agent, select(&question, "approve"), in_session()).await).status, "completed");
    }
}

#[tokio::test]
async fn metadata_that_is_not_well_formed_makes_an_ordinary_turn() {
    let agent = World::new().agent(&review()).await;
    let mut message = ChatMessage::user("approve");
    message.metadata = json!({"resume": {"token": 7, "requestId": ""}}).as_object().cloned();
    assert_eq!(kinds(&play(&agent, message, in_session()).await), ["session", "interrupt", "checkpoint", "done"]);
}

#[tokio::test]
async fn b141_by_default_a_message_beside_an_open_question_starts_a_new_run() {
    let agent = World::new().agent(&review()).await;
    let first = asked(&agent).await;
    let second = asked(&agent).await;
    assert_ne!(first.request_id, second.request_id);
    assert_eq!(done(&play(&agent, select(&first, "approve"), in_session()).await).status, "completed");
}

#[tokio::test]
async fn b141_an_agent_may_refuse_a_message_beside_an_open_question() {
    let world = World::new();
    let agent = world.builder().workflow(&review()).on_waiting(WaitingPolicy::Refuse).build().await.unwrap();
    let question = asked(&agent).await;
    let chunks = play(&agent, ChatMessage::user("approve"), in_session()).await;
    assert_eq!((kinds(&chunks), failure(&chunks)), (vec!["session", "error", "done"], FailureCode::Conflict));
    assert_eq!(done(&play(&agent, select(&question, "approve"), in_session()).await).status, "completed");
    asked(&agent).await;
}

#[tokio::test]
async fn b141_an_agent_may_supersede_the_waiting_run() {
    let world = World::new();
    let agent = world.builder().workflow(&review()).on_waiting(WaitingPolicy::Supersede).build().await.unwrap();
    let first = asked(&agent).await;
    asked(&agent).await;
    let chunks = play(&agent, select(&first, "approve"), in_session()).await;
    assert_eq!(failure(&chunks), FailureCode::InterruptCancelled);
    let page =
        agent.list_interrupts(kortyx_store::InterruptQuery { scope: scope(), ..Default::default() }).await.unwrap();
    assert_eq!(page.interrupts.len(), 1);
}

#[tokio::test]
async fn a_turn_that_names_no_workflow_takes_the_default_one() {
    let (review, pair) = (review(), pair());
    let both = || World::new().builder().workflow(&review).workflow(&pair);
    let agent = both().build().await.unwrap();
    let chunks = play(&agent, ChatMessage::user("Hello"), in_session()).await;
    assert_eq!((kinds(&chunks), failure(&chunks)), (vec!["session", "error", "done"], FailureCode::UnknownWorkflow));
    let chunks = play(&agent, ChatMessage::user("Hello"), in_session().workflow("pair")).await;
    assert_eq!(interrupts(&chunks).len(), 2);
    let agent = both().default_workflow("review").build().await.unwrap();
    assert_eq!(interrupts(&play(&agent, ChatMessage::user("Hello"), in_session()).await)[0].workflow, "review");
    let chunks = play(&agent, ChatMessage::user("Hello"), in_session().workflow("nothing")).await;
    assert_eq!(failure(&chunks), FailureCode::UnknownWorkflow);
    assert_eq!(failure(&agent.stream_chat(Vec::new(), in_session()).collect().await), FailureCode::InvalidRequest);
}

#[tokio::test]
async fn b019_plain_text_leaves_the_question_open() {
    let agent = World::new().agent(&review()).await;
    let question = asked(&agent).await;
    let mut meta = meta(&question);
    meta.text = Some("approve".to_owned());
    let chunks = play(&agent, ChatMessage::user("approve").with_resume(&meta), in_session()).await;
    assert_eq!(failure(&chunks), FailureCode::InvalidResponse);
    assert_eq!(done(&play(&agent, select(&question, "approve"), in_session()).await).status, "completed");
    let _ = decision();
}
