//! Responses that are complete while their run goes on.

use std::time::Duration;

use kortyx_contracts::{Choice, Text};
use kortyx_orchestrator::{Agent, Answer, ChatOptions, Interrupt, OnDisconnect, WaitingPolicy};
use kortyx_protocol::{ChatMessage, ExecutionResult, InterruptChunk, ResumeMeta, ResumeResponse, StreamChunk};
use kortyx_runtime::{FinalResponse, NodeContext, NodeOutput, Workflow};
use kortyx_store::InterruptQuery;
use serde_json::{Value, json};

use crate::{
    talk::{self, counting, say},
    world::{Gate, World, data, handle, in_session, open, review, scope, session, settle},
};
use kortyx_testkit::{Faulty, Op, When};

/// Answers at once, works, asks the staff, says something that nobody hears, and asks again.
fn order(gate: &Gate) -> Workflow {
    let gate = gate.clone();
    let node = move |ctx: NodeContext| {
        let gate = gate.clone();
        async move {
            ctx.message("Welcome.").await;
            ctx.complete_response(FinalResponse::new().message("Thanks.").data("order", &7)).await?;
            ctx.message("Not for the client.").await;
            let count = ctx.step("work", || async move { gate.pass().await }).await?;
            let stock = Choice::new("In stock?").option("yes", "Yes").option("no", "No");
            let stock = ctx.interrupt("stock", stock).await?;
            ctx.message("Nor this.").await;
            let note = ctx.interrupt("note", Text::new("Note?")).await?;
            Ok(NodeOutput::new().data("stock", &stock).data("note", &note).data("count", &count))
        }
    };
    Workflow::builder("order").node("take", node).build().unwrap()
}

fn said(chunks: &[StreamChunk]) -> Vec<String> {
    let said = chunks.iter().map(|chunk| match chunk {
        StreamChunk::Message { content, .. } => content.clone(),
        other => other.kind().to_owned(),
    });
    said.collect()
}

/// The status, whether a person is waited for, and the data of a turn's `done`.
fn done(chunks: &[StreamChunk]) -> (String, bool, Value) {
    let Some(StreamChunk::Done { data: Some(done) }) = chunks.last() else { panic!("{chunks:?}") };
    (done.status.clone(), done.awaiting_human_input, done.data.clone())
}

async fn turn(agent: &Agent) -> Vec<StreamChunk> {
    agent.stream_chat(vec![ChatMessage::user("One, please")], ChatOptions::new().session(session())).collect().await
}

fn reply(question: &InterruptChunk, text: &str) -> Vec<ChatMessage> {
    let mut meta = ResumeMeta::new(question.resume_token.clone(), question.request_id.clone());
    meta.text = Some(text.to_owned());
    vec![ChatMessage::user(text).with_resume(&meta)]
}

async fn after_response(agent: &Agent, wanted: bool) -> Vec<Interrupt> {
    let query = InterruptQuery { scope: scope(), after_response_completed: Some(wanted), ..Default::default() };
    agent.list_interrupts(query).await.unwrap().interrupts
}

/// Waits for the only question that is open after the response.
async fn asked_later(agent: &Agent) -> Interrupt {
    settle(agent).await;
    assert!(after_response(agent, false).await.is_empty());
    let mut open = after_response(agent, true).await;
    assert_eq!(open.len(), 1, "{open:?}");
    open.remove(0)
}

async fn answer(agent: &Agent, question: &Interrupt, response: ResumeResponse) -> ExecutionResult {
    agent.answer(&question.id, scope(), response, Some("ann".to_owned())).await.unwrap()
}

#[tokio::test]
async fn a_response_ends_before_the_work_and_later_questions_are_listed_and_answered_by_id() {
    let (world, gate) = (World::new(), Gate::new());
    let agent = world.agent(&order(&gate)).await;
    let chunks = turn(&agent).await;
    assert_eq!(said(&chunks), ["session", "Welcome.", "Thanks.", "checkpoint", "done"]);
    assert_eq!(done(&chunks), ("running".to_owned(), false, json!({"order": 7})));
    assert_eq!((agent.driven_runs(), gate.passed()), (1, 0), "it works on");
    gate.open();

    let stock = asked_later(&agent).await;
    assert!(stock.after_response_completed);
    assert_eq!(stock.input.id.as_deref(), Some("stock"));
    let result = answer(&agent, &stock, ResumeResponse::select(["yes"])).await;
    assert_eq!(open(&result)[0].input.id.as_deref(), Some("note"));
    let note = asked_later(&agent).await;
    let result = answer(&agent, &note, ResumeResponse::text("Today")).await;
    assert_eq!(data(result), json!({"stock": "yes", "note": "Today", "count": 1}));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_after_its_response_cancels_nothing() {
    for on_disconnect in [OnDisconnect::Cancel, OnDisconnect::GoOn] {
        let (world, gate) = (World::new(), Gate::new());
        let builder = world.builder().workflow(&order(&gate)).on_disconnect(on_disconnect);
        let agent = builder.build().await.unwrap();
        let mut stream = agent.stream_chat(vec![ChatMessage::user("One")], ChatOptions::new().session(session()));
        while stream.next().await.is_some_and(|chunk| chunk.kind() != "done") {}
        drop(stream);
        gate.begun().await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        gate.open();
        assert_eq!(asked_later(&agent).await.input.id.as_deref(), Some("stock"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_holds_up_neither_the_response_nor_the_work() {
    let (world, gate) = (World::new(), Gate::new());
    let agent = world.builder().workflow(&order(&gate)).chat_buffer(2).build().await.unwrap();
    let stream = agent.stream_chat(vec![ChatMessage::user("One")], ChatOptions::new().session(session()));
    gate.begun().await;
    gate.open();
    assert_eq!(asked_later(&agent).await.input.id.as_deref(), Some("stock"));
    assert_eq!(said(&stream.collect().await), ["session", "Welcome.", "Thanks.", "checkpoint", "done"]);
}

#[tokio::test]
async fn questions_open_at_the_end_of_the_response_are_part_of_it() {
    let (world, gate) = (World::new(), Gate::new());
    let held = gate.clone();
    let fork = |_: NodeContext| async move { Ok(NodeOutput::new()) };
    let ask = |ctx: NodeContext| async move {
        Ok(NodeOutput::new().data("name", &ctx.interrupt("name", Text::new("Name?")).await?))
    };
    let work = move |ctx: NodeContext| {
        let gate = held.clone();
        async move {
            ctx.complete_response("Thanks.").await?;
            ctx.step("work", || async move { gate.pass().await }).await?;
            Ok(NodeOutput::new().data("note", &ctx.interrupt("note", Text::new("Note?")).await?))
        }
    };
    let flow = Workflow::builder("flow").node("fork", fork).node("ask", ask).node("work", work);
    let flow = flow.edge("fork", "ask").edge("fork", "work").build().unwrap();
    let agent = world.agent(&flow).await;
    let chunks = turn(&agent).await;
    assert_eq!(said(&chunks), ["session", "Thanks.", "interrupt", "checkpoint", "done"]);
    assert_eq!(done(&chunks), ("running".to_owned(), true, json!({})));
    let StreamChunk::Interrupt(name) = &chunks[2] else { panic!("{chunks:?}") };
    assert_eq!(name.id.as_deref(), Some("name"));
    gate.open();
    settle(&agent).await;
    assert_eq!(after_response(&agent, true).await.len(), 1);

    // The turn that answers it belongs to the same run, whose response is complete: it says where the run stands.
    let chunks = agent.stream_chat(reply(name, "Ann"), ChatOptions::new().session(session())).collect().await;
    assert_eq!(said(&chunks), ["session", "interrupt", "done"]);
    // The same answer once more: what the run asked after its response is none of its business.
    let chunks = agent.stream_chat(reply(name, "Ann"), ChatOptions::new().session(session())).collect().await;
    assert_eq!((said(&chunks), done(&chunks).1), (vec!["session".to_owned(), "done".to_owned()], false));
}

#[tokio::test]
async fn a_caller_from_code_gets_the_response_and_the_run_goes_on() {
    let (world, gate) = (World::new(), Gate::new());
    let agent = world.agent(&order(&gate)).await;
    let result = agent.execute(&order(&gate), json!({}), in_session()).await.unwrap();
    assert_eq!(data(result), json!({"order": 7}));
    gate.open();
    assert_eq!(asked_later(&agent).await.input.id.as_deref(), Some("stock"));
}

/// Asks, completes the response once it is answered, and works on.
fn confirm(gate: &Gate) -> Workflow {
    let gate = gate.clone();
    let node = move |ctx: NodeContext| {
        let gate = gate.clone();
        async move {
            let name = ctx.interrupt("name", Text::new("Name?")).await?;
            ctx.message(format!("Hello, {name}.")).await;
            ctx.complete_response(FinalResponse::new().message("Bye.").data("name", &name)).await?;
            ctx.step("work", || async move { gate.pass().await }).await?;
            Ok(NodeOutput::new().data("done", &true))
        }
    };
    Workflow::builder("confirm").node("ask", node).build().unwrap()
}

#[tokio::test]
async fn a_turn_that_answers_may_complete_the_response_and_a_repeat_gets_it_again() {
    let (world, gate) = (World::new(), Gate::new());
    let agent = world.agent(&confirm(&gate)).await;
    let chunks = turn(&agent).await;
    let StreamChunk::Interrupt(name) = &chunks[1] else { panic!("{chunks:?}") };
    let play = || agent.stream_chat(reply(name, "Ann"), ChatOptions::new().session(session())).collect();
    let chunks = play().await;
    assert_eq!(said(&chunks), ["session", "Hello, Ann.", "Bye.", "checkpoint", "done"]);
    assert_eq!(done(&chunks), ("running".to_owned(), false, json!({"name": "Ann"})));

    let chunks = play().await;
    assert_eq!(said(&chunks), ["session", "Hello, Ann.Bye.", "checkpoint", "done"], "while it works");
    assert_eq!(done(&chunks), ("running".to_owned(), false, json!({"name": "Ann"})));
    gate.open();
    settle(&agent).await;
    let chunks = play().await;
    assert_eq!(said(&chunks), ["session", "Hello, Ann.Bye.", "done"], "after its end");
    assert_eq!(done(&chunks), ("completed".to_owned(), false, json!({"done": true})));
}

#[tokio::test]
async fn whoever_waits_for_a_run_that_another_caller_drives_gets_its_response_too() {
    let (world, gate) = (World::new(), Gate::new());
    let agent = world.agent(&confirm(&gate)).await;
    let asked = agent.execute(&confirm(&gate), json!({}), in_session()).await.unwrap();
    let asked = handle(&asked, "name");
    agent.submit(vec![Answer::with_handle(&asked, ResumeResponse::text("Ann"))]).await.unwrap();
    let result = agent.resume(&asked, ResumeResponse::text("Ann")).await.unwrap();
    assert_eq!((data(result), gate.passed()), (json!({"name": "Ann"}), 0));
}

#[tokio::test]
async fn a_message_is_an_ordinary_turn_whatever_runs_ask_after_their_response() {
    for policy in [WaitingPolicy::StartNew, WaitingPolicy::Supersede, WaitingPolicy::Refuse] {
        let (world, gate) = (World::new(), Gate::new());
        gate.open();
        let builder = world.builder().workflow(&order(&gate)).workflow(&review()).default_workflow("order");
        let agent = builder.on_waiting(policy).build().await.unwrap();
        turn(&agent).await;
        asked_later(&agent).await;
        let options = ChatOptions::new().session(session()).workflow("review");
        let chunks = agent.stream_chat(vec![ChatMessage::user("And?")], options).collect().await;
        assert_eq!(said(&chunks), ["session", "interrupt", "checkpoint", "done"], "{policy:?}");
        assert_eq!(after_response(&agent, true).await.len(), 1, "{policy:?}");
    }
}

#[test]
fn a_run_whose_process_dies_after_the_response_goes_on_elsewhere_without_a_reader() {
    let (world, gate) = (World::new(), Gate::new());
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let process = runtime();
    process.block_on(async {
        let agent = world.agent(&order(&gate)).await;
        assert_eq!(said(&turn(&agent).await), ["session", "Welcome.", "Thanks.", "checkpoint", "done"]);
        gate.begun().await;
    });
    drop(process);

    runtime().block_on(async {
        let agent = world.agent(&order(&gate)).await;
        world.clock.advance(Duration::from_secs(31));
        assert_eq!(agent.worker().pass().await.unwrap().recovered, 1);
        gate.begun().await;
        gate.open();
        let stock = asked_later(&agent).await;
        let result = answer(&agent, &stock, ResumeResponse::select(["no"])).await;
        let note = handle(&result, "note");
        let result = agent.resume(&note, ResumeResponse::text("Never")).await.unwrap();
        assert_eq!(data(result), json!({"stock": "no", "note": "Never", "count": 1}));
    });
}

#[tokio::test]
async fn a_response_that_the_store_does_not_take_is_not_complete() {
    let (world, gate) = (World::new(), Gate::new());
    let store = Faulty::over(world.store.clone());
    let builder = world.builder().shared_store(store.clone()).workflow(&order(&gate));
    let agent = builder.build().await.unwrap();
    store.fail(Op::Record, When::Before, 1);
    let chunks = turn(&agent).await;
    assert_eq!(said(&chunks), ["session", "Welcome.", "error", "done"]);
}

#[tokio::test]
async fn turns_that_are_played_while_a_run_works_on_are_kept_whatever_the_run_ends_with() {
    let gate = Gate::new();
    let held = gate.clone();
    let node = move |ctx: NodeContext| {
        let gate = held.clone();
        async move {
            ctx.complete_response(FinalResponse::new().data("said", &["order"])).await?;
            ctx.step("work", || async move { gate.pass().await }).await?;
            ctx.interrupt("note", Text::new("Note?")).await?;
            Ok(NodeOutput::new().data("said", &["overwritten"]))
        }
    };
    let world = World::new();
    let workflow = Workflow::builder("order").node("take", node).build().unwrap();
    let agent = world.builder().workflow(&workflow).workflow(&counting()).build().await.unwrap();
    let places = async || {
        let all = agent.list_checkpoints(&session(), None).await.unwrap();
        all.iter().map(|checkpoint| checkpoint.turn_index).collect::<Vec<_>>()
    };
    let order = say(&agent, "one", talk::in_session().workflow("order")).await;
    assert_eq!(order.done().status, "running");
    let meanwhile = say(&agent, "two", talk::in_session().workflow("counting")).await;
    assert_eq!((&meanwhile.done().data["said"], places().await), (&json!(["order", "two"]), vec![0, 1, 2]));

    gate.open();
    let asked = asked_later(&agent).await;
    assert_eq!(places().await, [0, 1, 2], "its pause leaves no checkpoint");
    let result = answer(&agent, &asked, ResumeResponse::text("Done")).await;
    assert_eq!(data(result)["said"], json!(["overwritten"]));
    assert_eq!(places().await, [0, 1, 2], "nor does its end");
    let next = say(&agent, "three", talk::in_session().workflow("counting")).await;
    assert_eq!(next.done().data["said"], json!(["order", "two", "three"]));
}
