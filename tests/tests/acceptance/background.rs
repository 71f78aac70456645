//! What tests of work after a response share: a workflow, its turns, and what it asks later.

use std::sync::Arc;

use kortyx::{
    Agent, ChatOptions, FinalResponse, Interrupt, NodeOutput, Text, Workflow,
    protocol::{ChatMessage, DoneData, RunId, SessionId, StreamChunk},
    store::{InterruptQuery, RunStatus, Scope},
};
use kortyx_tests::{Counter, eventually, one_node, with};
use serde_json::json;
use tokio::{join, sync::Semaphore};

/// Work that waits to be let go, and a tally of it.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) done: Counter,
}

impl Work {
    pub(crate) fn held() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), done: Counter::new() }
    }

    pub(crate) fn free() -> Self {
        let work = Self::held();
        work.gate.add_permits(1);
        work
    }

    /// Completes its response, works, and asks two questions at once.
    pub(crate) fn workflow(&self) -> Workflow {
        let node = with(self.clone(), |ctx, work| async move {
            ctx.message("We are on it.").await;
            ctx.complete_response(FinalResponse::new().message("Thanks.").data("order", &7)).await?;
            ctx.message("For nobody.").await;
            ctx.step("work", || async { work.gate.acquire().await.map(|_| _ = work.done.hit()) }).await?;
            let (a, b) = join!(ctx.interrupt("a", Text::new("A?")), ctx.interrupt("b", Text::new("B?")));
            Ok(NodeOutput::new().data("answers", &[a?, b?]))
        });
        one_node("background", node)
    }
}

pub(crate) fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

/// Plays a turn of tenant `a`.
pub(crate) async fn turn(agent: &Agent, session_id: &SessionId, message: ChatMessage) -> Vec<StreamChunk> {
    let options = ChatOptions::new().session(session_id.clone()).context("tenant", "a");
    agent.stream_chat(vec![message], options).collect().await
}

/// Begins a run of tenant `a`, whose response is complete.
pub(crate) async fn responded(agent: &Agent, session_id: &SessionId) -> RunId {
    let chunks = turn(agent, session_id, ChatMessage::user("go")).await;
    let done = done(&chunks);
    assert_eq!((done.status.as_str(), &done.data), ("running", &json!({"order": 7})));
    done.run_id
}

/// The kinds of a turn's chunks, but for the checkpoint, which is none of the response's business.
pub(crate) fn shown(chunks: &[StreamChunk]) -> Vec<&'static str> {
    chunks.iter().map(StreamChunk::kind).filter(|kind| *kind != "checkpoint").collect()
}

pub(crate) fn done(chunks: &[StreamChunk]) -> DoneData {
    let Some(StreamChunk::Done { data: Some(done) }) = chunks.last() else { panic!("{chunks:?}") };
    (**done).clone()
}

/// What runs of a session asked after their responses.
pub(crate) async fn later(agent: &Agent, session_id: &SessionId) -> Vec<Interrupt> {
    let scope = Scope::session(session_id.clone());
    let query = InterruptQuery { scope, after_response_completed: Some(true), limit: 50, ..Default::default() };
    agent.list_interrupts(query).await.unwrap().interrupts
}

/// Waits until a run has asked its two questions.
pub(crate) async fn asked(agent: &Agent, session_id: &SessionId) -> [Interrupt; 2] {
    eventually("it asks", || async { later(agent, session_id).await.len() == 2 }).await;
    later(agent, session_id).await.try_into().unwrap()
}

pub(crate) async fn status(agent: &Agent, session_id: &SessionId, run_id: &RunId) -> RunStatus {
    agent.get_run(run_id, &Scope::session(session_id.clone())).await.unwrap().unwrap().status
}
