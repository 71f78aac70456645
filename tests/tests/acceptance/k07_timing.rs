//! K7: an answer counts whenever it comes, whoever was told of it.

use std::{sync::Arc, time::Duration};

use futures_util::future::{join_all, try_join_all};
use kortyx::{
    Agent, Answer, ExecuteOptions, Fact, NodeError, NodeOutput, RefusalReason, TelemetrySink, Text, WorkerConfig,
    Workflow,
    protocol::{FailureCode, RequestId, ResumeResponse, SessionId},
    runtime::Limits,
    store::{InterruptQuery, InterruptStatus, RunStatus, Scope},
};
use kortyx_tests::{
    Counter, Faulty, Op, When, World, data, eventually, handle, one_node, only, questions, reason, with,
};
use serde_json::json;
use tokio::{join, sync::Semaphore, sync::mpsc, task::yield_now};

/// One branch asks, and does something with the answer; another works until it is let go.
fn asks_while_it_works(gate: &Arc<Semaphore>, used: &Counter) -> Workflow {
    Workflow::builder("busy")
        .node("start", |_| async { Ok(NodeOutput::new()) })
        .node(
            "work",
            with(gate.clone(), |ctx, gate| async move {
                ctx.step("work", || async { gate.acquire().await.map(drop) }).await?;
                Ok(NodeOutput::new())
            }),
        )
        .node(
            "ask",
            with(used.clone(), |ctx, used| async move {
                let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
                ctx.step("use", || async { Ok::<_, NodeError>(used.hit()) }).await?;
                Ok(NodeOutput::new().data("answer", &answer))
            }),
        )
        .edge("start", "work")
        .edge("start", "ask")
        .build()
        .unwrap()
}

fn at_once() -> Limits {
    let mut limits = Limits::default();
    limits.publish_delay = Duration::ZERO;
    limits
}

fn query(session_id: &SessionId) -> InterruptQuery {
    InterruptQuery { scope: Scope::session(session_id.clone()), limit: 50, ..InterruptQuery::default() }
}

async fn first_question(agent: &Agent, session_id: &SessionId) -> kortyx::Interrupt {
    eventually("there is a question", || async {
        !agent.list_interrupts(query(session_id)).await.unwrap().interrupts.is_empty()
    })
    .await;
    agent.list_interrupts(query(session_id)).await.unwrap().interrupts.remove(0)
}

/// Tells of every question the moment its driver does.
struct Announcer(mpsc::UnboundedSender<RequestId>);

impl TelemetrySink for Announcer {
    fn record(&self, fact: &Fact) {
        if let Fact::InterruptCreated { request_id, .. } = fact {
            let _ = self.0.send(request_id.clone());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b103_an_answer_around_the_moment_of_the_pause_is_never_lost() {
    let world = World::new();
    let used = Counter::new();
    let gate = Arc::new(Semaphore::new(0));
    let workflow = asks_while_it_works(&gate, &used);
    let (announcer, mut questions_asked) = mpsc::unbounded_channel();
    let builder = world.builder().await.workflow(&workflow).run_limits(at_once());
    let driver = builder.telemetry(Announcer(announcer)).build().await.unwrap();
    let other = world.agent(&workflow).await;
    let session = SessionId::new("session-races").unwrap();
    let rounds = 60;
    for round in 0..rounds {
        let run = driver.execute(&workflow, json!({}), ExecuteOptions::new().session(session.clone()));
        let answer = async {
            let asked = questions_asked.recv().await.unwrap();
            let question = other.get_interrupt(&asked, &Scope::session(session.clone())).await.unwrap().unwrap();
            // The other branch ends, and with it the driver's turn, about when the answer is accepted.
            gate.add_permits(1);
            for _ in 0..(round % 12) {
                yield_now().await;
            }
            let answer = Answer::with_handle(question.handle(), ResumeResponse::text("in time"));
            other.submit(vec![answer]).await.unwrap();
            question
        };
        let (result, question) = join!(run, answer);
        let after = other.resume(question.handle(), ResumeResponse::text("in time")).await.unwrap();
        assert_eq!(data(after)["answer"], "in time", "round {round}, {result:?}");
        gate.forget_permits(1);
    }
    assert_eq!(used.count(), rounds);
}

#[tokio::test]
async fn b103_an_answer_that_comes_while_the_pause_is_being_written_goes_to_its_driver() {
    let world = World::new();
    let (gate, used) = (Arc::new(Semaphore::new(0)), Counter::new());
    let workflow = asks_while_it_works(&gate, &used);
    let registered = workflow.clone();
    let driver = world.process(move |agent| agent.workflow(&registered).run_limits(at_once())).await;
    let suspension = driver.store().hold(Op::Suspend, When::Before);
    let other = world.agent(&workflow).await;
    let session = SessionId::new("session-held").unwrap();
    let meddle = async {
        let question = first_question(&other, &session).await;
        gate.add_permits(1);
        suspension.reached().await;
        other.submit(vec![Answer::with_handle(question.handle(), ResumeResponse::text("early"))]).await.unwrap();
        suspension.open();
    };
    let options = ExecuteOptions::new().session(session.clone());
    let (result, ()) = join!(driver.agent().execute(&workflow, json!({}), options), meddle);
    assert_eq!((data(result.unwrap())["answer"].as_str(), used.count()), (Some("early"), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b104_answers_that_stream_in_over_many_pauses_are_each_used_once() {
    let world = World::new();
    let used: Vec<_> = (0..20).map(|_| Counter::new()).collect();
    let workflow = one_node(
        "stream",
        with(used.clone(), |ctx, used| async move {
            let branches = used.iter().enumerate().map(async |(at, used)| {
                let answer = ctx.interrupt(&format!("ask-{at}"), Text::new("?")).await?;
                ctx.step(&format!("use-{at}"), || async { Ok::<_, NodeError>(used.hit()) }).await?;
                Ok::<_, NodeError>(answer)
            });
            let answers = try_join_all(branches).await?;
            Ok(NodeOutput::new().data("answers", &answers))
        }),
    );
    let agents = [world.agent(&workflow).await, world.agent(&workflow).await];
    let paused = agents[0].execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let answers = (0..20).map(|at| {
        let answer = Answer::with_handle(&handle(&paused, &format!("ask-{at}")), ResumeResponse::text(format!("{at}")));
        let agent = agents[at % 2].clone();
        tokio::spawn(async move { agent.submit(vec![answer]).await.unwrap().receipts[0].seq })
    });
    let mut places: Vec<_> = join_all(answers).await.into_iter().map(Result::unwrap).collect();
    places.sort_unstable();
    assert_eq!(places, (1..=20).collect::<Vec<_>>());

    let last = agents[1].resume(&handle(&paused, "ask-0"), ResumeResponse::text("0")).await.unwrap();
    let own: Vec<_> = (0..20).map(|at| at.to_string()).collect();
    assert_eq!(data(last)["answers"], json!(own));
    assert!(used.iter().all(|used| used.count() == 1));
}

#[tokio::test]
async fn b105_an_answer_whose_wake_up_is_lost_is_found_by_polling() {
    let world = World::new();
    let workflow = one_node("ask", |ctx| async move {
        let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let mut config = WorkerConfig::default();
    config.poll = Duration::from_millis(20);
    let deaf = Agent::builder().shared_store(Faulty::mute(world.store().await)).workflow(&workflow).worker(config);
    let deaf = deaf.build().await.unwrap();
    let paused = deaf.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let web = Agent::builder().shared_store(Faulty::mute(world.store().await)).accept_only().build().await.unwrap();

    let result = web.resume(&only(&paused).resume, ResumeResponse::text("yes")).await.unwrap();
    assert_eq!(data(result)["answer"], "yes");
    deaf.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn b105_a_driver_whose_hints_are_lost_looks_for_answers_itself() {
    let world = World::new();
    let (gate, used) = (Arc::new(Semaphore::new(0)), Counter::new());
    let workflow = asks_while_it_works(&gate, &used);
    let deaf = Agent::builder().shared_store(Faulty::mute(world.store().await)).without_worker().workflow(&workflow);
    // It renews its lease so rarely that this is no chance to learn of answers.
    let deaf = deaf.run_limits(at_once()).lease_ttl(Duration::from_mins(10)).build().await.unwrap();
    let other = world.agent(&workflow).await;
    let session = SessionId::new("session-deaf").unwrap();
    let answer = async {
        let question = first_question(&other, &session).await;
        other.submit(vec![Answer::with_handle(question.handle(), ResumeResponse::text("x"))]).await.unwrap();
        eventually("the answer is used while the other branch works", || async { used.count() == 1 }).await;
        gate.add_permits(1);
    };
    let options = ExecuteOptions::new().session(session.clone());
    let (result, ()) = join!(deaf.execute(&workflow, json!({}), options), answer);
    assert_eq!(data(result.unwrap())["answer"], "x");
}

#[tokio::test]
async fn b110_the_loser_of_a_race_is_closed_at_once_and_says_so_later() {
    let world = World::new();
    let workflow = one_node("race", |ctx| async move {
        let winner = tokio::select! {
            a = ctx.interrupt("a", Text::new("A?")) => a?,
            b = ctx.interrupt("b", Text::new("B?")) => b?,
        };
        Ok(NodeOutput::new().data("winner", &winner))
    });
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let (a, b) = (handle(&paused, "a"), handle(&paused, "b"));
    let result = agent.resume(&a, ResumeResponse::text("a")).await.unwrap();
    assert_eq!(data(result)["winner"], "a");

    let scope = Scope::session(b.session_id.clone());
    let loser = agent.get_interrupt(&b.request_id, &scope).await.unwrap().unwrap();
    assert_eq!(loser.status, InterruptStatus::Superseded);
    let late = agent.resume(&b, ResumeResponse::text("b")).await;
    assert_eq!(reason(late), RefusalReason::Superseded);
    assert_eq!(FailureCode::InterruptSuperseded.status(), 410);
}

#[tokio::test]
async fn b111_an_authors_id_is_free_again_and_a_question_of_a_later_round_can_be_found() {
    let world = World::new();
    let workflow = one_node("rounds", |ctx| async move {
        let mut answers = Vec::new();
        for round in 0..10 {
            answers.push(ctx.interrupt("order-4711", Text::new(format!("Round {round}?"))).await?);
        }
        Ok(NodeOutput::new().data("answers", &answers))
    });
    let (inside, outside) = (world.agent(&workflow).await, world.agent(&workflow).await);
    let session = SessionId::new("session-4711").unwrap();
    for _ in 0..2 {
        let options = ExecuteOptions::new().session(session.clone());
        inside.execute(&workflow, json!({}), options).await.unwrap();
        for round in 0..10 {
            let open = outside.list_interrupts(query(&session)).await.unwrap().interrupts;
            let [question] = open.as_slice() else { panic!("{open:?}") };
            assert_eq!(question.input.question.as_deref(), Some(format!("Round {round}?").as_str()));
            let answered = outside.resume(question.handle(), ResumeResponse::text(round.to_string())).await.unwrap();
            assert_eq!(answered.status(), if round == 9 { "completed" } else { "suspended" });
        }
    }
}

/// Nothing of a question is encrypted with a key that could be rotated away.
#[tokio::test]
async fn b111_an_answer_is_good_after_fifty_deployments() {
    let world = World::new();
    let workflow = one_node("ask", |ctx| async move {
        let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    agent.shutdown(Duration::from_secs(10)).await;
    for _ in 0..50 {
        let deployed = world.agent(&workflow).await;
        deployed.worker().pass().await.unwrap();
        deployed.shutdown(Duration::from_secs(10)).await;
    }
    let result = world.agent(&workflow).await.resume(&only(&paused).resume, ResumeResponse::text("yes")).await;
    assert_eq!(data(result.unwrap())["answer"], "yes");
}

#[tokio::test]
async fn b112_a_worker_whose_store_was_away_hears_again_without_a_restart() {
    let world = World::new();
    let workflow = one_node("ask", |ctx| async move {
        let first = ctx.interrupt("first", Text::new("First?")).await?;
        let second = ctx.interrupt("second", Text::new("Second?")).await?;
        Ok(NodeOutput::new().data("answers", &[first, second]))
    });
    let registered = workflow.clone();
    let mut config = WorkerConfig::default();
    config.poll = Duration::from_millis(10);
    // A process whose worker runs from the start.
    let worker = world.process(move |agent| agent.workflow(&registered).worker(config)).await;
    let until = tokio_util::sync::CancellationToken::new();
    let working = tokio::spawn(worker.agent().worker().run(until.clone()));
    let web = world.builder().await.accept_only().build().await.unwrap();
    let paused = worker.agent().execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();

    eventually("it works", || async { worker.store().calls(Op::ClaimOrphans) > 0 }).await;

    worker.store().cut();
    let before = worker.store().calls(Op::ExpireDue);
    let tried = || async { worker.store().calls(Op::ExpireDue) > before + 2 };
    eventually("it has tried in vain", tried).await;
    let first = only(&paused).resume;
    web.submit(vec![Answer::with_handle(&first, ResumeResponse::text("1"))]).await.unwrap();
    worker.store().mend();

    let again = web.resume(&first, ResumeResponse::text("1")).await.unwrap();
    assert_eq!(questions(&again), ["second"]);
    let result = web.resume(&only(&again).resume, ResumeResponse::text("2")).await.unwrap();
    assert_eq!(data(result)["answers"], json!(["1", "2"]));
    until.cancel();
    working.await.unwrap();
    let scope = Scope::session(first.session_id.clone());
    assert_eq!(web.get_run(&first.run_id, &scope).await.unwrap().unwrap().status, RunStatus::Completed);
}
