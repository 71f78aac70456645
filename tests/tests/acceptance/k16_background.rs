//! K16: what is listed of work after a response is what is true.

use kortyx::{
    Agent, Answer,
    protocol::{ResumeResponse, SessionId},
    store::{InterruptQuery, InterruptStatus, RunStatus, Scope},
};
use kortyx_tests::{Op, When, World, ends};

use crate::background::{Work, asked, later, responded, session, status};

async fn ids(agent: &Agent, session_id: &SessionId) -> Vec<String> {
    later(agent, session_id).await.into_iter().filter_map(|question| question.input.id).collect()
}

#[tokio::test]
async fn b176_a_run_whose_response_is_complete_runs_until_it_waits_and_waits_until_all_is_answered() {
    let world = World::new();
    let work = Work::held();
    let agent = world.agent(&work.workflow()).await;
    let elsewhere = world.agent(&work.workflow()).await;
    let id = session("session-next");
    let run_id = responded(&agent, &id).await;
    assert_eq!((status(&elsewhere, &id, &run_id).await, later(&elsewhere, &id).await.len()), (RunStatus::Running, 0));
    work.gate.add_permits(1);
    let [a, b] = asked(&elsewhere, &id).await;
    assert_eq!(status(&elsewhere, &id, &run_id).await, RunStatus::Suspended);
    let before = InterruptQuery {
        scope: Scope::session(id.clone()),
        after_response_completed: Some(false),
        ..InterruptQuery::default()
    };
    assert!(elsewhere.list_interrupts(before).await.unwrap().interrupts.is_empty());

    elsewhere.resume(a.handle(), ResumeResponse::text("x")).await.unwrap();
    assert_eq!((status(&agent, &id, &run_id).await, ids(&agent, &id).await), (RunStatus::Suspended, vec!["b".into()]));
    agent.resume(b.handle(), ResumeResponse::text("y")).await.unwrap();
    assert_eq!((status(&elsewhere, &id, &run_id).await, ids(&elsewhere, &id).await.len()), (RunStatus::Completed, 0));
}

#[tokio::test]
async fn b179_an_answered_question_after_a_response_is_closed_and_its_sibling_is_not() {
    let world = World::new();
    let agent = world.agent(&Work::free().workflow()).await;
    let id = session("session-closed");
    responded(&agent, &id).await;
    let [a, b] = asked(&agent, &id).await;
    let scope = Scope::session(id.clone());
    agent.answer(&a.id, scope.clone(), ResumeResponse::text("x"), None).await.unwrap();
    assert_eq!(ids(&agent, &id).await, ["b"]);
    let of = async |question: &kortyx::Interrupt| agent.get_interrupt(&question.id, &scope).await.unwrap().unwrap();
    assert_eq!((of(&a).await.status, of(&b).await.status), (InterruptStatus::Answered, InterruptStatus::Pending));
    assert!(of(&a).await.after_response_completed);
}

#[tokio::test]
async fn b180_from_its_acceptance_on_a_question_after_a_response_is_not_shown_as_open() {
    let world = World::new();
    let work = Work::free();
    let registered = work.workflow();
    let process = world.process(move |agent: kortyx::AgentBuilder| agent.workflow(&registered)).await;
    let agent = process.agent();
    let id = session("session-shown");
    let run_id = responded(agent, &id).await;
    let questions = asked(agent, &id).await;
    let ending = process.store().hold(Op::Finish, When::Before);
    let answer = |question: &kortyx::Interrupt| Answer::with_handle(question.handle(), ResumeResponse::text("x"));
    agent.submit(questions.iter().map(answer).collect()).await.unwrap();
    ending.reached().await;
    let elsewhere = world.agent(&work.workflow()).await;
    for surface in [agent, &elsewhere] {
        assert!(later(surface, &id).await.is_empty());
        assert_eq!(status(surface, &id, &run_id).await, RunStatus::Running);
    }
    ending.open();
    ends(&elsewhere, questions[0].handle(), RunStatus::Completed).await;
}
