//! K14: work after a response can be cancelled like any other.

use std::time::Duration;

use kortyx::{
    RefusalReason,
    protocol::ResumeResponse,
    runtime::Limits,
    store::{CancelOutcome, CancelTarget, InterruptStatus, RunStatus, Scope},
};
use kortyx_tests::{World, eventually, reason};

use crate::background::{Work, asked, later, responded, session, status};

fn at_once() -> Limits {
    let mut limits = Limits::default();
    limits.cancel_grace = Duration::ZERO;
    limits
}

#[tokio::test]
async fn b167_a_run_that_waits_after_its_response_and_is_cancelled_has_ended_on_every_surface() {
    let world = World::new();
    let agent = world.agent(&Work::free().workflow()).await;
    let id = session("session-cancel");
    let run_id = responded(&agent, &id).await;
    let [a, b] = asked(&agent, &id).await;
    let scope = Scope::session(id.clone());
    let outcomes = agent.cancel(CancelTarget::Run(run_id.clone()), scope.clone(), Some("no".into())).await.unwrap();
    assert_eq!(outcomes, [CancelOutcome::Cancelled(run_id.clone())]);
    assert_eq!(status(&agent, &id, &run_id).await, RunStatus::Cancelled);
    assert!(later(&agent, &id).await.is_empty());
    for question in [a, b] {
        let closed = agent.get_interrupt(&question.id, &scope).await.unwrap().unwrap();
        assert_eq!(closed.status, InterruptStatus::Cancelled);
        let late = agent.answer(&question.id, scope.clone(), ResumeResponse::text("late"), None).await;
        assert_eq!(reason(late), RefusalReason::Cancelled);
    }
}

#[tokio::test]
async fn b168_cancelling_a_session_ends_work_after_responses_too() {
    let world = World::new();
    let work = Work::held();
    let agent = world.builder().await.workflow(&work.workflow()).run_limits(at_once()).build().await.unwrap();
    let id = session("session-abort");
    let run_id = responded(&agent, &id).await;
    assert_eq!(status(&agent, &id, &run_id).await, RunStatus::Running);
    let outcomes = agent.cancel(CancelTarget::Session(id.clone()), Scope::session(id.clone()), None).await.unwrap();
    assert_eq!(outcomes, [CancelOutcome::Requested(run_id.clone())]);
    eventually("it stops", || async { status(&agent, &id, &run_id).await == RunStatus::Cancelled }).await;
    assert_eq!(work.done.count(), 0);
}

#[tokio::test]
async fn b169_after_cancelled_work_the_next_message_works() {
    let world = World::new();
    let work = Work::held();
    let agent = world.builder().await.workflow(&work.workflow()).run_limits(at_once()).build().await.unwrap();
    let id = session("session-next");
    let first = responded(&agent, &id).await;
    agent.cancel(CancelTarget::Run(first.clone()), Scope::session(id.clone()), None).await.unwrap();
    eventually("it stops", || async { status(&agent, &id, &first).await == RunStatus::Cancelled }).await;
    work.gate.add_permits(1);
    assert_ne!(responded(&agent, &id).await, first);
    assert_eq!(asked(&agent, &id).await.len(), 2);
}
