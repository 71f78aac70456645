//! K8: what a run asks after its response belongs to its tenant like anything else, and who answered is kept.

use kortyx::{
    RefusalReason,
    protocol::{FailureCode, ResumeResponse},
    store::{CancelTarget, InterruptQuery, InterruptStatus, RunStatus, Scalar, Scope},
};
use kortyx_tests::{World, code, ends, reason};

use crate::background::{Work, asked, responded, session, status};

fn tenant(name: &str) -> Scope {
    Scope::default().with("tenant", Scalar::Text(name.into()))
}

#[tokio::test]
async fn b113_to_another_tenant_what_is_asked_after_a_response_does_not_exist() {
    let world = World::new();
    let agent = world.agent(&Work::free().workflow()).await;
    let id = session("session-background");
    let run_id = responded(&agent, &id).await;
    let [a, _] = asked(&agent, &id).await;
    for scope in [tenant("b"), Scope { session_id: Some(id.clone()), ..tenant("b") }, Scope::session(session("other"))]
    {
        for after_response_completed in [None, Some(true)] {
            let query = InterruptQuery { scope: scope.clone(), after_response_completed, ..Default::default() };
            assert!(agent.list_interrupts(query).await.unwrap().interrupts.is_empty());
        }
        assert!(agent.get_interrupt(&a.id, &scope).await.unwrap().is_none());
        let answer = agent.answer(&a.id, scope.clone(), ResumeResponse::text("mine"), Some("mallory".into()));
        assert_eq!(reason(answer.await), RefusalReason::Unknown);
        assert!(agent.cancel(CancelTarget::Run(run_id.clone()), scope, None).await.unwrap().is_empty());
    }
    let nobody = InterruptQuery { after_response_completed: Some(true), ..Default::default() };
    assert_eq!(code(agent.list_interrupts(nobody).await), FailureCode::ScopeRequired);
    let question = agent.get_interrupt(&a.id, &tenant("a")).await.unwrap().unwrap();
    assert_eq!(question.status, InterruptStatus::Pending);
    assert_eq!(status(&agent, &id, &run_id).await, RunStatus::Suspended);
}

#[tokio::test]
async fn b114_who_answered_after_a_response_is_recorded() {
    let world = World::new();
    let agent = world.agent(&Work::free().workflow()).await;
    let id = session("session-background");
    responded(&agent, &id).await;
    for (question, actor) in asked(&agent, &id).await.iter().zip(["anna", "bert"]) {
        agent.answer(&question.id, tenant("a"), ResumeResponse::text("x"), Some(actor.into())).await.unwrap();
        let kept = world.store().await.interrupt(&question.id).await.unwrap().unwrap();
        assert_eq!(kept.receipt.unwrap().actor.as_deref(), Some(actor));
        if actor == "bert" {
            ends(&agent, question.handle(), RunStatus::Completed).await;
        }
    }
}
