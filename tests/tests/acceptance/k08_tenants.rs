//! K8: who may see, who may answer, and who did.

use kortyx::{
    Agent, Answer, ChatOptions, ExecuteOptions, NodeOutput, RefusalReason, Text, Workflow,
    protocol::{ChatMessage, FailureCode, RequestId, ResumeHandle, ResumeMeta, ResumeResponse, RunId, SessionId},
    store::{CancelTarget, InterruptQuery, InterruptStatus, RunStatus, Scalar, Scope},
};
use kortyx_tests::{World, code, kinds, one_node, only, reason};
use serde_json::json;

fn asking() -> Workflow {
    one_node("asking", |ctx| async move {
        let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    })
}

fn tenant(name: &str) -> Scope {
    Scope::default().with("tenant", Scalar::Text(name.into()))
}

/// A run of tenant `a` that waits.
async fn of_tenant_a(agent: &Agent) -> ResumeHandle {
    let options = ExecuteOptions::new().context("tenant", "a");
    only(&agent.execute(&asking(), json!({}), options).await.unwrap()).resume
}

async fn assert_untouched(agent: &Agent, gate: &ResumeHandle) {
    let own = tenant("a");
    let question = agent.get_interrupt(&gate.request_id, &own).await.unwrap().unwrap();
    let run = agent.get_run(&gate.run_id, &own).await.unwrap().unwrap();
    assert_eq!((question.status, run.status), (InterruptStatus::Pending, RunStatus::Suspended));
}

#[tokio::test]
async fn b113_to_another_tenant_a_run_and_its_questions_do_not_exist_for_any_verb() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let gate = of_tenant_a(&agent).await;
    let never_issued = RequestId::new("human-00000000-0000-4000-8000-000000000000").unwrap();
    let foreign = [
        tenant("b"),
        tenant("a").with("role", Scalar::Text("admin".into())),
        Scope::default().with("tenant", Scalar::Bool(true)),
        Scope::session(SessionId::new("session-b").unwrap()),
        Scope { session_id: Some(gate.session_id.clone()), ..tenant("b") },
    ];
    for scope in foreign {
        assert!(agent.get_interrupt(&gate.request_id, &scope).await.unwrap().is_none());
        assert!(agent.get_run(&gate.run_id, &scope).await.unwrap().is_none());
        for run_id in [None, Some(gate.run_id.clone())] {
            let query = InterruptQuery { scope: scope.clone(), run_id, limit: 50, ..Default::default() };
            assert!(agent.list_interrupts(query).await.unwrap().interrupts.is_empty());
        }
        // What exists elsewhere and what does not exist at all are told apart by nothing.
        for (id, response) in [&gate.request_id, &never_issued].into_iter().flat_map(|id| {
            // A fitting answer, and one whose faults would tell what was asked.
            [ResumeResponse::text("mine"), ResumeResponse::text(""), ResumeResponse::select(["x"])].map(|it| (id, it))
        }) {
            let refused = agent.answer(id, scope.clone(), response.clone(), Some("mallory".into())).await;
            assert_eq!(reason(refused), RefusalReason::Unknown);
            let refused = agent.answer_batch([(id.clone(), response.clone())], scope.clone(), None).await;
            assert_eq!(code(refused), FailureCode::NotFound);
        }
        for target in [CancelTarget::Run(gate.run_id.clone()), CancelTarget::Session(gate.session_id.clone())] {
            assert!(agent.cancel(target, scope.clone(), None).await.unwrap().is_empty());
        }
        assert_untouched(&agent, &gate).await;
    }
    let unknown = CancelTarget::Run(RunId::new("run-none").unwrap());
    assert!(agent.cancel(unknown, tenant("a"), None).await.unwrap().is_empty());
}

#[tokio::test]
async fn b113_a_batch_with_one_foreign_question_applies_nothing() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let gate = of_tenant_a(&agent).await;
    let own = ExecuteOptions::new().context("tenant", "b");
    let own = only(&agent.execute(&asking(), json!({}), own).await.unwrap()).resume;
    let batch = [&own, &gate].map(|handle| (handle.request_id.clone(), ResumeResponse::text("x")));
    assert_eq!(reason(agent.answer_batch(batch, tenant("b"), None).await), RefusalReason::Unknown);
    assert_untouched(&agent, &gate).await;
    let question = agent.get_interrupt(&own.request_id, &tenant("b")).await.unwrap().unwrap();
    assert_eq!(question.status, InterruptStatus::Pending);
}

#[tokio::test]
async fn b113_a_token_in_another_session_consumes_nothing_and_a_guessed_one_is_no_token() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let gate = of_tenant_a(&agent).await;
    let foreign = ChatOptions::new().session(SessionId::new("session-b").unwrap());
    let message = |meta: &ResumeMeta| vec![ChatMessage::user("mine").with_resume(meta)];

    let mut meta = ResumeMeta::new(gate.token.clone(), gate.request_id.clone());
    meta.text = Some("mine".into());
    let chunks = agent.stream_chat(message(&meta), foreign.clone()).collect().await;
    assert_eq!(kinds(&chunks), ["session", "error", "done"]);
    let stolen = ResumeHandle { session_id: SessionId::new("session-b").unwrap(), ..gate.clone() };
    assert_eq!(reason(agent.resume(&stolen, ResumeResponse::text("mine")).await), RefusalReason::Mismatch);

    // With the id alone, which is public, a message is an ordinary turn of its own session.
    let mut guessed = gate.token.expose().to_owned();
    guessed.replace_range(60.., "AAAA");
    let token = kortyx::protocol::ResumeToken::parse(guessed).unwrap();
    meta.token = token.clone();
    let chunks = agent.stream_chat(message(&meta), foreign).collect().await;
    assert_eq!(kinds(&chunks), ["session", "interrupt", "checkpoint", "done"]);
    let guess = ResumeHandle { token, ..gate.clone() };
    assert_eq!(reason(agent.resume(&guess, ResumeResponse::text("mine")).await), RefusalReason::Unknown);
    assert_untouched(&agent, &gate).await;
}

#[tokio::test]
async fn b113_without_a_scope_every_verb_denies() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let gate = of_tenant_a(&agent).await;
    let (none, response) = (Scope::default(), ResumeResponse::text("x"));
    let denied = [
        code(agent.get_interrupt(&gate.request_id, &none).await),
        code(agent.get_run(&gate.run_id, &none).await),
        code(agent.list_interrupts(InterruptQuery { limit: 50, ..Default::default() }).await),
        code(agent.answer(&gate.request_id, none.clone(), response.clone(), None).await),
        code(agent.answer_batch([(gate.request_id.clone(), response)], none.clone(), None).await),
        code(agent.cancel(CancelTarget::Run(gate.run_id.clone()), none.clone(), None).await),
        code(agent.cancel(CancelTarget::Session(gate.session_id.clone()), none, None).await),
    ];
    assert_eq!(denied, [FailureCode::ScopeRequired; 7]);
    assert_untouched(&agent, &gate).await;
}

#[tokio::test]
async fn b113_a_run_without_an_owner_belongs_to_no_tenant() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let begun = agent.execute(&asking(), json!({}), ExecuteOptions::new().context("other", 1)).await.unwrap();
    let gate = only(&begun).resume;
    let null = ExecuteOptions::new().context("tenant", json!(null));
    let with_null = only(&agent.execute(&asking(), json!({}), null).await.unwrap()).resume;
    for (scope, gate) in
        [(tenant("a"), &gate), (tenant(""), &gate), (tenant("null"), &with_null), (tenant(""), &with_null)]
    {
        assert!(agent.get_interrupt(&gate.request_id, &scope).await.unwrap().is_none());
        assert_eq!(
            reason(agent.answer(&gate.request_id, scope, ResumeResponse::text("x"), None).await),
            RefusalReason::Unknown
        );
    }
}

/// Whether somebody may decide is the application's to say before it hands an answer over; who did is kept for ever.
#[tokio::test]
async fn b114_the_actor_of_every_form_of_answer_is_recorded_with_it() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let response = ResumeResponse::text("yes");
    for way in ["answer", "answer_batch", "respond", "submit", "chat"] {
        let gate = of_tenant_a(&agent).await;
        let by_handle = Answer::with_handle(&gate, response.clone()).by("anna");
        match way {
            "answer" => drop(agent.answer(&gate.request_id, tenant("a"), response.clone(), Some("anna".into())).await),
            "answer_batch" => {
                let batch = [(gate.request_id.clone(), response.clone())];
                drop(agent.answer_batch(batch, tenant("a"), Some("anna".into())).await);
            }
            "respond" => drop(agent.respond(vec![by_handle]).await),
            "submit" => {
                let accepted = agent.submit(vec![by_handle]).await.unwrap();
                assert_eq!(accepted.receipts[0].actor.as_deref(), Some("anna"));
            }
            _ => {
                let mut meta = ResumeMeta::new(gate.token.clone(), gate.request_id.clone());
                meta.text = Some("yes".into());
                let message = vec![ChatMessage::user("yes").with_resume(&meta)];
                agent.stream_chat(message, ChatOptions::new().actor("anna")).collect().await;
            }
        }
        let kept = world.store().await.interrupt(&gate.request_id).await.unwrap().unwrap();
        let receipt = kept.receipt.unwrap();
        assert_eq!((receipt.actor.as_deref(), receipt.request_id), (Some("anna"), gate.request_id.clone()), "{way}");

        // A repeat by somebody else gets the first receipt, and does not take the decision over.
        let repeat = Answer::in_scope(gate.request_id, tenant("a"), response.clone()).by("bert");
        let repeated = agent.submit(vec![repeat]).await.unwrap();
        assert_eq!((repeated.receipts[0].actor.as_deref(), repeated.is_duplicate), (Some("anna"), true));
    }
}

/// No self-approval: the requester is part of the run's context, so the rule is one comparison before the answer.
#[tokio::test]
async fn b114_an_application_can_refuse_self_approval_by_scope() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let options = ExecuteOptions::new().context("tenant", "a").context("requester", "anna");
    let gate = only(&agent.execute(&asking(), json!({}), options).await.unwrap()).resume;
    let decide = async |actor: &str| {
        let own = tenant("a").with("requester", Scalar::Text(actor.into()));
        if agent.get_interrupt(&gate.request_id, &own).await.unwrap().is_some() {
            return None;
        }
        let answer = agent.answer(&gate.request_id, tenant("a"), ResumeResponse::text("yes"), Some(actor.into()));
        Some(answer.await.unwrap().status())
    };
    assert_eq!(decide("anna").await, None);
    assert_untouched(&agent, &gate).await;
    assert_eq!(decide("bert").await, Some("completed"));
    let kept = world.store().await.interrupt(&gate.request_id).await.unwrap().unwrap();
    assert_eq!(kept.receipt.unwrap().actor.as_deref(), Some("bert"));
}
