//! What an application hears of chat turns.

use std::{
    future::pending,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use kortyx_contracts::Text;
use kortyx_orchestrator::{Agent, AgentBuilder, ChatOptions, ResponseFinalized, TurnAccepted};
use kortyx_protocol::{ChatMessage, FailureCode, InterruptChunk, ResumeMeta, StreamChunk};
use kortyx_runtime::{FinalResponse, NodeContext, NodeError, NodeOutput, Workflow};
use kortyx_store::RunStatus;
use serde_json::json;

use crate::world::{Gate, World, review, session, settle, slow};
use kortyx_testkit::{Faulty, Op, When};

/// What the hooks heard, and in which order.
#[derive(Clone, Default)]
struct Heard {
    accepted: Arc<Mutex<Vec<TurnAccepted>>>,
    finalized: Arc<Mutex<Vec<ResponseFinalized>>>,
}

impl Heard {
    fn by(&self, builder: AgentBuilder) -> AgentBuilder {
        let (accepted, finalized) = (self.accepted.clone(), self.finalized.clone());
        let builder = builder.on_turn_accepted(move |turn| {
            accepted.lock().unwrap().push(turn);
            async { Ok::<_, io::Error>(()) }
        });
        builder.on_response_finalized(move |response| {
            finalized.lock().unwrap().push(response);
            async { Ok::<_, io::Error>(()) }
        })
    }

    fn counts(&self) -> (usize, usize) {
        (self.accepted.lock().unwrap().len(), self.finalized.lock().unwrap().len())
    }

    fn last_accepted(&self) -> TurnAccepted {
        self.accepted.lock().unwrap().last().unwrap().clone()
    }

    fn last_finalized(&self) -> ResponseFinalized {
        self.finalized.lock().unwrap().last().unwrap().clone()
    }
}

fn options(id: &str) -> ChatOptions {
    ChatOptions::new().session(session()).client_turn_id(id).actor("ann")
}

async fn play(agent: &Agent, message: ChatMessage, id: &str) -> Vec<StreamChunk> {
    agent.stream_chat(vec![ChatMessage::user("Earlier"), message], options(id)).collect().await
}

fn kinds(chunks: &[StreamChunk]) -> Vec<&'static str> {
    chunks.iter().map(StreamChunk::kind).collect()
}

fn asked(chunks: &[StreamChunk]) -> &InterruptChunk {
    let asked = chunks.iter().find_map(|chunk| match chunk {
        StreamChunk::Interrupt(question) => Some(question),
        _ => None,
    });
    asked.unwrap_or_else(|| panic!("no question: {chunks:?}"))
}

fn select(question: &InterruptChunk, id: &str) -> ChatMessage {
    let mut meta = ResumeMeta::new(question.resume_token.clone(), question.request_id.clone());
    meta.selected = vec![id.to_owned()];
    ChatMessage::user(id).with_resume(&meta)
}

#[tokio::test]
async fn each_accepted_turn_is_heard_once_at_its_beginning_and_at_its_end() {
    let (world, heard) = (World::new(), Heard::default());
    let agent = heard.by(world.builder().workflow(&review())).build().await.unwrap();
    let chunks = play(&agent, ChatMessage::user("Please review"), "t1").await;
    assert_eq!(heard.counts(), (1, 1));
    let (turn, response) = (heard.last_accepted(), heard.last_finalized());
    assert_eq!((turn.message.content.as_str(), turn.is_answer), ("Please review", false));
    assert_eq!((turn.client_turn_id.as_deref(), turn.actor.as_deref()), (Some("t1"), Some("ann")));
    assert_eq!((&turn.run_id, &turn.session_id), (&response.run_id, &response.session_id));
    assert_eq!((response.status, response.text.as_str()), (RunStatus::Suspended, ""));
    let question = asked(&chunks);
    assert_eq!(response.interrupts.iter().map(|asked| &asked.id).collect::<Vec<_>>(), [&question.request_id]);

    play(&agent, select(question, "banana"), "t2").await;
    assert_eq!(heard.counts(), (1, 1), "refused");

    play(&agent, select(question, "approve"), "t3").await;
    assert_eq!(heard.counts(), (2, 2));
    let (turn, response) = (heard.last_accepted(), heard.last_finalized());
    assert!(turn.is_answer && response.interrupts.is_empty() && response.failure.is_none());
    assert_eq!(turn.client_turn_id.as_deref(), Some("t3"));
    let text = format!("{:?}", turn.message);
    assert!(text.contains("approve") && !text.contains(question.resume_token.expose()), "{text}");
    assert_eq!((response.status, response.text.as_str()), (RunStatus::Completed, "You chose approve."));
    assert_eq!(response.data, json!({"decision": "approve"}));

    play(&agent, select(question, "approve"), "t4").await;
    play(&agent, select(question, "revise"), "t5").await;
    assert_eq!(heard.counts(), (2, 2), "a repeat and a conflict are no turns");
}

#[tokio::test]
async fn a_response_is_heard_with_all_that_it_said_before_its_end_and_nothing_later() {
    let node = |ctx: NodeContext| async move {
        ctx.text("Hel").await;
        ctx.text("lo. ").await;
        let report = ctx.structured("report", "demo.report");
        report.set("title", "One").await?;
        report.append("rows", &[1, 2]).await?;
        ctx.complete_response(FinalResponse::new().message("Bye.").data("order", &7)).await?;
        ctx.message("Later.").await;
        report.set("title", "Two").await?;
        ctx.interrupt("note", Text::new("Note?")).await?;
        Ok(NodeOutput::new())
    };
    let (world, heard) = (World::new(), Heard::default());
    let workflow = Workflow::builder("flow").node("node", node).build().unwrap();
    let agent = heard.by(world.builder().workflow(&workflow)).build().await.unwrap();
    play(&agent, ChatMessage::user("Hi"), "t1").await;
    settle(&agent).await;
    assert_eq!(heard.counts(), (1, 1));
    let response = heard.last_finalized();
    assert_eq!((response.status, response.text.as_str()), (RunStatus::Running, "Hello. Bye."));
    assert_eq!(response.data, json!({"order": 7}));
    let [report] = &*response.structured else { panic!("{:?}", response.structured) };
    assert_eq!(report.value(), Some(&json!({"title": "One", "rows": [1, 2]})));
    assert!(response.interrupts.is_empty() && !response.is_truncated);
}

#[tokio::test]
async fn the_beginning_is_heard_before_any_output_and_the_end_before_done() {
    let world = World::new();
    let log = Arc::new(Mutex::new(Vec::new()));
    let (said, begun, ended) = (log.clone(), log.clone(), log.clone());
    let node = move |ctx: NodeContext| {
        let said = said.clone();
        async move {
            said.lock().unwrap().push("node");
            ctx.message("Hi.").await;
            Ok(NodeOutput::new())
        }
    };
    let builder = world.builder().workflow(&Workflow::builder("flow").node("node", node).build().unwrap());
    let builder = builder.on_turn_accepted(move |_| {
        let begun = begun.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            begun.lock().unwrap().push("accepted");
            Ok::<_, io::Error>(())
        }
    });
    let builder = builder.on_response_finalized(move |_| {
        let ended = ended.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            ended.lock().unwrap().push("finalized");
            Ok::<_, io::Error>(())
        }
    });
    let agent = builder.build().await.unwrap();
    let mut stream = agent.stream_chat(vec![ChatMessage::user("Hi")], options("t1"));
    while let Some(chunk) = stream.next().await {
        log.lock().unwrap().push(chunk.kind());
    }
    let log: Vec<_> = log.lock().unwrap().clone();
    assert_eq!(log, ["session", "accepted", "node", "message", "checkpoint", "finalized", "done"]);
}

#[tokio::test(start_paused = true)]
async fn hooks_that_fail_panic_or_never_end_change_nothing() {
    async fn misbehave(how: &str) -> Result<(), NodeError> {
        match how {
            "fail" => Err(NodeError::message("the transcript is full")),
            "panic" => panic!("a hook that panics"),
            _ => pending().await,
        }
    }
    for how in ["fail", "panic", "hang"] {
        let world = World::new();
        let builder = world.builder().workflow(&review()).hook_timeout(Duration::from_secs(2));
        let builder = builder.on_turn_accepted(move |_| async move { misbehave(how).await.map_err(|e| e.to_string()) });
        let builder =
            builder.on_response_finalized(move |_| async move { misbehave(how).await.map_err(|e| e.to_string()) });
        let agent = builder.build().await.unwrap();
        let began = tokio::time::Instant::now();
        let chunks = play(&agent, ChatMessage::user("Hi"), "t1").await;
        assert_eq!(kinds(&chunks), ["session", "interrupt", "checkpoint", "done"], "{how}");
        let chunks = play(&agent, select(asked(&chunks), "approve"), "t2").await;
        assert_eq!(kinds(&chunks), ["session", "message", "checkpoint", "done"], "{how}");
        let took = began.elapsed();
        assert!(if how == "hang" { took >= Duration::from_secs(8) } else { took < Duration::from_secs(1) }, "{took:?}");
        assert!(took < Duration::from_secs(9), "{took:?}");
    }
}

#[tokio::test]
async fn a_hook_that_panics_before_its_future_changes_nothing() {
    let world = World::new();
    #[expect(unreachable_code, reason = "it panics")]
    let builder = world.builder().workflow(&review()).on_turn_accepted(|_| {
        panic!("at once");
        async { Ok::<_, io::Error>(()) }
    });
    let agent = builder.build().await.unwrap();
    let chunks = play(&agent, ChatMessage::user("Hi"), "t1").await;
    assert_eq!(kinds(&chunks), ["session", "interrupt", "checkpoint", "done"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_turn_is_heard_though_its_client_has_gone() {
    let (world, heard, gate) = (World::new(), Heard::default(), Gate::new());
    let agent = heard.by(world.builder().workflow(&slow(&gate))).build().await.unwrap();
    let stream = agent.stream_chat(vec![ChatMessage::user("Hi")], options("t1"));
    gate.begun().await;
    drop(stream);
    tokio::time::sleep(Duration::from_secs(10)).await;
    settle(&agent).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((heard.counts(), heard.last_finalized().status), ((1, 1), RunStatus::Cancelled));
}

#[tokio::test]
async fn a_response_that_is_cut_short_is_heard_with_its_failure() {
    let (world, heard) = (World::new(), Heard::default());
    let store = Faulty::over(world.store.clone());
    let builder = world.builder().shared_store(store.clone()).workflow(&review());
    let agent = heard.by(builder).build().await.unwrap();
    store.fail(Op::Suspend, When::Before, 1);
    let chunks = play(&agent, ChatMessage::user("Hi"), "t1").await;
    assert_eq!(kinds(&chunks), ["session", "error", "done"]);
    let response = heard.last_finalized();
    assert_eq!((heard.counts(), response.status), ((1, 1), RunStatus::Running));
    assert_eq!(response.failure.unwrap().code, FailureCode::PersistenceError);
}
