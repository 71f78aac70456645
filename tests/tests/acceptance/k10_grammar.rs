//! K10: every stream has the same grammar, whatever becomes of its turn.

use std::time::Duration;

use kortyx::{
    Agent, AskExt, ChatOptions, NodeError, NodeOutput, Text, WaitingPolicy, Workflow,
    protocol::{ChatMessage, InterruptChunk, ResumeMeta, ResumeResponse, ResumeToken, SessionId, StreamChunk},
    store::{CancelTarget, Scope},
};
use kortyx_tests::{World, input_of, kinds, one_node, resume_message};
use serde_json::Value;

/// Where in a stream a chunk may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Session,
    Turn,
    Error,
    Interrupt,
    Checkpoint,
    Cancelled,
    Done,
}

/// session · chunks of the turn* · error? · interrupt* · (checkpoint | cancelled)? · done.
fn check_grammar(path: &str, chunks: &[StreamChunk]) {
    let parts: Vec<_> = chunks
        .iter()
        .map(|chunk| match chunk {
            StreamChunk::Session { .. } => Part::Session,
            StreamChunk::Error { .. } => Part::Error,
            StreamChunk::Interrupt(_) => Part::Interrupt,
            StreamChunk::Checkpoint { .. } => Part::Checkpoint,
            StreamChunk::Cancelled { .. } => Part::Cancelled,
            StreamChunk::Done { .. } => Part::Done,
            _ => Part::Turn,
        })
        .collect();
    let kinds = kinds(chunks);
    let count = |part| parts.iter().filter(|one| **one == part).count();
    assert!(parts.is_sorted(), "{path}: {kinds:?}");
    assert_eq!((count(Part::Session), count(Part::Done)), (1, 1), "{path}: {kinds:?}");
    assert!([Part::Error, Part::Checkpoint, Part::Cancelled].map(count).iter().all(|count| *count <= 1), "{path}");
    assert!(count(Part::Error) == 0 || count(Part::Checkpoint) == 0, "a failure leaves no checkpoint: {path}");
    let asked = input_of(chunks);
    let mut ids: Vec<_> = asked.iter().map(|chunk| chunk.request_id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), asked.len(), "each question once: {path}");
    if let Some(StreamChunk::Done { data: Some(done) }) = chunks.last() {
        assert_eq!(done.awaiting_human_input, done.status == "suspended", "{path}");
        assert!(!done.awaiting_human_input || !asked.is_empty(), "{path}");
        let is_good = matches!(done.status.as_str(), "suspended" | "completed");
        assert_eq!(count(Part::Checkpoint), usize::from(is_good), "what is kept is told: {path}");
    }
}

/// Does what its message says.
fn obedient() -> Workflow {
    one_node("obedient", |ctx| async move {
        let input: Value = ctx.input()?;
        ctx.status("Working").await;
        ctx.text("Hel").await;
        ctx.text("lo.").await;
        match input["input"].as_str().unwrap_or_default() {
            "ask" => {
                let ask = Text::new("Well?").min_length(2).expires_in(Duration::from_mins(1));
                let answer = ctx.interrupt("ask", ask).await?;
                ctx.message(format!("You said {answer}.")).await;
            }
            "ask two" => {
                let (a, b) = tokio::join!(ctx.interrupt("a", Text::new("A?")), ctx.interrupt("b", Text::new("B?")));
                ctx.message(format!("{} and {}", a?, b?)).await;
            }
            "fail" => return Err(NodeError::public("no", "it does not work")),
            "panic" => panic!("a node that panics"),
            _ => {}
        }
        Ok(NodeOutput::new().ui("Done."))
    })
}

struct Client {
    agent: Agent,
    session: SessionId,
}

impl Client {
    /// Plays a turn, checks its stream, and says what kinds of chunks it had besides text and what the grammar says.
    async fn turn(&self, path: &str, message: ChatMessage) -> (Vec<&'static str>, Vec<InterruptChunk>) {
        let options = ChatOptions::new().session(self.session.clone());
        let chunks = self.agent.stream_chat(vec![message], options).collect().await;
        check_grammar(path, &chunks);
        let mut kinds = kinds(&chunks);
        kinds.retain(|kind| !matches!(*kind, "status" | "text-delta" | "session" | "checkpoint" | "done"));
        (kinds, input_of(&chunks))
    }

    async fn says(&self, text: &str) -> (Vec<&'static str>, Vec<InterruptChunk>) {
        self.turn(text, ChatMessage::user(text)).await
    }

    async fn answers(&self, path: &str, chunk: &InterruptChunk, response: ResumeResponse) -> Vec<&'static str> {
        self.turn(path, resume_message(chunk, &response)).await.0
    }
}

async fn client(world: &World, policy: WaitingPolicy) -> Client {
    let agent = world.builder().await.workflow(&obedient()).on_waiting(policy).build().await.unwrap();
    Client { agent, session: SessionId::new("session-grammar").unwrap() }
}

#[tokio::test]
async fn b138_every_path_of_a_fresh_turn_keeps_the_grammar() {
    let world = World::new();
    let client = client(&world, WaitingPolicy::StartNew).await;
    assert_eq!(client.says("nothing").await.0, ["message"]);
    assert_eq!(client.says("fail").await.0, ["error"]);
    assert_eq!(client.says("panic").await.0, ["error"]);
    assert_eq!(client.says("ask").await.0, ["interrupt"]);
    assert_eq!(client.says("ask two").await.0, ["interrupt", "interrupt"]);
    let refusing = Client { agent: refusing(&world).await, session: client.session.clone() };
    assert_eq!(refusing.says("ask").await.0, ["error"]);
    let unknown = ChatOptions::new().workflow("nowhere");
    let chunks = client.agent.stream_chat(vec![ChatMessage::user("x")], unknown).collect().await;
    check_grammar("unknown workflow", &chunks);
    let chunks = client.agent.stream_chat(Vec::new(), ChatOptions::new()).collect().await;
    check_grammar("no message", &chunks);
    client.agent.shutdown(Duration::from_secs(10)).await;
    assert_eq!(client.says("too late").await.0, ["error"]);
}

async fn refusing(world: &World) -> Agent {
    world.builder().await.workflow(&obedient()).on_waiting(WaitingPolicy::Refuse).build().await.unwrap()
}

#[tokio::test]
async fn b138_every_path_of_an_answer_keeps_the_grammar() {
    let world = World::new();
    let client = client(&world, WaitingPolicy::StartNew).await;
    let (_, asked) = client.says("ask").await;
    let (asked, yes) = (&asked[0], ResumeResponse::text("yes"));
    assert_eq!(client.answers("invalid", asked, ResumeResponse::text("x")).await, ["error", "interrupt"]);
    assert_eq!(client.answers("resumed", asked, yes.clone()).await, ["message", "message"]);
    assert_eq!(client.answers("repeated", asked, yes.clone()).await, ["message"], "what it said, as one");
    assert_eq!(client.answers("conflict", asked, ResumeResponse::text("no")).await, ["error"]);

    let (_, two) = client.says("ask two").await;
    assert_eq!(client.answers("one of two", &two[0], yes.clone()).await, ["interrupt"]);
    assert_eq!(client.answers("re-opened", &two[0], yes.clone()).await, ["interrupt"]);
    assert_eq!(client.answers("two of two", &two[1], yes.clone()).await, ["message", "message"]);

    let (_, asked) = client.says("ask").await;
    assert_eq!(client.answers("cancelled", &asked[0], ResumeResponse::Cancel).await, ["cancelled"]);
    assert_eq!(client.answers("cancelled again", &asked[0], yes.clone()).await, ["error"]);

    let (_, asked) = client.says("ask").await;
    let elsewhere = Client { agent: client.agent.clone(), session: SessionId::new("session-other").unwrap() };
    assert_eq!(elsewhere.answers("mismatch", &asked[0], yes.clone()).await, ["error"]);
    world.advance(Duration::from_mins(1));
    assert_eq!(client.answers("timed out", &asked[0], yes.clone()).await, ["message"], "an ordinary turn");
    client.agent.worker().pass().await.unwrap();
    assert_eq!(client.answers("expired", &asked[0], yes).await, ["message"]);
    let never = ResumeMeta::new(ResumeToken::mint([1; 16], [2; 32]), asked[0].request_id.clone());
    let (unknown, _) = client.turn("unknown", ChatMessage::user("x").with_resume(&never)).await;
    assert_eq!(unknown, ["message"]);
}

#[tokio::test]
async fn b138_a_run_that_was_cancelled_from_outside_keeps_the_grammar() {
    let world = World::new();
    let client = client(&world, WaitingPolicy::Supersede).await;
    let (_, asked) = client.says("ask").await;
    let session = client.session.clone();
    client.agent.cancel(CancelTarget::Session(session.clone()), Scope::session(session), None).await.unwrap();
    assert_eq!(client.answers("cancelled", &asked[0], ResumeResponse::text("yes")).await, ["error"]);
    let (_, first) = client.says("ask").await;
    assert_eq!(client.says("nothing").await.0, ["message"]);
    assert_eq!(client.answers("superseded", &first[0], ResumeResponse::text("yes")).await, ["error"]);
}
