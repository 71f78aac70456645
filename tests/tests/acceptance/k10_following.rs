//! K10: whoever lost a connection goes on where it was, in any process, and misses nothing.

use kortyx::{
    Agent, ExecuteOptions, NodeContext, NodeError, NodeOutput, Text, Workflow,
    protocol::{ExecutionResult, Failure, FailureCode, ResumeResponse, RunId, SessionId, StreamChunk},
    store::{Scalar, Scope},
};
use kortyx_tests::{World, one_node};
use serde_json::json;

fn session() -> SessionId {
    SessionId::new("session-followed").unwrap()
}

fn of_tenant(tenant: &str) -> Scope {
    Scope::default().with("tenant", Scalar::Text(tenant.into()))
}

/// Counts to three, asks, does something, and counts on to six.
fn counting() -> Workflow {
    one_node("counting", |ctx: NodeContext| async move {
        for number in 1..=3 {
            ctx.text(number.to_string()).await;
        }
        let name = ctx.interrupt("name", Text::new("Name?")).await?;
        ctx.text("4").await;
        ctx.step("work", || async { Ok::<_, NodeError>(()) }).await?;
        ctx.text("5").await;
        ctx.message(format!("6, {name}")).await;
        Ok(NodeOutput::new().data("name", &name))
    })
}

async fn asked(agent: &Agent) -> ExecutionResult {
    let options = ExecuteOptions::new().session(session()).context("tenant", "acme");
    agent.execute(&counting(), json!({}), options).await.unwrap()
}

/// What a stream gives before it has this many numbered chunks, or ends: those, and the kinds of the others.
async fn heard(
    agent: &Agent,
    run_id: &RunId,
    after: u64,
    until: Option<u64>,
) -> (Vec<(u64, String)>, Vec<&'static str>) {
    let mut stream = agent.follow(run_id, &of_tenant("acme"), after).await.unwrap();
    let (mut numbered, mut others) = (Vec::new(), Vec::new());
    while let Some(piece) = stream.next().await.unwrap() {
        let chunk = piece.chunk().unwrap();
        match (piece.number, chunk) {
            (Some(number), StreamChunk::TextDelta(text)) => numbered.push((number, text.delta)),
            (Some(number), StreamChunk::Message { content, .. }) => numbered.push((number, content)),
            (Some(number), other) => panic!("chunk {number} is {other:?}"),
            (None, chunk) => others.push(chunk.kind()),
        }
        if until.is_some_and(|until| piece.number == Some(until)) {
            break;
        }
    }
    (numbered, others)
}

fn counted(from: u64) -> Vec<(u64, String)> {
    let all = ["1", "2", "3", "4", "5", "6, Ann"];
    (1..).zip(all.map(str::to_owned)).filter(|(number, _)| *number >= from).collect()
}

#[tokio::test]
async fn b135_a_follower_that_was_cut_off_anywhere_misses_nothing_in_any_process() {
    let world = World::new();
    let (asking, answering) = (world.agent(&counting()).await, world.agent(&counting()).await);
    let asked = asked(&asking).await;
    let run_id = asked.run_id();
    for agent in [&asking, &answering] {
        assert_eq!(heard(agent, run_id, 0, Some(3)).await, (counted(1)[..3].to_vec(), vec!["session"]));
    }
    let watching = tokio::spawn({
        let (agent, run_id) = (asking.clone(), run_id.clone());
        async move { heard(&agent, &run_id, 1, None).await }
    });

    let question = &asked.interrupts()[0].resume;
    answering.resume(question, ResumeResponse::text("Ann")).await.unwrap();

    for after in 0..=6 {
        let late = heard(&asking, run_id, after, None).await;
        assert_eq!(late, (counted(after + 1), vec!["session", "done"]), "after {after}");
    }
    let (numbered, others) = watching.await.unwrap();
    assert_eq!(numbered, counted(2));
    // It may have looked before the question was answered, or not.
    assert!(others == ["session", "interrupt", "done"] || others == ["session", "done"], "{others:?}");
}

#[tokio::test]
async fn b113_what_a_run_says_is_not_told_to_another_tenant() {
    let world = World::new();
    let agent = world.agent(&counting()).await;
    let asked = asked(&agent).await;
    let elsewhere = Scope::session(SessionId::new("session-of-another").unwrap());
    for scope in [of_tenant("other"), elsewhere, of_tenant("acme").with("team", Scalar::Int(1))] {
        let refused = Failure::from(agent.follow(asked.run_id(), &scope, 0).await.unwrap_err());
        let unknown = Failure::from(agent.follow(&RunId::new("run-none").unwrap(), &scope, 0).await.unwrap_err());
        assert_eq!((refused.code, &refused.message), (FailureCode::NotFound, &unknown.message));
    }
}
