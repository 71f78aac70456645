//! Answers: what is accepted, what is refused, and what a refusal costs.

use std::time::Duration;

use kortyx_orchestrator::{Answer, OrchestratorError, RefusalReason};
use kortyx_protocol::{
    ExecutionResult, Failure, FailureCode, RequestId, ResumeResponse, ResumeToken, RunId, SessionId,
};
use kortyx_store::{CancelTarget, InterruptQuery, Scalar, Scope};
use serde_json::json;

use crate::world::{World, ask, code, data, handle, in_session, lenient, open, pair, review, scope, session};

fn approve() -> ResumeResponse {
    ResumeResponse::select(["approve"])
}

#[tokio::test]
async fn a_wrong_answer_costs_nothing() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    for wrong in
        [ResumeResponse::select(["aprove"]), ResumeResponse::text("approve"), ResumeResponse::value(json!(null))]
    {
        let failure: Failure = agent.resume(&asked, wrong).await.unwrap_err().into();
        assert_eq!((failure.code, failure.status), (FailureCode::InvalidResponse, Some(422)));
        assert!(failure.issues.is_some_and(|issues| !issues.is_empty()));
    }
    assert_eq!(data(agent.resume(&asked, approve()).await.unwrap()), json!({"decision": "approve"}));
}

#[tokio::test]
async fn the_accepted_answer_given_again_gets_the_run_as_it_stands() {
    let (world, workflow) = (World::new(), pair());
    let agent = world.agent(&workflow).await;
    let asked = ask(&agent, &workflow).await;
    let (a, b) = (handle(&asked, "a"), handle(&asked, "b"));
    for _ in 0..2 {
        let result = agent.resume(&a, ResumeResponse::text("one")).await.unwrap();
        assert_eq!(open(&result).len(), 1, "`b` is still open");
        assert_eq!(open(&result)[0].request_id, b.request_id);
    }
    agent.resume(&b, ResumeResponse::text("two")).await.unwrap();
    let result = agent.resume(&a, ResumeResponse::text("one")).await.unwrap();
    assert_eq!(data(result), json!({"a": "one", "b": "two"}));
    assert_eq!(world.facts.take().iter().filter(|fact| *fact == "AnswerRepeated").count(), 2);
}

#[tokio::test]
async fn another_answer_than_the_accepted_one_is_a_conflict() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    agent.resume(&asked, approve()).await.unwrap();
    let other = agent.resume(&asked, ResumeResponse::select(["revise"])).await;
    assert_eq!(code(other), FailureCode::InterruptAlreadyResolved);
    // Not even an answer that would not fit learns more.
    let other = agent.resume(&asked, ResumeResponse::text("?")).await;
    assert_eq!(code(other), FailureCode::InterruptAlreadyResolved);
    assert_eq!(world.facts.take().iter().filter(|fact| *fact == "AnswerConflicted").count(), 2);
}

#[tokio::test]
async fn of_many_answers_at_once_one_is_accepted() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    let answers = (0..100).map(|n| {
        let option = if n % 2 == 0 { "approve" } else { "revise" };
        agent.resume(&asked, ResumeResponse::select([option]))
    });
    let outcomes = futures_util::future::join_all(answers).await;
    let accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let conflicts = outcomes.into_iter().filter_map(Result::err).map(|error| error.code());
    assert_eq!(accepted, 50, "the first and its repeats");
    assert!(conflicts.into_iter().all(|code| code == FailureCode::InterruptAlreadyResolved));
    let facts = world.facts.take();
    assert_eq!(facts.iter().filter(|fact| *fact == "InterruptResolved").count(), 1);
    assert_eq!(facts.iter().filter(|fact| *fact == "RunFinished").count(), 1);
}

#[tokio::test]
async fn an_answer_past_the_deadline_is_told_so() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    world.clock.advance(Duration::from_mins(15));
    assert_eq!(code(agent.resume(&asked, approve()).await), FailureCode::InterruptExpired);
    assert_eq!(world.facts.take(), ["InterruptCreated", "InterruptExpired", "AnswerLate"]);
}

#[tokio::test]
async fn an_answer_to_a_cancelled_question_is_told_so() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    agent.cancel(CancelTarget::Run(asked.run_id.clone()), scope(), None).await.unwrap();
    assert_eq!(code(agent.resume(&asked, approve()).await), FailureCode::InterruptCancelled);
}

#[tokio::test]
async fn an_answer_to_a_withdrawn_question_is_told_so() {
    let workflow = race();
    let agent = World::new().agent(&workflow).await;
    let asked = ask(&agent, &workflow).await;
    let (left, right) = (handle(&asked, "left"), handle(&asked, "right"));
    assert_eq!(data(agent.resume(&left, ResumeResponse::text("L")).await.unwrap()), json!({"first": "L"}));
    assert_eq!(code(agent.resume(&right, ResumeResponse::text("R")).await), FailureCode::InterruptSuperseded);
}

/// Takes whichever answer comes first.
fn race() -> kortyx_runtime::Workflow {
    use kortyx_contracts::Text;
    use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
    let node = |ctx: NodeContext| async move {
        let first = tokio::select! {
            biased;
            left = ctx.interrupt("left", Text::new("L?")) => left?,
            right = ctx.interrupt("right", Text::new("R?")) => right?,
        };
        Ok(NodeOutput::new().data("first", &first))
    };
    Workflow::builder("race").node("first", node).build().unwrap()
}

#[tokio::test]
async fn b015_a_forged_or_borrowed_token_opens_nothing() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let mine = handle(&ask(&agent, &workflow).await, "approval");
    let other = handle(&ask(&agent, &workflow).await, "approval");

    let mut never_issued = mine.clone();
    never_issued.token = ResumeToken::mint([7; 16], [7; 32]);
    never_issued.request_id = RequestId::from_random([7; 16]);
    assert_eq!(code(agent.resume(&never_issued, approve()).await), FailureCode::NotFound);

    let mut guessed = mine.clone();
    guessed.token = ResumeToken::parse("guess").unwrap();
    assert_eq!(code(agent.resume(&guessed, approve()).await), FailureCode::NotFound);

    let mut borrowed = mine.clone();
    borrowed.token = other.token.clone();
    assert_eq!(code(agent.resume(&borrowed, approve()).await), FailureCode::InterruptMismatch);

    let mut elsewhere = mine.clone();
    elsewhere.session_id = SessionId::new("session-2").unwrap();
    assert_eq!(code(agent.resume(&elsewhere, approve()).await), FailureCode::InterruptMismatch);

    let mut another_run = mine.clone();
    another_run.run_id = RunId::new("run-2").unwrap();
    assert_eq!(code(agent.resume(&another_run, approve()).await), FailureCode::InterruptMismatch);

    assert_eq!(agent.driven_runs(), 0);
    assert_eq!(data(agent.resume(&mine, approve()).await.unwrap()), json!({"decision": "approve"}));
}

#[tokio::test]
async fn a_caller_with_a_scope_needs_no_token() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let options = in_session().context("tenant", "acme").context("seats", 3);
    let asked = agent.execute(&workflow, json!({}), options).await.unwrap();
    let id = open(&asked)[0].request_id.clone();

    let outside = Scope::default().with("tenant", Scalar::Text("other".into()));
    assert_eq!(code(agent.answer(&id, outside, approve(), None).await), FailureCode::NotFound);
    let as_text = Scope::default().with("seats", Scalar::Text("3".into()));
    assert_eq!(code(agent.answer(&id, as_text, approve(), None).await), FailureCode::NotFound);
    let none = agent.answer(&id, Scope::default(), approve(), None).await;
    assert_eq!(code(none), FailureCode::ScopeRequired);

    let inside = Scope::default().with("tenant", Scalar::Text("acme".into())).with("seats", Scalar::Int(3));
    let receipts =
        agent.submit(vec![Answer::in_scope(id.clone(), inside.clone(), approve()).by("ann")]).await.unwrap().receipts;
    assert_eq!((receipts[0].actor.as_deref(), receipts[0].seq), (Some("ann"), 1));
    let again = agent.answer(&id, inside, approve(), Some("bob".into())).await.unwrap();
    assert_eq!(data(again), json!({"decision": "approve"}));
}

#[tokio::test]
async fn b033_a_batch_is_taken_whole() {
    let (world, workflow) = (World::new(), pair());
    let agent = world.agent(&workflow).await;
    let asked = ask(&agent, &workflow).await;
    let answers = [("b", "two"), ("a", "one")].map(|(id, text)| (handle(&asked, id), ResumeResponse::text(text)));
    assert_eq!(data(agent.resume_batch(answers).await.unwrap()), json!({"a": "one", "b": "two"}));
}

#[tokio::test]
async fn b024_a_batch_with_one_refused_answer_applies_none_and_names_it() {
    let (world, workflow) = (World::new(), pair());
    let agent = world.agent(&workflow).await;
    let asked = ask(&agent, &workflow).await;
    let (a, b) = (handle(&asked, "a"), handle(&asked, "b"));
    let mut unknown = b.clone();
    unknown.token = ResumeToken::mint([9; 16], [9; 32]);
    unknown.request_id = RequestId::from_random([9; 16]);
    let text = ResumeResponse::text;
    let error = agent.resume_batch([(a.clone(), text("one")), (unknown.clone(), text("x"))]).await.unwrap_err();
    let OrchestratorError::Refused(refused) = &error else { panic!("{error:?}") };
    assert_eq!((refused[0].index, &refused[0].request_id), (1, &unknown.request_id));
    assert_eq!(refused[0].reason, RefusalReason::Unknown);

    let failure: Failure =
        agent.resume_batch([(a.clone(), text("one")), (b.clone(), text(""))]).await.unwrap_err().into();
    assert_eq!(failure.code, FailureCode::InvalidResponse);
    assert_eq!(failure.issues.unwrap()[0].path, "/1");
    let details = json!({"refused": [{"requestId": b.request_id, "code": "INVALID_RESPONSE"}]});
    assert_eq!(failure.details, Some(details));

    let again = agent.list_interrupts(query()).await.unwrap();
    assert_eq!(again.interrupts.len(), 2, "nothing was applied");
    let result = agent.resume_batch([(a, text("one")), (b, text("two"))]).await.unwrap();
    assert_eq!(data(result), json!({"a": "one", "b": "two"}));
}

fn query() -> InterruptQuery {
    InterruptQuery { scope: scope(), ..Default::default() }
}

#[tokio::test]
async fn a_batch_within_a_scope_records_who_answers() {
    let (world, workflow) = (World::new(), pair());
    let agent = world.agent(&workflow).await;
    let asked = ask(&agent, &workflow).await;
    let answers = open(&asked).iter().map(|question| (question.request_id.clone(), ResumeResponse::text("x")));
    let answers: Vec<_> = answers.collect();
    let result = agent.answer_batch(answers, scope(), Some("ann".into())).await.unwrap();
    assert_eq!(data(result), json!({"a": "x", "b": "x"}));
}

#[tokio::test]
async fn an_empty_batch_and_one_over_two_runs_are_malformed() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    assert_eq!(code(agent.respond(Vec::new()).await), FailureCode::InvalidRequest);
    let (one, two) = (ask(&agent, &workflow).await, ask(&agent, &workflow).await);
    let answers = [&one, &two].map(|asked| (handle(asked, "approval"), approve()));
    assert_eq!(code(agent.resume_batch(answers).await), FailureCode::InvalidRequest);
    assert_eq!(agent.list_interrupts(query()).await.unwrap().interrupts.len(), 2);
}

#[tokio::test]
async fn an_answer_over_the_limit_is_refused() {
    let (world, workflow) = (World::new(), pair());
    let limits = kortyx_protocol::Limits { answer_bytes: 64, ..Default::default() };
    let agent = world.builder().workflow(&workflow).request_limits(limits).build().await.unwrap();
    let asked = ask(&agent, &workflow).await;
    let long = ResumeResponse::text("x".repeat(64));
    assert_eq!(code(agent.resume(&handle(&asked, "a"), long).await), FailureCode::PayloadTooLarge);
}

#[tokio::test]
async fn a_cancellation_ends_the_run_and_a_repeat_of_it_is_told_the_same() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    for _ in 0..2 {
        let result = agent.resume(&asked, ResumeResponse::Cancel).await.unwrap();
        assert!(matches!(result, ExecutionResult::Cancelled { .. }), "{result:?}");
    }
    assert_eq!(world.facts.take(), ["InterruptCreated", "InterruptCancelled", "RunFinished", "AnswerRepeated"]);
}

#[tokio::test]
async fn a_cancellation_that_the_node_allows_is_an_answer() {
    let (world, workflow) = (World::new(), lenient());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "name");
    let result = agent.resume(&asked, ResumeResponse::Cancel).await.unwrap();
    assert_eq!(data(result), json!({"name": null}));
}

#[tokio::test]
async fn questions_are_found_by_scope_and_show_no_token() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    let page = agent.list_interrupts(query()).await.unwrap();
    let shown = serde_json::to_string(&page).unwrap();
    assert!(!shown.contains(asked.token.expose()), "{shown}");
    assert!(!format!("{page:?}").contains(asked.token.expose()));
    let interrupt = &page.interrupts[0];
    assert_eq!((&interrupt.id, interrupt.input.question.as_deref()), (&asked.request_id, Some("Approve this draft?")));
    assert!(interrupt.handle().token.matches(&asked.token));

    assert!(agent.get_interrupt(&asked.request_id, &scope()).await.unwrap().is_some());
    let elsewhere = Scope::session(SessionId::new("session-2").unwrap());
    assert!(agent.get_interrupt(&asked.request_id, &elsewhere).await.unwrap().is_none());
    assert_eq!(code(agent.get_interrupt(&asked.request_id, &Scope::default()).await), FailureCode::ScopeRequired);
    assert_eq!(code(agent.list_interrupts(InterruptQuery::default()).await), FailureCode::ScopeRequired);
}

#[tokio::test]
async fn a_run_is_found_by_scope_with_its_outcome() {
    let (world, workflow) = (World::new(), review());
    let agent = world.agent(&workflow).await;
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    let run = agent.get_run(&asked.run_id, &scope()).await.unwrap().unwrap();
    assert_eq!((run.status.as_str(), run.workflow.as_str(), run.session_id), ("suspended", "review", session()));
    agent.resume(&asked, approve()).await.unwrap();
    let run = agent.get_run(&asked.run_id, &scope()).await.unwrap().unwrap();
    assert_eq!(run.status.as_str(), "completed");
    assert_eq!(run.data.unwrap().get(), r#"{"decision":"approve"}"#);
    let elsewhere = Scope::session(SessionId::new("session-2").unwrap());
    assert!(agent.get_run(&asked.run_id, &elsewhere).await.unwrap().is_none());
}
