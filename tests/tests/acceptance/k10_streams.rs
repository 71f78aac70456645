//! K10: a client sees one id for one question, loses none, and is told what becomes of its message.

use std::{sync::Arc, time::Duration};

use kortyx::{
    Agent, ChatOptions, ExecuteOptions, Fact, NodeError, NodeOutput, OnDisconnect, Text, WaitingPolicy, Workflow,
    protocol::{
        ChatMessage, FailureCode, InterruptChunk, ResumeHandle, ResumeResponse, SessionId, StreamChunk, json as wire,
    },
    runtime::Limits,
    store::{InterruptQuery, InterruptStatus, RunStatus, Scope},
};
use kortyx_tests::{
    Counter, Facts, World, approve_or_decline, eventually, input_of, kinds, one_node, resume_message, with,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn query(session_id: &SessionId) -> InterruptQuery {
    InterruptQuery { scope: Scope::session(session_id.clone()), limit: 50, ..InterruptQuery::default() }
}

async fn turn(agent: &Agent, session_id: &SessionId, message: ChatMessage) -> Vec<StreamChunk> {
    agent.stream_chat(vec![message], ChatOptions::new().session(session_id.clone())).collect().await
}

fn asking() -> Workflow {
    one_node("asking", |ctx| async move {
        let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    })
}

#[tokio::test]
async fn b130_one_question_has_one_id_on_every_surface() {
    let world = World::new();
    let facts = Facts::new();
    let agent = world.builder().await.workflow(&asking()).telemetry(facts.clone()).build().await.unwrap();
    let id = session("session-ids");
    let streamed = input_of(&turn(&agent, &id, ChatMessage::user("go")).await).remove(0);

    let listed = agent.list_interrupts(query(&id)).await.unwrap().interrupts.remove(0);
    let got = agent.get_interrupt(&streamed.request_id, &Scope::session(id.clone())).await.unwrap().unwrap();
    let stored = world.store().await.interrupt(&streamed.request_id).await.unwrap().unwrap();
    let refused = turn(&agent, &id, resume_message(&streamed, &ResumeResponse::text(""))).await;
    let again = input_of(&refused).remove(0);
    let created = facts.all().into_iter().find_map(|fact| match fact {
        Fact::InterruptCreated { request_id, .. } => Some(request_id),
        _ => None,
    });
    let told = created.unwrap();

    for id in [&listed.id, &listed.handle().request_id, &got.id, &stored.request_id, &again.request_id, &told] {
        assert_eq!(*id, streamed.request_id);
    }
    for token in [&listed.handle().token, &got.handle().token, &stored.token, &again.resume_token] {
        assert!(token.matches(&streamed.resume_token));
    }
    let answered = turn(&agent, &id, resume_message(&streamed, &ResumeResponse::text("x"))).await;
    assert_eq!(kinds(&answered), ["session", "checkpoint", "done"]);
}

#[tokio::test]
async fn b131_the_stream_alone_is_enough_to_show_and_answer_a_question() {
    let world = World::new();
    let workflow = one_node("choose", |ctx| async move {
        let answer = ctx.interrupt("choose", approve_or_decline("Act?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let agent = world.agent(&workflow).await;
    let chunks = turn(&agent, &session("session-stream"), ChatMessage::user("go")).await;
    // All that is left is the text that went over the wire.
    let text = wire::to_string(chunks.iter().find(|chunk| chunk.kind() == "interrupt").unwrap()).unwrap();
    drop((chunks, agent));

    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["input"]["question"], "Act?");
    let option = shown["input"]["options"][0]["id"].clone();
    let resume = json!({"token": shown["resumeToken"], "requestId": shown["requestId"], "selected": [option]});
    let mut message = ChatMessage::user("Approve");
    message.metadata = json!({ "resume": resume }).as_object().cloned();
    let agent = world.agent(&workflow).await;
    let answered = agent.stream_chat(vec![message], ChatOptions::new()).collect().await;
    let Some(StreamChunk::Done { data: Some(done) }) = answered.last() else { panic!("{answered:?}") };
    assert_eq!(done.data["answer"], "approve");
}

/// Waits for a permit, then asks.
fn slow(gate: &Arc<Semaphore>, entered: &Counter) -> Workflow {
    one_node(
        "slow",
        with((gate.clone(), entered.clone()), |ctx, (gate, entered)| async move {
            entered.hit();
            ctx.step("wait", || async { gate.acquire().await.map(drop) }).await?;
            let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
            Ok(NodeOutput::new().data("answer", &answer))
        }),
    )
}

#[tokio::test]
async fn b135_a_question_is_found_again_wherever_the_connection_was_lost() {
    let world = World::new();
    let (gate, entered) = (Arc::new(Semaphore::new(0)), Counter::new());
    let workflow = slow(&gate, &entered);
    let agent = world.builder().await.workflow(&workflow).on_disconnect(OnDisconnect::GoOn).build().await.unwrap();
    for read in 0..=3 {
        let id = session(&format!("session-lost-{read}"));
        let options = ChatOptions::new().session(id.clone());
        let mut stream = agent.stream_chat(vec![ChatMessage::user("go")], options);
        // 0 and 1: before the question; 2: right after it; 3: after the end.
        for _ in 0..read.min(1) {
            stream.next().await.unwrap();
        }
        if read >= 2 {
            gate.add_permits(1);
        }
        for _ in 1..read {
            stream.next().await.unwrap();
        }
        drop(stream);
        gate.add_permits(1);
        eventually("the question can be found", || async {
            !agent.list_interrupts(query(&id)).await.unwrap().interrupts.is_empty()
        })
        .await;
        let found = agent.list_interrupts(query(&id)).await.unwrap().interrupts.remove(0);
        let result = agent.resume(found.handle(), ResumeResponse::text("found")).await.unwrap();
        assert_eq!(result.status(), "completed", "{read} chunks were read");
    }
}

#[tokio::test]
async fn b135_by_default_a_fresh_turn_ends_with_its_client_and_an_answered_one_goes_on() {
    let world = World::new();
    let (gate, entered) = (Arc::new(Semaphore::new(0)), Counter::new());
    let workflow = slow(&gate, &entered);
    let mut limits = Limits::default();
    limits.cancel_grace = Duration::ZERO;
    let agent = world.builder().await.workflow(&workflow).run_limits(limits).build().await.unwrap();
    let id = session("session-gone");
    let options = ChatOptions::new().session(id.clone());
    let stream = agent.stream_chat(vec![ChatMessage::user("go")], options.clone());
    eventually("the node runs", || async { entered.count() == 1 }).await;
    drop(stream);
    eventually("the run is cancelled", || async { agent.driven_runs() == 0 }).await;
    assert!(agent.list_interrupts(query(&id)).await.unwrap().interrupts.is_empty());

    gate.add_permits(1);
    let asked = input_of(&turn(&agent, &id, ChatMessage::user("again")).await).remove(0);
    let run_id = world.store().await.interrupt(&asked.request_id).await.unwrap().unwrap().run_id;
    drop(agent.stream_chat(vec![resume_message(&asked, &ResumeResponse::text("kept"))], options));
    eventually("the answer takes effect", || async {
        let run = agent.get_run(&run_id, &Scope::session(id.clone())).await.unwrap().unwrap();
        run.status == RunStatus::Completed
    })
    .await;
}

/// A client that keeps its list as the protocol says: what is asked is on it, what was answered is off it.
#[tokio::test]
async fn b136_the_clients_list_is_the_servers_after_every_answer() {
    let world = World::new();
    let workflow = one_node("three", |ctx| async move {
        let ask = |id: &str| ctx.interrupt(id, Text::new("?"));
        let (a, b, c) = tokio::join!(ask("a"), ask("b"), ask("c"));
        Ok(NodeOutput::new().data("answers", &[a?, b?, c?]))
    });
    let agent = world.agent(&workflow).await;
    let id = session("session-list");
    let mut client: Vec<InterruptChunk> = input_of(&turn(&agent, &id, ChatMessage::user("go")).await);
    while !client.is_empty() {
        let server = agent.list_interrupts(query(&id)).await.unwrap().interrupts;
        let mut server: Vec<_> = server.into_iter().map(|interrupt| interrupt.id).collect();
        let mut own: Vec<_> = client.iter().map(|chunk| chunk.request_id.clone()).collect();
        own.sort();
        server.sort();
        assert_eq!(own, server);

        let answered = client.remove(1.min(client.len() - 1));
        let chunks = turn(&agent, &id, resume_message(&answered, &ResumeResponse::text("x"))).await;
        let announced = input_of(&chunks);
        assert_eq!(announced.len(), client.len(), "every open question again, whether it was seen or not");
        client = announced;
    }
    assert!(agent.list_interrupts(query(&id)).await.unwrap().interrupts.is_empty());
}

#[tokio::test]
async fn b141_a_message_while_a_run_waits_is_treated_as_the_agent_says_and_never_as_an_answer() {
    for (policy, stream, first) in [
        (WaitingPolicy::StartNew, &["session", "interrupt", "checkpoint", "done"][..], InterruptStatus::Pending),
        (WaitingPolicy::Supersede, &["session", "interrupt", "checkpoint", "done"], InterruptStatus::Cancelled),
        (WaitingPolicy::Refuse, &["session", "error", "done"], InterruptStatus::Pending),
    ] {
        let world = World::new();
        let agent = world.builder().await.workflow(&asking()).on_waiting(policy).build().await.unwrap();
        let id = session("session-waiting");
        let asked = input_of(&turn(&agent, &id, ChatMessage::user("go")).await).remove(0);

        let chunks = turn(&agent, &id, ChatMessage::user("something else")).await;
        assert_eq!(kinds(&chunks), stream, "{policy:?}");
        if let StreamChunk::Error { failure, .. } = &chunks[1] {
            assert_eq!((failure.code, failure.status), (FailureCode::Conflict, Some(409)));
        }
        let question = agent.get_interrupt(&asked.request_id, &Scope::session(id.clone())).await.unwrap().unwrap();
        assert_eq!(question.status, first, "{policy:?}");
        let other = turn(&agent, &session("session-other"), ChatMessage::user("hi")).await;
        assert_eq!(
            kinds(&other),
            ["session", "interrupt", "checkpoint", "done"],
            "another session is none of its business"
        );
    }
}

#[tokio::test]
async fn b141_an_answer_when_nothing_waits_is_told_so_and_starts_nothing() {
    let world = World::new();
    let runs = Counter::new();
    let workflow = one_node(
        "counted",
        with(runs.clone(), |ctx, runs| async move {
            ctx.step("begin", || async { Ok::<_, NodeError>(runs.hit()) }).await?;
            ctx.interrupt("ask", Text::new("Well?")).await?;
            Ok(NodeOutput::new())
        }),
    );
    let agent = world.agent(&workflow).await;
    let id = session("session-done");
    let asked = input_of(&turn(&agent, &id, ChatMessage::user("go")).await).remove(0);
    let handle = world.store().await.interrupt(&asked.request_id).await.unwrap().unwrap();
    let handle = ResumeHandle {
        token: handle.token,
        request_id: handle.request_id,
        session_id: handle.session_id,
        run_id: handle.run_id,
    };
    agent.resume(&handle, ResumeResponse::text("yes")).await.unwrap();

    let other = turn(&agent, &id, resume_message(&asked, &ResumeResponse::text("no"))).await;
    let StreamChunk::Error { failure, .. } = &other[1] else { panic!("{other:?}") };
    assert_eq!((failure.code, failure.status), (FailureCode::InterruptAlreadyResolved, Some(409)));
    assert_eq!(kinds(&other), ["session", "error", "done"]);
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn b143_a_denied_gate_is_as_final_as_an_approved_one_and_both_go_on_once() {
    let world = World::new();
    let went_on = Counter::new();
    let workflow = one_node(
        "mix",
        with(went_on.clone(), |ctx, went_on| async move {
            let gates = (("a", approve_or_decline("A?")), ("b", approve_or_decline("B?")));
            let (a, b) = ctx.interrupt_all(gates).await?;
            went_on.hit();
            Ok(NodeOutput::new().data("both", &[a, b]))
        }),
    );
    let agent = world.agent(&workflow).await;
    let id = session("session-mix");
    let asked = input_of(&turn(&agent, &id, ChatMessage::user("go")).await);
    let mut last = Vec::new();
    for (chunk, verdict) in asked.iter().zip(["approve", "decline"]) {
        last = turn(&agent, &id, resume_message(chunk, &ResumeResponse::select([verdict]))).await;
    }
    let Some(StreamChunk::Done { data: Some(done) }) = last.last() else { panic!("{last:?}") };
    assert_eq!((&done.data["both"], done.status.as_str()), (&json!(["approve", "decline"]), "completed"));
    for chunk in &asked {
        let question = agent.get_interrupt(&chunk.request_id, &Scope::session(id.clone())).await.unwrap().unwrap();
        assert_eq!(question.status, InterruptStatus::Answered);
    }
    assert_eq!(went_on.count(), 1);
    let unrelated = agent.execute(&workflow, json!({}), ExecuteOptions::new().session(id)).await.unwrap();
    assert_eq!(unrelated.interrupts().len(), 2);
}
