//! K10: that a response is complete is durable at once with its turn, and every process sees it.

use kortyx::{
    Agent, AgentBuilder, ChatOptions, NodeOutput, Text, Workflow,
    protocol::{ChatMessage, ResumeHandle, ResumeResponse, RunId, StreamChunk},
    runtime::FinalResponse,
    store::{CheckpointRecord, RunStatus, Scope},
};
use kortyx_tests::{Op, When, World, data, ends, eventually, input_of, kinds, one_node, takes_over, with};
use serde_json::json;

use crate::background::{Work, asked, done, later, session, status};

/// The turns that a run left in its conversation.
async fn turns_of(world: &World, session_id: &str, run_id: &RunId) -> Vec<CheckpointRecord> {
    let all = world.store().await.list_checkpoints(&session(session_id)).await.unwrap();
    all.into_iter().filter(|checkpoint| checkpoint.run_id.as_ref() == Some(run_id)).collect()
}

/// Plays a turn in a process that dies at the call that is held, after so many that passed; the run, and how often the
/// conversation had its turn then and whether the response was durable.
async fn die(world: &World, work: &Work, passed: u64, op: Op, when: When) -> (RunId, usize, bool) {
    let registered = work.workflow();
    let process = world.process(move |agent: AgentBuilder| agent.workflow(&registered)).await;
    let gate = process.store().hold_after(passed, op, when);
    let options = ChatOptions::new().session(session("s"));
    let stream = process.agent().begin_chat(vec![ChatMessage::user("go")], options).await.unwrap();
    let run_id = stream.run_id().unwrap().clone();
    gate.reached().await;
    process.kill().await;
    drop(stream);
    let run = world.store().await.run(&run_id).await.unwrap();
    let turns = turns_of(world, "s", &run_id).await.len();
    (run_id, turns, run.is_some_and(|run| run.response.is_some()))
}

#[tokio::test]
async fn b138_wherever_a_process_dies_the_conversation_has_the_turn_exactly_when_the_response_is_durable() {
    let places = [
        (0, Op::Open, When::Before, false),
        (0, Op::Open, When::After, false),
        (0, Op::Record, When::Before, false),
        (0, Op::Record, When::After, true),
        (1, Op::Record, When::Before, true),
        (1, Op::Record, When::After, true),
        (0, Op::Suspend, When::Before, true),
        (0, Op::Suspend, When::After, true),
    ];
    for (passed, op, when, is_durable) in places {
        let place = format!("{when:?} {op:?} {passed}");
        let (world, work) = (World::new(), Work::free());
        let (run_id, turns, is_responded) = die(&world, &work, passed, op, when).await;
        assert_eq!((turns, is_responded), (usize::from(is_durable), is_durable), "{place}");

        let agent = world.agent(&work.workflow()).await;
        world.advance(std::time::Duration::from_mins(1));
        work.gate.add_permits(1);
        if world.store().await.run(&run_id).await.unwrap().is_none() {
            continue;
        }
        if status(&agent, &session("s"), &run_id).await == RunStatus::Running {
            takes_over(&agent).await;
        }
        let [a, b] = asked(&agent, &session("s")).await;
        for question in [&a, &b] {
            agent.resume(question.handle(), ResumeResponse::text("x")).await.unwrap();
        }
        ends(&agent, b.handle(), RunStatus::Completed).await;
        let turns = turns_of(&world, "s", &run_id).await;
        let [turn] = turns.as_slice() else { panic!("{place}: {turns:?}") };
        assert_eq!((turn.turn_index, turn.snapshot.as_ref(), turn.interrupts.len()), (1, None, 0), "{place}");
        let view = agent.get_checkpoint(&turn.checkpoint.id, None).await.unwrap().unwrap();
        assert_eq!(view.state.to_value().unwrap(), json!({"order": 7}), "{place}");
    }
}

/// Asks on one branch, and on another completes the response and works on.
fn asks_and_works(work: &Work) -> Workflow {
    let fork = |_| async { Ok(NodeOutput::new()) };
    let ask = |ctx: kortyx::NodeContext| async move {
        Ok(NodeOutput::new().data("answer", &ctx.interrupt("ask", Text::new("Well?")).await?))
    };
    let respond = with(work.clone(), |ctx, work| async move {
        ctx.message("We are on it.").await;
        ctx.complete_response(FinalResponse::new().message("Thanks.").data("order", &7)).await?;
        ctx.message("For nobody.").await;
        ctx.step("work", || async { work.gate.acquire().await.map(|_| _ = work.done.hit()) }).await?;
        ctx.interrupt("later", Text::new("Later?")).await?;
        Ok(NodeOutput::new())
    });
    let flow = Workflow::builder("both").node("fork", fork).node("ask", ask).node("respond", respond);
    flow.edge("fork", "ask").edge("fork", "respond").build().unwrap()
}

async fn followed(agent: &Agent, run_id: &RunId) -> Vec<StreamChunk> {
    let mut stream = agent.follow(run_id, &Scope::session(session("s")), 0).await.unwrap();
    let mut chunks = Vec::new();
    while let Some(piece) = stream.next().await.unwrap() {
        chunks.push(piece.chunk().unwrap());
    }
    chunks
}

/// Chunks as they are sent.
fn sent(chunks: &[StreamChunk]) -> Vec<String> {
    chunks.iter().map(|chunk| serde_json::to_string(chunk).unwrap()).collect()
}

#[tokio::test]
async fn b135_whoever_follows_a_run_from_any_process_gets_the_ending_of_its_response_and_nothing_later() {
    let (world, work) = (World::new(), Work::held());
    let (playing, elsewhere) = (world.agent(&asks_and_works(&work)).await, world.agent(&asks_and_works(&work)).await);
    let options = ChatOptions::new().session(session("s"));
    let stream = playing.begin_chat(vec![ChatMessage::user("go")], options).await.unwrap();
    let run_id = stream.run_id().unwrap().clone();
    let live = stream.collect().await;
    assert_eq!(kinds(&live), ["session", "message", "message", "interrupt", "checkpoint", "done"]);
    assert_eq!((done(&live).status.as_str(), &done(&live).data), ("running", &json!({"order": 7})));
    assert_eq!(work.done.count(), 0, "it works on");
    for agent in [&playing, &elsewhere] {
        assert_eq!(sent(&followed(agent, &run_id).await), sent(&live));
    }

    // Questions that were answered since are not put again; else it stays the same, whatever the run does.
    let question = &input_of(&live)[0];
    let handle = ResumeHandle {
        token: question.resume_token.clone(),
        request_id: question.request_id.clone(),
        session_id: session("s"),
        run_id: run_id.clone(),
    };
    elsewhere.submit(vec![kortyx::Answer::with_handle(&handle, ResumeResponse::text("x"))]).await.unwrap();
    let late = followed(&elsewhere, &run_id).await;
    assert_eq!(kinds(&late), ["session", "message", "message", "checkpoint", "done"]);
    assert_eq!((done(&late).status.as_str(), done(&late).awaiting_human_input), ("running", false));
    work.gate.add_permits(1);
    eventually("it asks again", || async { later(&elsewhere, &session("s")).await.len() == 1 }).await;
    let asked = later(&elsewhere, &session("s")).await.remove(0);
    elsewhere.resume(asked.handle(), ResumeResponse::text("y")).await.unwrap();
    ends(&elsewhere, asked.handle(), RunStatus::Completed).await;
    assert_eq!(sent(&followed(&elsewhere, &run_id).await), sent(&late));
}

#[tokio::test]
async fn b138_whoever_waits_in_another_process_gets_the_response_while_the_run_works_on() {
    let (world, work) = (World::new(), Work::held());
    let flow = || {
        let node = with(work.clone(), |ctx, work: Work| async move {
            let name = ctx.interrupt("name", Text::new("Name?")).await?;
            ctx.complete_response(FinalResponse::new().message("Bye.").data("name", &name)).await?;
            ctx.step("work", || async { work.gate.acquire().await.map(|_| _ = work.done.hit()) }).await?;
            Ok(NodeOutput::new().data("done", &true))
        });
        one_node("confirming", node)
    };
    let (driving, waiting) = (world.agent(&flow()).await, world.agent(&flow()).await);
    let options = kortyx::ExecuteOptions::new().session(session("s"));
    let asked = driving.execute(&flow(), json!({}), options).await.unwrap();
    let handle = asked.interrupts()[0].resume.clone();
    let answer = || ResumeResponse::text("Ann");
    driving.submit(vec![kortyx::Answer::with_handle(&handle, answer())]).await.unwrap();

    let result = waiting.resume(&handle, answer()).await.unwrap();

    assert_eq!((data(result), work.done.count()), (json!({"name": "Ann"}), 0));
    work.gate.add_permits(1);
    ends(&driving, &handle, RunStatus::Completed).await;
    let result = waiting.resume(&handle, answer()).await.unwrap();
    assert_eq!(data(result), json!({"done": true}), "a repeat after the end says how it ended");
}
