//! K16: what is listed is what is true.

use std::sync::Arc;

use kortyx::{
    Agent, Answer, ChatOptions, ExecuteOptions, NodeOutput, Text, Workflow,
    protocol::{ChatMessage, ResumeHandle, ResumeMeta, ResumeResponse},
    store::{InterruptQuery, InterruptStatus, RunStatus, Scope},
};
use kortyx_tests::{World, eventually, handle, one_node, questions, with};
use serde_json::json;
use tokio::{join, sync::Semaphore};

/// Two questions at once, then work that waits to be let go.
fn two_then_work(gate: &Arc<Semaphore>) -> Workflow {
    one_node(
        "two",
        with(gate.clone(), |ctx, gate| async move {
            let (a, b) = join!(ctx.interrupt("a", Text::new("A?")), ctx.interrupt("b", Text::new("B?")));
            ctx.step("work", || async { gate.acquire().await.map(drop) }).await?;
            Ok(NodeOutput::new().data("answers", &[a?, b?]))
        }),
    )
}

fn open() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1))
}

async fn listed(agent: &Agent, gate: &ResumeHandle) -> Vec<String> {
    let scope = Scope::session(gate.session_id.clone());
    let query = InterruptQuery { scope, run_id: Some(gate.run_id.clone()), limit: 9, ..Default::default() };
    let page = agent.list_interrupts(query).await.unwrap();
    page.interrupts.into_iter().filter_map(|interrupt| interrupt.input.id).collect()
}

async fn status(agent: &Agent, gate: &ResumeHandle) -> RunStatus {
    let scope = Scope::session(gate.session_id.clone());
    agent.get_run(&gate.run_id, &scope).await.unwrap().unwrap().status
}

#[tokio::test]
async fn b176_after_the_first_of_two_answers_the_run_still_waits_for_the_second() {
    let world = World::new();
    let workflow = two_then_work(&open());
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let (a, b) = (handle(&paused, "a"), handle(&paused, "b"));
    let half = agent.resume(&a, ResumeResponse::text("x")).await.unwrap();
    assert_eq!(questions(&half), ["b"]);
    let elsewhere = world.agent(&workflow).await;
    assert_eq!((status(&elsewhere, &b).await, listed(&elsewhere, &b).await), (RunStatus::Suspended, vec!["b".into()]));
}

#[tokio::test]
async fn b179_an_answered_question_is_closed_whatever_form_the_answer_had_and_its_sibling_is_not() {
    let world = World::new();
    let workflow = two_then_work(&open());
    let agent = world.agent(&workflow).await;
    for form in ["resume", "resume_batch", "answer", "answer_batch", "respond", "submit", "chat"] {
        let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        let (a, b) = (handle(&paused, "a"), handle(&paused, "b"));
        let (scope, response) = (Scope::session(a.session_id.clone()), ResumeResponse::text("x"));
        match form {
            "resume" => drop(agent.resume(&a, response).await.unwrap()),
            "resume_batch" => drop(agent.resume_batch([(a.clone(), response)]).await.unwrap()),
            "answer" => drop(agent.answer(&a.request_id, scope.clone(), response, None).await.unwrap()),
            "answer_batch" => {
                drop(agent.answer_batch([(a.request_id.clone(), response)], scope.clone(), None).await.unwrap());
            }
            "respond" => drop(agent.respond(vec![Answer::with_handle(&a, response)]).await.unwrap()),
            "submit" => drop(agent.submit(vec![Answer::with_handle(&a, response)]).await.unwrap()),
            _ => {
                let mut meta = ResumeMeta::new(a.token.clone(), a.request_id.clone());
                meta.text = Some("x".into());
                agent.stream_chat(vec![ChatMessage::user("").with_resume(&meta)], ChatOptions::new()).collect().await;
            }
        }
        assert_eq!(listed(&agent, &a).await, ["b"], "{form}");
        let of = async |gate: &ResumeHandle| agent.get_interrupt(&gate.request_id, &scope).await.unwrap().unwrap();
        assert_eq!(
            (of(&a).await.status, of(&b).await.status),
            (InterruptStatus::Answered, InterruptStatus::Pending),
            "{form}"
        );
    }
}

#[tokio::test]
async fn b180_from_its_acceptance_on_a_question_is_not_shown_as_open() {
    let world = World::new();
    let gate = Arc::new(Semaphore::new(0));
    let workflow = two_then_work(&gate);
    let agent = world.agent(&workflow).await;
    let elsewhere = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let (a, b) = (handle(&paused, "a"), handle(&paused, "b"));
    let both = [&a, &b].map(|gate| Answer::with_handle(gate, ResumeResponse::text("x")));
    agent.submit(both.to_vec()).await.unwrap();
    // The work after the answers is under way, and nothing of the run has been written since.
    for process in [&agent, &elsewhere] {
        assert_eq!(listed(process, &a).await, Vec::<String>::new());
        assert_eq!(status(process, &a).await, RunStatus::Running);
        let scope = Scope::session(a.session_id.clone());
        let question = process.get_interrupt(&a.request_id, &scope).await.unwrap().unwrap();
        assert_eq!(question.status, InterruptStatus::Answered);
    }
    gate.add_permits(1);
    eventually("it ends", || async { status(&elsewhere, &a).await == RunStatus::Completed }).await;
}
