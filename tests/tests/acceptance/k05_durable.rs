//! K5: a pause is stored before anybody hears of it, with all that came before it.

use std::{future::pending, time::Duration};

use futures_util::FutureExt as _;
use kortyx::{
    Agent, ChatOptions, ExecuteOptions, NodeError, NodeOptions, NodeOutput, Retry, Text, Workflow,
    protocol::{ChatMessage, ResumeResponse, SessionId, StreamChunk},
    store::{InterruptQuery, RunStatus, Scope},
};
use kortyx_tests::{
    Counter, Op, When, World, data, eventually, handle, input_of, kinds, one_node, only, questions, resume_message,
    takes_over, text_of, with,
};
use serde_json::{Value, json};

async fn open_questions(agent: &Agent, session_id: &SessionId) -> usize {
    let query = InterruptQuery { scope: Scope::session(session_id.clone()), limit: 50, ..Default::default() };
    agent.list_interrupts(query).await.unwrap().interrupts.len()
}

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

/// A state of five megabytes, then a question.
fn heavy() -> Workflow {
    Workflow::builder("heavy")
        .node("load", |_| async { Ok(NodeOutput::new().data("blob", &"x".repeat(5_000_000))) })
        .node("ask", |ctx| async move {
            let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
            let blob: String = ctx.data("blob")?;
            Ok(NodeOutput::new().data("size", &blob.len()).data("answer", &answer))
        })
        .edge("load", "ask")
        .build()
        .unwrap()
}

#[tokio::test]
async fn b079_nothing_is_announced_before_it_is_durable_and_then_it_can_be_answered_at_once() {
    let world = World::new();
    let workflow = heavy();
    let registered = workflow.clone();
    let process = world.process(move |agent| agent.workflow(&registered)).await;
    let gate = process.store().hold(Op::Suspend, When::Before);
    let elsewhere = world.agent(&workflow).await;

    let options = ChatOptions::new().session(session("slow"));
    let mut stream = process.agent().stream_chat(vec![ChatMessage::user("go")], options);
    gate.reached().await;
    assert_eq!(stream.next().await.map(|chunk| chunk.kind()), Some("session"));
    assert!(stream.next().now_or_never().is_none(), "the write is under way, so there is nothing to hear");
    assert_eq!(open_questions(&elsewhere, &session("slow")).await, 0);

    gate.open();
    let Some(StreamChunk::Interrupt(asked)) = stream.next().await else { panic!("no question") };
    let message = resume_message(&asked, &ResumeResponse::text("now"));
    let answered = elsewhere.stream_chat(vec![message], ChatOptions::new()).collect().await;
    let Some(StreamChunk::Done { data: Some(done) }) = answered.last() else { panic!("{:?}", kinds(&answered)) };
    assert_eq!((&done.data["size"], &done.data["answer"]), (&json!(5_000_000), &json!("now")));
}

#[tokio::test]
async fn b079_a_crash_after_the_write_leaves_a_question_and_one_before_it_leaves_none() {
    let world = World::new();
    let workflow = heavy();
    for (moment, left) in [(When::Before, 0), (When::After, 1)] {
        let registered = workflow.clone();
        let process = world.process(move |agent| agent.workflow(&registered)).await;
        let gate = process.store().hold(Op::Suspend, moment);
        let id = session(&format!("crash-{left}"));
        let options = ChatOptions::new().session(id.clone());
        let stream = process.agent().stream_chat(vec![ChatMessage::user("go")], options);
        gate.reached().await;
        process.kill().await;

        let seen = stream.collect().await;
        assert_eq!(input_of(&seen).len(), 0, "nobody heard of it");
        let elsewhere = world.agent(&workflow).await;
        assert_eq!(open_questions(&elsewhere, &id).await, left, "{moment:?}");
    }
    let elsewhere = world.agent(&workflow).await;
    let query = InterruptQuery { scope: Scope::session(session("crash-1")), ..Default::default() };
    let found = elsewhere.list_interrupts(query).await.unwrap().interrupts.remove(0);
    let result = elsewhere.resume(found.handle(), ResumeResponse::text("found")).await.unwrap();
    assert_eq!(data(result)["answer"], "found");
}

/// The same question, asked from every place from which one can be asked.
fn asked_from_everywhere() -> Vec<Vec<Workflow>> {
    async fn in_a_function(ctx: &kortyx::NodeContext) -> Result<String, NodeError> {
        ctx.interrupt("ask", Text::new("Well?")).await
    }
    let plain =
        |id: &str| one_node(id, |ctx| async move { Ok(NodeOutput::new().data("answer", &in_a_function(&ctx).await?)) });
    let child = plain("child");
    let called = one_node(
        "caller",
        with(child.clone(), |ctx, child| async move {
            let output: Value = ctx.call("child", &child, json!({})).await?;
            Ok(NodeOutput::new().data("answer", &output["answer"]))
        }),
    );
    let retried = Workflow::builder("retried")
        .node_with("node", NodeOptions::new().retry(Retry::attempts(3).delay(Duration::ZERO)), |ctx| async move {
            Ok(NodeOutput::new().data("answer", &in_a_function(&ctx).await?))
        })
        .build()
        .unwrap();
    let handing = one_node("handing", |_| async { Ok(NodeOutput::new().transition_to("target")) });
    let branching = Workflow::builder("branching")
        .node("start", |_| async { Ok(NodeOutput::new()) })
        .node("busy", |_| async { Ok(NodeOutput::new().data("busy", &true)) })
        .node("asking", |ctx| async move { Ok(NodeOutput::new().data("answer", &in_a_function(&ctx).await?)) })
        .edge("start", "busy")
        .edge("start", "asking")
        .build()
        .unwrap();
    vec![vec![plain("plain")], vec![called, child], vec![retried], vec![handing, plain("target")], vec![branching]]
}

#[tokio::test]
async fn b080_a_pause_is_stored_from_whatever_place_it_comes() {
    let world = World::new();
    for workflows in asked_from_everywhere() {
        let [first, ..] = workflows.as_slice() else { panic!("no workflow") };
        let registered = workflows.clone();
        let all = move |agent| registered.iter().fold(agent, |agent: kortyx::AgentBuilder, one| agent.workflow(one));
        let process = world.process(all.clone()).await;
        let id = first.definition().id().to_string();
        let paused = process.agent().execute(first, json!({}), ExecuteOptions::new()).await.unwrap();
        assert_eq!(questions(&paused), ["ask"], "{id}");
        process.kill().await;

        let elsewhere = all(world.builder().await).build().await.unwrap();
        assert_eq!(open_questions(&elsewhere, paused.session_id()).await, 1, "{id}");
        let result = elsewhere.resume(&only(&paused).resume, ResumeResponse::text("yes")).await.unwrap();
        assert_eq!(data(result)["answer"], "yes", "{id}");
    }
}

#[tokio::test]
async fn b084_what_was_done_just_before_the_question_is_there_afterwards() {
    let world = World::new();
    let sent = Counter::new();
    let workflow = Workflow::builder("just-before")
        .node("before", |ctx| async move {
            ctx.workflow_state("mood", String::new()).set(&"calm".to_owned())?;
            Ok(NodeOutput::new().data("draft", "Hello."))
        })
        .node(
            "ask",
            with(sent.clone(), |ctx, sent| async move {
                let receipt = ctx.step("send", || async { Ok::<_, NodeError>(sent.hit() + 41) }).await?;
                ctx.text("Sent. ").await;
                let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
                ctx.text("Thank you.").await;
                let mood = ctx.workflow_state("mood", String::new()).get()?;
                let draft: String = ctx.data("draft")?;
                Ok(NodeOutput::new().data("all", &json!([draft, mood, receipt, answer])))
            }),
        )
        .edge("before", "ask")
        .build()
        .unwrap();
    let registered = workflow.clone();
    let process = world.process(move |agent| agent.workflow(&registered)).await;
    let first = process.agent().stream_chat(vec![ChatMessage::user("go")], ChatOptions::new()).collect().await;
    assert_eq!(text_of(&first), "Sent. ");
    process.kill().await;

    let elsewhere = world.agent(&workflow).await;
    let answer = resume_message(&input_of(&first)[0], &ResumeResponse::text("fine"));
    let second = elsewhere.stream_chat(vec![answer], ChatOptions::new()).collect().await;
    assert_eq!(text_of(&second), "Thank you.");
    let Some(StreamChunk::Done { data: Some(done) }) = second.last() else { panic!("{:?}", kinds(&second)) };
    assert_eq!(done.data["all"], json!(["Hello.", "calm", 41, "fine"]));
    assert_eq!(sent.count(), 1);
}

/// Three steps, the second of which hangs the first time.
fn three_steps(entered: &[Counter; 3]) -> Workflow {
    one_node(
        "three",
        with(entered.clone(), |ctx, entered| async move {
            for (at, counter) in entered.iter().enumerate() {
                let work = || async move {
                    if counter.hit() == 0 && at == 1 {
                        pending::<()>().await;
                    }
                    Ok::<_, NodeError>(at)
                };
                ctx.step(&format!("step-{at}"), work).await?;
            }
            Ok(NodeOutput::new().data("done", &true))
        }),
    )
}

#[tokio::test]
async fn b087_a_run_that_was_cut_in_its_second_step_goes_on_by_itself() {
    let world = World::new();
    let entered = [(); 3].map(|()| Counter::new());
    let workflow = three_steps(&entered);
    let registered = workflow.clone();
    let process = world.process(move |agent| agent.workflow(&registered)).await;
    let options = ExecuteOptions::new().session(session("cut"));
    let under_way = process.agent().execute(&workflow, json!({}), options).boxed();
    let (agent, second) = (process.agent().clone(), entered[1].clone());
    tokio::select! {
        result = under_way => panic!("it should hang: {result:?}"),
        () = eventually("the second step began", || async { second.count() == 1 }) => {}
    }
    assert_eq!(agent.driven_runs(), 1);
    process.kill().await;

    let worker = world.agent(&workflow).await;
    assert_eq!(worker.worker().pass().await.unwrap().recovered, 0, "its lease is not over");
    world.advance(Duration::from_secs(31));
    takes_over(&worker).await;
    eventually("the run ends", || async { entered[2].count() == 1 && worker.driven_runs() == 0 }).await;
    assert_eq!(entered.each_ref().map(Counter::count), [1, 2, 1]);
}

#[tokio::test]
async fn b089_another_worker_goes_on_where_the_first_one_waited() {
    let world = World::new();
    let sent = Counter::new();
    let workflow = one_node(
        "notify",
        with(sent.clone(), |ctx, sent| async move {
            ctx.step("send", || async { Ok::<_, NodeError>(sent.hit()) }).await?;
            let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
            Ok(NodeOutput::new().data("answer", &answer))
        }),
    );
    let registered = workflow.clone();
    let first = world.process(move |agent| agent.workflow(&registered)).await;
    let paused = first.agent().execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    first.kill().await;

    // The web tier has none of the workflows' code.
    let web = world.process(kortyx::AgentBuilder::accept_only).await;
    let second = world.agent(&workflow).await;
    let gate = handle(&paused, "ask");
    let (answered, worked) = tokio::join!(web.agent().resume(&gate, ResumeResponse::text("yes")), async {
        let mut worker = second.worker();
        while worker.pass().await.unwrap().recovered == 0 {
            tokio::task::yield_now().await;
        }
    });
    let ((), result) = (worked, answered.unwrap());
    assert_eq!(data(result)["answer"], "yes");
    assert_eq!(sent.count(), 1);
    let scope = Scope::session(gate.session_id.clone());
    let run = web.agent().get_run(&gate.run_id, &scope).await.unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Completed);
}
