//! K7: a question has one deadline, from the moment it exists.

use std::{ffi::OsString, sync::Arc, time::Duration};

use kortyx::{
    Agent, AgentBuilder, AskExt, ExecuteOptions, NodeError, NodeOutput, Text, Workflow,
    protocol::{FailureCode, ResumeResponse, SessionId, Timestamp},
    runtime::Limits,
    store::{InterruptQuery, RunStatus, Scope},
};
use kortyx_tests::{
    Counter, Op, When, World, approve_or_decline, code, data, eventually, failure, one_node, only, takes_over, with,
};
use serde_json::json;
use tokio::sync::Semaphore;

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn query(session_id: &SessionId) -> InterruptQuery {
    InterruptQuery { scope: Scope::session(session_id.clone()), limit: 50, ..InterruptQuery::default() }
}

/// A step, then a question that may be answered for a minute.
fn for_a_minute(done: &Counter) -> Workflow {
    one_node(
        "minute",
        with(done.clone(), |ctx, done| async move {
            ctx.step("before", || async { Ok::<_, NodeError>(done.hit()) }).await?;
            let ask = Text::new("Well?").expires_in(Duration::from_mins(1));
            let answer = ctx.interrupt("ask", ask).await?;
            Ok(NodeOutput::new().data("answer", &answer))
        }),
    )
}

/// The wait and its deadline are one row of one transition: there is no moment between the two at which to fail.
#[tokio::test]
async fn b107_a_pause_that_failed_to_be_stored_is_retried_with_its_deadline() {
    let world = World::new();
    let done = Counter::new();
    let workflow = for_a_minute(&done);
    for (round, moment) in [When::Before, When::After].into_iter().enumerate() {
        let registered = workflow.clone();
        let process = world.process(move |agent| agent.workflow(&registered).cool_down(Duration::ZERO)).await;
        process.store().fail(Op::Suspend, moment, 1);
        let id = session(&format!("session-{round}"));
        let cut = process.agent().execute(&workflow, json!({}), ExecuteOptions::new().session(id.clone())).await;
        assert_eq!(code(cut), FailureCode::PersistenceError);

        let worker = world.agent(&workflow).await;
        eventually("there is a question", || async {
            worker.worker().pass().await.unwrap();
            !worker.list_interrupts(query(&id)).await.unwrap().interrupts.is_empty()
        })
        .await;
        let question = worker.list_interrupts(query(&id)).await.unwrap().interrupts.remove(0);
        assert_eq!(question.expires_at, question.created_at.saturating_add(Duration::from_mins(1)));
        world.advance(Duration::from_mins(1));
        worker.worker().pass().await.unwrap();
        let run = worker.get_run(&question.run_id, &Scope::session(id)).await.unwrap().unwrap();
        assert_eq!(run.status, RunStatus::Expired, "{moment:?}");
    }
    assert_eq!(done.count(), 2, "once for each run");
}

#[tokio::test]
async fn b107_a_time_that_is_no_time_is_refused_or_past_at_once_and_the_longest_ends_with_the_calendar() {
    let world = World::new();
    let workflow = one_node("times", |ctx| async move {
        let millis: u64 = ctx.input()?;
        let ask = Text::new("Well?").expires_in(Duration::from_millis(millis));
        let answer = ctx.interrupt("ask", ask).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let agent = world.agent(&workflow).await;
    // A negative duration cannot be made: `Duration` has none.
    let none = agent.execute(&workflow, json!(0), ExecuteOptions::new()).await.unwrap();
    assert_eq!(failure(none).code, FailureCode::ExecutionFailed);
    let longest = only(&agent.execute(&workflow, json!(u64::MAX), ExecuteOptions::new()).await.unwrap());
    assert_eq!(longest.expires_at, Timestamp::MAX);
    world.advance(Duration::from_hours(24 * 365 * 1000));
    let result = agent.resume(&longest.resume, ResumeResponse::text("at last")).await.unwrap();
    assert_eq!(data(result)["answer"], "at last");

    let no_time = world.builder().await.workflow(&plain()).question_ttl(Duration::ZERO).build().await.unwrap();
    let past = no_time.execute(&plain(), json!({}), ExecuteOptions::new()).await.unwrap();
    assert_eq!(failure(past).code, FailureCode::InterruptExpired, "nobody waits for what cannot come");
    for wrong in ["", "-1", "0", "soon", "1e3"] {
        let variables = move |name: &str| (name == "KORTYX_TTL_MS").then(|| OsString::from(wrong));
        let refused = Agent::builder().from_variables(variables).build().await.unwrap_err();
        assert!(matches!(refused, kortyx::BuildError::Environment(_)), "{wrong}: {refused:?}");
    }
}

fn plain() -> Workflow {
    one_node("plain", |ctx| async move {
        let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    })
}

/// One branch asks for ten seconds, with a default; the other hangs until it is let go, in every process.
fn ten_seconds(gate: &Arc<Semaphore>, entered: &Counter) -> Workflow {
    Workflow::builder("ten-seconds")
        .node("start", |_| async { Ok(NodeOutput::new()) })
        .node("ask", |ctx| async move {
            let ask = approve_or_decline("Go on?").expires_in(Duration::from_secs(10)).default_on_expiry("decline");
            Ok(NodeOutput::new().data("answer", &ctx.interrupt("ask", ask).await?))
        })
        .node(
            "work",
            with((gate.clone(), entered.clone()), |ctx, (gate, entered)| async move {
                let work = || async {
                    entered.hit();
                    gate.acquire().await.map(drop)
                };
                ctx.step("work", work).await?;
                Ok(NodeOutput::new())
            }),
        )
        .edge("start", "ask")
        .edge("start", "work")
        .build()
        .unwrap()
}

#[tokio::test]
async fn b108_a_deadline_stays_where_it_was_over_every_crash_and_recovery() {
    let world = World::new();
    let (gate, entered) = (Arc::new(Semaphore::new(0)), Counter::new());
    let workflow = ten_seconds(&gate, &entered);
    let began = world.store().await.now().await.unwrap();
    let configure = {
        let workflow = workflow.clone();
        move |agent: AgentBuilder| {
            let mut limits = Limits::default();
            limits.publish_delay = Duration::ZERO;
            agent.workflow(&workflow).run_limits(limits).lease_ttl(Duration::from_secs(1))
        }
    };
    let id = session("session-crashes");
    let first = world.process(configure.clone()).await;
    let run = first.agent().clone();
    let options = ExecuteOptions::new().session(id.clone());
    let execution = tokio::spawn({
        let workflow = workflow.clone();
        async move { run.execute(&workflow, json!({}), options).await }
    });
    let watcher = world.agent(&workflow).await;
    let asked = async || watcher.list_interrupts(query(&id)).await.unwrap().interrupts;
    eventually("the question is open", || async { !asked().await.is_empty() }).await;
    let run_id = asked().await.remove(0).run_id;
    let deadline = asked().await.remove(0).expires_at;
    let asked_for = deadline.since(began);
    // A clock that goes on by itself leaves the test some time of its own.
    let (pause, slack) = if world.clock().is_some() { (4_990, 0) } else { (3_000, 2_000) };
    assert!((10_000..=10_000 + slack).contains(&asked_for.as_millis()), "{asked_for:?}");

    let mut driver = first;
    for attempt in 1..=2 {
        assert_eq!(asked().await.remove(0).expires_at, deadline);
        driver.kill().await;
        world.advance(Duration::from_millis(pause));
        driver = world.process(configure.clone()).await;
        takes_over(driver.agent()).await;
        eventually("the next driver works", || async { entered.count() == attempt + 1 }).await;
    }
    assert!(execution.await.unwrap().is_err(), "its process is gone");

    // 9.98 s after it was asked. A jump backwards gives no more time, only later the same.
    if let Some(clock) = world.clock() {
        clock.set(began);
        assert_eq!(asked().await.remove(0).expires_at, deadline);
        clock.set(began.saturating_add(Duration::from_millis(9_999)));
        assert_eq!(asked().await.len(), 1);
        world.advance(Duration::from_millis(1));
    } else {
        world.advance(Duration::from_secs(4));
    }
    assert_eq!(asked().await.len(), 0, "past from its very moment on");
    eventually("its end is seen", || async { watcher.worker().pass().await.unwrap().expired == 1 }).await;
    gate.add_permits(8);
    eventually("the run ends with the default", || async {
        watcher.worker().pass().await.unwrap();
        let run = watcher.get_run(&run_id, &Scope::session(id.clone())).await.unwrap().unwrap();
        run.data.is_some_and(|data| data.get().contains("decline"))
    })
    .await;
}
