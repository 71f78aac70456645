//! K10: a response that ends before its work is like any other to its client, and what is asked later can be found.

use kortyx::{
    AgentBuilder, ChatOptions, NodeOutput, Text, WaitingPolicy, Workflow,
    protocol::{ChatMessage, ResumeResponse, StreamChunk},
    store::{InterruptStatus, RunStatus, Scope},
};
use kortyx_tests::{
    Counter, Op, When, World, ends, eventually, input_of, one_node, resume_message, takes_over, text_of, with,
};

use crate::background::{Work, asked, done, later, responded, session, shown, status, turn};

#[tokio::test]
async fn b130_a_question_after_a_response_has_one_id_on_every_surface() {
    let world = World::new();
    let agent = world.agent(&Work::free().workflow()).await;
    let id = session("session-ids");
    responded(&agent, &id).await;
    let elsewhere = world.agent(&Work::free().workflow()).await;
    for listed in asked(&elsewhere, &id).await {
        let stored = world.store().await.interrupt(&listed.id).await.unwrap().unwrap();
        let got = agent.get_interrupt(&listed.id, &Scope::session(id.clone())).await.unwrap().unwrap();
        assert_eq!((&stored.request_id, &got.id, &listed.handle().request_id), (&listed.id, &listed.id, &listed.id));
        assert!(stored.after_response_completed && got.after_response_completed && listed.after_response_completed);
        assert!(stored.token.matches(&listed.handle().token));
    }
}

/// Asks on one branch, and completes the response on another.
fn asks_and_responds() -> Workflow {
    let fork = |_| async { Ok(NodeOutput::new()) };
    let ask = |ctx: kortyx::NodeContext| async move {
        Ok(NodeOutput::new().data("answer", &ctx.interrupt("ask", Text::new("Well?")).await?))
    };
    let respond = |ctx: kortyx::NodeContext| async move {
        ctx.complete_response("Thanks.").await?;
        Ok(NodeOutput::new())
    };
    let flow = Workflow::builder("both").node("fork", fork).node("ask", ask).node("respond", respond);
    flow.edge("fork", "ask").edge("fork", "respond").build().unwrap()
}

#[tokio::test]
async fn b131_a_question_that_is_open_at_the_end_of_a_response_can_be_answered_from_the_stream_alone() {
    let world = World::new();
    let agent = world.agent(&asks_and_responds()).await;
    let id = session("session-open");
    let chunks = turn(&agent, &id, ChatMessage::user("go")).await;
    assert_eq!(shown(&chunks), ["session", "message", "interrupt", "done"]);
    assert!(done(&chunks).awaiting_human_input);
    let question = &input_of(&chunks)[0];
    let elsewhere = world.agent(&asks_and_responds()).await;
    eventually("the other branch has ended", || async { agent.driven_runs() == 0 }).await;
    let answered = turn(&elsewhere, &id, resume_message(question, &ResumeResponse::text("x"))).await;
    assert_eq!((shown(&answered), done(&answered).status.as_str()), (vec!["session", "done"], "completed"));
}

#[tokio::test]
async fn b135_wherever_the_connection_was_lost_the_work_goes_on_and_what_it_asks_is_found() {
    for read in 0..=4 {
        let world = World::new();
        let work = Work::held();
        let registered = work.workflow();
        let process = world.process(move |agent: AgentBuilder| agent.workflow(&registered)).await;
        // The client is still there when the response is completed; then it leaves after so many chunks.
        let recording = process.store().hold(Op::Record, When::After);
        let id = session("session-lost");
        let options = ChatOptions::new().session(id.clone());
        let mut stream = process.agent().stream_chat(vec![ChatMessage::user("go")], options);
        recording.reached().await;
        if read == 0 {
            drop(stream);
            // Long enough that the agent knows, while storage has yet to say that the response is complete.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            recording.open();
        } else {
            recording.open();
            for _ in 0..read {
                stream.next().await.unwrap();
            }
            drop(stream);
        }
        work.gate.add_permits(1);
        let agent = world.agent(&work.workflow()).await;
        let [a, b] = asked(&agent, &id).await;
        agent.resume(a.handle(), ResumeResponse::text("x")).await.unwrap();
        let result = agent.resume(b.handle(), ResumeResponse::text("y")).await.unwrap();
        assert_eq!((result.status(), work.done.count()), ("completed", 1), "{read} chunks were read");
    }
}

#[tokio::test]
async fn b138_a_response_that_ends_before_its_work_keeps_the_grammar_and_says_nothing_later() {
    let world = World::new();
    let work = Work::held();
    let agent = world.agent(&work.workflow()).await;
    let id = session("session-grammar");
    let chunks = turn(&agent, &id, ChatMessage::user("go")).await;
    assert_eq!(shown(&chunks), ["session", "message", "message", "done"]);
    assert_eq!(text_of(&chunks), "We are on it.Thanks.");
    assert!(!done(&chunks).awaiting_human_input);
    work.gate.add_permits(1);
    let [a, b] = asked(&agent, &id).await;

    // Whoever answers in a turn of the chat hears where the run stands, and nothing that it says.
    let scope = Scope::session(id.clone());
    let chunk = |question: &kortyx::Interrupt, text: &str| {
        let handle = question.handle();
        let mut meta = kortyx::protocol::ResumeMeta::new(handle.token.clone(), handle.request_id.clone());
        meta.text = Some(text.to_owned());
        ChatMessage::user(text).with_resume(&meta)
    };
    let answered = turn(&agent, &id, chunk(&a, "x")).await;
    assert_eq!(shown(&answered), ["session", "interrupt", "done"]);
    let answered = turn(&agent, &id, chunk(&b, "y")).await;
    assert_eq!((shown(&answered), done(&answered).status.as_str()), (vec!["session", "done"], "completed"));
    assert_eq!(agent.get_interrupt(&b.id, &scope).await.unwrap().unwrap().status, InterruptStatus::Answered);
}

#[tokio::test]
async fn b138_a_run_completes_its_response_once_though_its_driver_dies_before_the_client_hears() {
    let world = World::new();
    let (work, turns) = (Work::free(), Counter::new());
    let registered = work.workflow();
    let process = world.process(move |agent: AgentBuilder| agent.workflow(&registered)).await;
    let recording = process.store().hold(Op::Record, When::After);
    let id = session("session-died");
    let stream = process.agent().stream_chat(vec![ChatMessage::user("go")], ChatOptions::new().session(id.clone()));
    recording.reached().await;
    process.kill().await;
    let chunks = stream.collect().await;
    assert!(!text_of(&chunks).contains("Thanks."), "it was told before its driver knew: {chunks:?}");

    world.advance(std::time::Duration::from_mins(1));
    let heard = turns.clone();
    let agent = world.builder().await.workflow(&work.workflow()).on_response_finalized(move |_| {
        heard.hit();
        async { Ok::<_, std::io::Error>(()) }
    });
    let agent = agent.build().await.unwrap();
    takes_over(&agent).await;
    let [a, b] = asked(&agent, &id).await;
    assert_eq!((work.done.count(), turns.count()), (1, 0));
    agent.resume(a.handle(), ResumeResponse::text("x")).await.unwrap();
    agent.resume(b.handle(), ResumeResponse::text("y")).await.unwrap();
    ends(&agent, a.handle(), RunStatus::Completed).await;
}

#[tokio::test]
async fn b141_a_message_is_never_an_answer_to_what_a_run_asks_after_its_response() {
    for policy in [WaitingPolicy::StartNew, WaitingPolicy::Supersede, WaitingPolicy::Refuse] {
        let world = World::new();
        let agent = world.builder().await.workflow(&Work::free().workflow()).on_waiting(policy).build().await.unwrap();
        let id = session("session-message");
        let first = responded(&agent, &id).await;
        let questions = asked(&agent, &id).await;
        let second = responded(&agent, &id).await;
        assert_ne!(first, second);
        eventually("it asks too", || async { later(&agent, &id).await.len() == 4 }).await;
        for question in questions {
            let now = agent.get_interrupt(&question.id, &Scope::session(id.clone())).await.unwrap().unwrap();
            assert_eq!(now.status, InterruptStatus::Pending, "{policy:?}");
        }
        assert_eq!(status(&agent, &id, &first).await, RunStatus::Suspended);
    }
}

#[tokio::test]
async fn b143_a_gate_after_a_response_is_as_final_denied_as_approved_and_both_go_on_once() {
    for verdict in ["approve", "decline"] {
        let world = World::new();
        let went_on = Counter::new();
        let node = with(went_on.clone(), |ctx, went_on| async move {
            ctx.complete_response("Thanks.").await?;
            let verdict = ctx.interrupt("gate", kortyx_tests::approve_or_decline("Act?")).await?;
            ctx.step("go on", || async { Ok::<_, kortyx::NodeError>(went_on.hit()) }).await?;
            Ok(NodeOutput::new().data("verdict", &verdict))
        });
        let agent = world.agent(&one_node("gated", node)).await;
        let id = session("session-gate");
        let chunks = turn(&agent, &id, ChatMessage::user("go")).await;
        assert!(matches!(chunks.last(), Some(StreamChunk::Done { .. })));
        eventually("it asks", || async { later(&agent, &id).await.len() == 1 }).await;
        let gate = later(&agent, &id).await.remove(0);
        let scope = Scope::session(id.clone());
        for _ in 0..2 {
            let answer = agent.answer(&gate.id, scope.clone(), ResumeResponse::select([verdict]), None);
            assert_eq!(kortyx_tests::data(answer.await.unwrap())["verdict"], verdict);
        }
        assert_eq!(went_on.count(), 1);
        assert!(later(&agent, &id).await.is_empty());
    }
}
