//! K14: what is cancelled has ended, for everybody and at once, and the conversation goes on.

use std::{future::pending, sync::Arc, time::Duration};

use kortyx::{
    Agent, AskExt, ChatOptions, ExecuteOptions, Fact, NodeError, NodeOutput, RefusalReason, Text, Workflow,
    protocol::{ChatMessage, ExecutionResult, FailureCode, ResumeResponse, SessionId},
    runtime::Limits,
    store::{CancelOutcome, CancelTarget, InterruptQuery, InterruptStatus, RunStatus, Scope},
};
use kortyx_tests::{
    Counter, Facts, Heard, Op, When, World, approve_or_decline, ends, eventually, handle, kinds, one_node, only,
    reason, with,
};
use serde_json::json;
use tokio::{join, sync::Semaphore};
use tracing::{Level, subscriber::set_default};

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn asking() -> Workflow {
    one_node("asking", |ctx| async move {
        let (a, b) = join!(ctx.interrupt("a", Text::new("A?")), ctx.interrupt("b", Text::new("B?")));
        Ok(NodeOutput::new().data("answers", &[a?, b?]))
    })
}

fn at_once() -> Limits {
    let mut limits = Limits::default();
    limits.cancel_grace = Duration::ZERO;
    limits
}

#[tokio::test]
async fn b167_a_paused_run_that_is_cancelled_has_ended_on_every_surface() {
    let world = World::new();
    let facts = Facts::new();
    let agent = world.builder().await.workflow(&asking()).telemetry(facts.clone()).build().await.unwrap();
    let paused = agent.execute(&asking(), json!({}), ExecuteOptions::new()).await.unwrap();
    let (a, scope) = (handle(&paused, "a"), Scope::session(paused.session_id().clone()));

    let target = CancelTarget::Run(paused.run_id().clone());
    let outcomes = agent.cancel(target.clone(), scope.clone(), Some("changed my mind".into())).await.unwrap();
    assert_eq!(outcomes, [CancelOutcome::Cancelled(paused.run_id().clone())]);

    let run = agent.get_run(paused.run_id(), &scope).await.unwrap().unwrap();
    assert_eq!((run.status, run.reason.as_deref()), (RunStatus::Cancelled, Some("changed my mind")));
    let query = InterruptQuery { scope: scope.clone(), limit: 9, ..Default::default() };
    assert!(agent.list_interrupts(query).await.unwrap().interrupts.is_empty());
    for question in paused.interrupts() {
        let closed = agent.get_interrupt(&question.request_id, &scope).await.unwrap().unwrap();
        assert_eq!(closed.status, InterruptStatus::Cancelled);
    }
    let late = agent.resume(&a, ResumeResponse::text("late")).await;
    assert_eq!(reason(late), RefusalReason::Cancelled);
    assert_eq!(FailureCode::InterruptCancelled.status(), 410);
    let again = agent.cancel(target, scope, None).await.unwrap();
    assert_eq!(again, [CancelOutcome::Ended(paused.run_id().clone(), RunStatus::Cancelled)]);
    assert_eq!(facts.count(|fact| matches!(fact, Fact::InterruptCancelled { .. })), 2);
    assert_eq!(facts.count(|fact| matches!(fact, Fact::RunFinished { status: RunStatus::Cancelled, .. })), 1);
}

#[tokio::test]
async fn b168_cancelling_a_session_ends_runs_that_work_and_runs_that_wait() {
    let world = World::new();
    let entered = Counter::new();
    let hanging = one_node(
        "hanging",
        with(entered.clone(), |ctx, entered| async move {
            entered.hit();
            ctx.step("hang", pending::<Result<(), NodeError>>).await?;
            Ok(NodeOutput::new())
        }),
    );
    let builder = world.builder().await.workflow(&hanging).workflow(&asking()).run_limits(at_once());
    let agent = builder.build().await.unwrap();
    let id = session("session-abort");
    let options = ExecuteOptions::new().session(id.clone());
    let waiting = agent.execute(&asking(), json!({}), options.clone()).await.unwrap();
    let other = agent.execute(&asking(), json!({}), ExecuteOptions::new()).await.unwrap();
    let abort = async {
        eventually("the other run works", || async { entered.count() == 1 }).await;
        agent.cancel(CancelTarget::Session(id.clone()), Scope::session(id.clone()), None).await.unwrap()
    };
    let (working, mut outcomes) = join!(agent.execute(&hanging, json!({}), options), abort);

    let working = working.unwrap();
    assert!(matches!(working, ExecutionResult::Cancelled { .. }), "{working:?}");
    outcomes.sort_by_key(|outcome| matches!(outcome, CancelOutcome::Requested(_)));
    let expected =
        [CancelOutcome::Cancelled(waiting.run_id().clone()), CancelOutcome::Requested(working.run_id().clone())];
    assert_eq!(outcomes, expected);
    for run_id in [working.run_id(), waiting.run_id()] {
        let run = agent.get_run(run_id, &Scope::session(id.clone())).await.unwrap().unwrap();
        assert_eq!(run.status, RunStatus::Cancelled);
    }
    let scope = Scope::session(other.session_id().clone());
    assert_eq!(agent.get_run(other.run_id(), &scope).await.unwrap().unwrap().status, RunStatus::Suspended);
}

/// Where a run is cancelled.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    BeforeTheFirstResult,
    BetweenResults,
    WhileThePauseIsSaved,
    WhileItWaits,
}

/// Two steps that wait to be let go, then a question.
fn two_steps(gate: &Arc<Semaphore>, entered: &Counter) -> Workflow {
    one_node(
        "steps",
        with((gate.clone(), entered.clone()), |ctx, (gate, entered)| async move {
            for step in ["one", "two"] {
                let work = || async {
                    entered.hit();
                    gate.acquire().await.map(tokio::sync::SemaphorePermit::forget)
                };
                ctx.step(step, work).await?;
            }
            let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
            Ok(NodeOutput::new().data("answer", &answer))
        }),
    )
}

#[tokio::test]
async fn b169_wherever_a_run_is_cancelled_the_next_message_works() {
    for moment in
        [Moment::BeforeTheFirstResult, Moment::BetweenResults, Moment::WhileThePauseIsSaved, Moment::WhileItWaits]
    {
        let world = World::new();
        let (gate, entered) = (Arc::new(Semaphore::new(0)), Counter::new());
        let workflow = two_steps(&gate, &entered);
        let registered = workflow.clone();
        let process = world.process(move |agent| agent.workflow(&registered).run_limits(at_once())).await;
        let saving = (moment == Moment::WhileThePauseIsSaved).then(|| process.store().hold(Op::Suspend, When::Before));
        let agent = process.agent();
        let id = session("session-stopped");
        let options = ChatOptions::new().session(id.clone());
        let turn = agent.stream_chat(vec![ChatMessage::user("go")], options.clone()).collect();
        let stop = async {
            let steps = match moment {
                Moment::BeforeTheFirstResult => 1,
                _ => 2,
            };
            gate.add_permits(steps - 1);
            eventually("it got there", || async { entered.count() == steps as u64 }).await;
            match (moment, &saving) {
                (_, Some(saving)) => {
                    gate.add_permits(1);
                    saving.reached().await;
                }
                (Moment::WhileItWaits, _) => {
                    gate.add_permits(1);
                    eventually("it waits", || async { agent.driven_runs() == 0 }).await;
                }
                _ => {}
            }
            let stopped = agent.cancel(CancelTarget::Session(id.clone()), Scope::session(id.clone()), None).await;
            assert_eq!(stopped.unwrap().len(), 1, "{moment:?}");
            saving.iter().for_each(kortyx_tests::Gate::open);
        };
        let (chunks, ()) = join!(turn, stop);
        let seen: &[&str] = match moment {
            Moment::WhileItWaits => &["session", "interrupt", "checkpoint", "done"],
            _ => &["session", "cancelled", "done"],
        };
        assert_eq!(kinds(&chunks), seen, "{moment:?}");
        assert_closed(agent, &id).await;

        gate.add_permits(2);
        let next = agent.stream_chat(vec![ChatMessage::user("and now")], options).collect().await;
        assert_eq!(kinds(&next), ["session", "interrupt", "checkpoint", "done"], "{moment:?}");
    }
}

async fn assert_closed(agent: &Agent, session_id: &SessionId) {
    let query = InterruptQuery { scope: Scope::session(session_id.clone()), limit: 9, ..Default::default() };
    assert!(agent.list_interrupts(query).await.unwrap().interrupts.is_empty());
}

#[tokio::test]
async fn b169_a_cancelled_answer_ends_the_run_and_its_other_questions() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let paused = agent.execute(&asking(), json!({}), ExecuteOptions::new()).await.unwrap();
    let result = agent.resume(&handle(&paused, "a"), ResumeResponse::Cancel).await.unwrap();
    assert!(matches!(result, ExecutionResult::Cancelled { .. }), "{result:?}");
    assert_closed(&agent, paused.session_id()).await;
    assert_eq!(reason(agent.resume(&handle(&paused, "b"), ResumeResponse::text("x")).await), RefusalReason::Cancelled);
    let next = ExecuteOptions::new().session(paused.session_id().clone());
    assert_eq!(agent.execute(&asking(), json!({}), next).await.unwrap().interrupts().len(), 2);
}

#[tokio::test]
async fn b171_a_timeout_that_the_author_dealt_with_is_no_failure() {
    let world = World::new();
    let (facts, heard) = (Facts::new(), Heard::default());
    let workflow = one_node("default", |ctx| async move {
        let ask = approve_or_decline("Go on?").expires_in(Duration::from_secs(10)).default_on_expiry("decline");
        Ok(NodeOutput::new().data("answer", &ctx.interrupt("ask", ask).await?))
    });
    let agent = world.builder().await.workflow(&workflow).telemetry(facts.clone()).build().await.unwrap();
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    world.advance(Duration::from_secs(10));
    let listening = set_default(heard.clone());
    let pass = agent.worker().pass().await.unwrap();
    assert_eq!((pass.expired, pass.defaulted, pass.ended), (1, 1, 0));
    let gate = only(&paused).resume;
    ends(&agent, &gate, RunStatus::Completed).await;
    drop(listening);
    assert_eq!((heard.at(Level::ERROR), heard.at(Level::WARN)), (Vec::new(), Vec::new()));
    let run = agent.get_run(&gate.run_id, &Scope::session(gate.session_id.clone())).await.unwrap().unwrap();
    assert_eq!(run.data.unwrap().to_value().unwrap()["answer"], "decline");
    let late = agent.resume(&gate, ResumeResponse::select(["approve"])).await;
    assert_eq!(reason(late), RefusalReason::Expired);
    let completed = |fact: &Fact| matches!(fact, Fact::RunFinished { status: RunStatus::Completed, .. });
    let by_default = |fact: &Fact| matches!(fact, Fact::InterruptExpired { by_default: true, .. });
    let ended_badly = |fact: &Fact| matches!(fact, Fact::RunFinished { status, .. } if *status != RunStatus::Completed);
    assert_eq!((facts.count(completed), facts.count(by_default), facts.count(ended_badly)), (1, 1, 0));
}
