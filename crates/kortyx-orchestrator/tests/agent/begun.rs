//! What a server asks of the agent: turns refused before they begin, and questions of others that are unknown.

use kortyx_orchestrator::{Agent, Answer, ChatOptions, WaitingPolicy};
use kortyx_protocol::{ChatMessage, FailureCode, RequestId, ResumeHandle, ResumeMeta, ResumeResponse, StreamChunk};
use kortyx_store::{Scalar, Scope};
use serde_json::json;

use crate::world::{World, ask, code, data, handle, in_session, open, pair, review, session};

fn tenant(name: &str) -> Scope {
    Scope::default().with("tenant", Scalar::Text(name.into()))
}

fn fresh() -> Vec<ChatMessage> {
    vec![ChatMessage::user("Hello")]
}

async fn refused(agent: &Agent, options: ChatOptions) -> FailureCode {
    code(agent.begin_chat(fresh(), options).await)
}

#[tokio::test]
async fn a_turn_that_cannot_begin_is_an_error_and_no_stream() {
    let world = World::new();
    let agent = world.builder().workflow(&review()).on_waiting(WaitingPolicy::Refuse).build().await.unwrap();
    let options = || ChatOptions::new().session(session());
    assert_eq!(refused(&agent, options().workflow("no-such")).await, FailureCode::UnknownWorkflow);
    assert_eq!(code(agent.begin_chat(Vec::new(), options()).await), FailureCode::InvalidRequest);
    let chunks = agent.begin_chat(fresh(), options()).await.unwrap().collect().await;
    assert_eq!(
        chunks.iter().map(StreamChunk::kind).collect::<Vec<_>>(),
        ["session", "interrupt", "checkpoint", "done"]
    );
    assert_eq!(refused(&agent, options()).await, FailureCode::Conflict);
    agent.shutdown(std::time::Duration::ZERO).await;
    assert_eq!(refused(&agent, options()).await, FailureCode::Conflict);
}

#[tokio::test]
async fn what_an_answer_leads_to_is_in_the_stream() {
    let agent = World::new().agent(&review()).await;
    let question = handle(&ask(&agent, &review()).await, "approval");
    for (choice, kinds) in [
        ("banana", vec!["session", "error", "interrupt", "done"]),
        ("approve", vec!["session", "message", "done"]),
        ("revise", vec!["session", "error", "done"]),
    ] {
        let mut meta = ResumeMeta::new(question.token.clone(), question.request_id.clone());
        meta.selected = vec![choice.to_owned()];
        let stream = agent.begin_chat(vec![ChatMessage::user(choice).with_resume(&meta)], ChatOptions::new()).await;
        let chunks = stream.unwrap().collect().await;
        assert_eq!(chunks.iter().map(StreamChunk::kind).collect::<Vec<_>>(), kinds);
    }
}

#[tokio::test]
async fn a_token_of_another_tenant_makes_an_ordinary_turn() {
    let agent = World::new().agent(&review()).await;
    let asked = agent.execute(&review(), json!({}), in_session().context("tenant", "a")).await.unwrap();
    let question = handle(&asked, "approval");
    let mut meta = ResumeMeta::new(question.token.clone(), question.request_id.clone());
    meta.selected = vec!["approve".to_owned()];
    let answer = vec![ChatMessage::user("approve").with_resume(&meta)];
    for (who, status) in [("b", "suspended"), ("a", "completed")] {
        let chunks = agent.stream_chat(answer.clone(), ChatOptions::new().within(tenant(who))).collect().await;
        let Some(StreamChunk::Done { data: Some(done) }) = chunks.last() else { panic!("{chunks:?}") };
        assert_eq!(done.status, status);
    }
}

#[tokio::test]
async fn a_handle_outside_the_scope_is_unknown_and_consumes_nothing() {
    let agent = World::new().agent(&review()).await;
    let asked = agent.execute(&review(), json!({}), in_session().context("tenant", "a")).await.unwrap();
    let question = handle(&asked, "approval");
    let answer = || Answer::with_handle(&question, ResumeResponse::select(["approve"]));
    assert_eq!(code(agent.respond(vec![answer().within(tenant("b"))]).await), FailureCode::NotFound);
    let elsewhere = Scope::session("session-2".parse().unwrap());
    assert_eq!(code(agent.respond(vec![answer().within(elsewhere)]).await), FailureCode::NotFound);
    let scoped = Answer::in_scope(question.request_id.clone(), tenant("a"), ResumeResponse::select(["approve"]));
    assert_eq!(code(agent.respond(vec![scoped.within(tenant("b"))]).await), FailureCode::NotFound);
    assert_eq!(agent.respond(vec![answer().within(tenant("a"))]).await.unwrap().status(), "completed");
}

#[tokio::test]
async fn one_handle_proves_the_right_to_every_question_of_its_run() {
    let agent = World::new().agent(&pair()).await;
    let (asked, other) = (ask(&agent, &pair()).await, ask(&agent, &pair()).await);
    let (a, b, foreign) = (handle(&asked, "a"), handle(&asked, "b"), handle(&other, "b"));
    let answer = |handle: &ResumeHandle, id: &RequestId| Answer::of_run(handle, id.clone(), ResumeResponse::text("x"));
    let batch = |handle: &ResumeHandle, ids: [&RequestId; 2]| ids.map(|id| answer(handle, id)).to_vec();

    let mixed = batch(&a, [&a.request_id, &foreign.request_id]);
    assert_eq!(code(agent.respond(mixed).await), FailureCode::NotFound);
    let mut forged = foreign.clone();
    forged.run_id = a.run_id.clone();
    assert_eq!(code(agent.respond(vec![answer(&forged, &a.request_id)]).await), FailureCode::InterruptMismatch);
    let outside = answer(&a, &b.request_id).within(tenant("b"));
    assert_eq!(code(agent.respond(vec![outside]).await), FailureCode::NotFound);
    assert_eq!(open(&asked).len(), 2);

    let done = agent.respond(batch(&a, [&a.request_id, &b.request_id])).await.unwrap();
    assert_eq!(data(done), json!({"a": "x", "b": "x"}));
}

#[tokio::test]
async fn the_handle_of_an_answered_question_still_proves_the_right_to_the_run() {
    let agent = World::new().agent(&pair()).await;
    let asked = ask(&agent, &pair()).await;
    let (a, b) = (handle(&asked, "a"), handle(&asked, "b"));
    agent.resume(&a, ResumeResponse::text("one")).await.unwrap();
    let answer = Answer::of_run(&a, b.request_id.clone(), ResumeResponse::text("two"));
    assert_eq!(data(agent.respond(vec![answer]).await.unwrap()), json!({"a": "one", "b": "two"}));
}
