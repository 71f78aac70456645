//! K6: of any number of answers one is accepted, and of any number of drivers one writes.

use std::time::Duration;

use futures_util::{FutureExt as _, future::join_all};
use kortyx::{
    Answer, ChatOptions, ExecuteOptions, NodeError, NodeOutput, OrchestratorError, RefusalReason, Text, Workflow,
    protocol::{ChatMessage, FailureCode, ResumeHandle, ResumeMeta, ResumeResponse, StreamChunk},
    store::{RunStatus, Scope},
};
use kortyx_tests::{
    Counter, Op, Process, When, World, code, data, ends, eventually, kinds, one_node, only, reason, takes_over, with,
};
use serde_json::json;
use tokio::{join, sync::Semaphore, task::yield_now};

/// Asks, and does something once with the answer.
fn effect(done: &Counter) -> Workflow {
    one_node(
        "effect",
        with(done.clone(), |ctx, done| async move {
            let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
            ctx.step("effect", || async { Ok::<_, NodeError>(done.hit()) }).await?;
            Ok(NodeOutput::new().data("answer", &answer))
        }),
    )
}

async fn process_with(world: &World, workflow: &Workflow) -> Process {
    let workflow = workflow.clone();
    world.process(move |agent| agent.workflow(&workflow)).await
}

/// As many processes as one machine has patience for share this; real ones race in the tests of processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b094_of_a_hundred_answers_from_four_processes_one_is_accepted() {
    let world = World::new();
    let done = Counter::new();
    let workflow = effect(&done);
    let mut processes = Vec::new();
    for _ in 0..4 {
        processes.push(process_with(&world, &workflow).await);
    }
    let paused = processes[0].agent().execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let gate = only(&paused).resume;

    let race = (0..100).map(|number| {
        let (agent, gate) = (processes[number % 4].agent().clone(), gate.clone());
        tokio::spawn(async move { agent.resume(&gate, ResumeResponse::text(format!("answer {number}"))).await })
    });
    let (mut accepted, mut refused) = (Vec::new(), 0);
    for outcome in join_all(race).await {
        match outcome.unwrap() {
            Ok(result) => accepted.push(data(result)["answer"].clone()),
            error => {
                assert_eq!(reason(error), RefusalReason::AlreadyResolved);
                refused += 1;
            }
        }
    }
    assert_eq!((accepted.len(), refused, done.count()), (1, 99, 1));
    let run = processes[1].agent().get_run(&gate.run_id, &Scope::session(gate.session_id)).await.unwrap().unwrap();
    assert_eq!(run.data.unwrap().to_value().unwrap()["answer"], accepted[0]);
}

#[tokio::test]
async fn b094_an_answer_takes_effect_although_its_process_died_right_after_accepting_it() {
    let world = World::new();
    let done = Counter::new();
    let workflow = effect(&done);
    let winner = process_with(&world, &workflow).await;
    let paused = winner.agent().execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let gate = only(&paused).resume;
    let accepted = winner.store().hold(Op::Answer, When::After);
    let claim = winner.agent().resume(&gate, ResumeResponse::text("the winner's")).boxed();
    tokio::select! {
        result = claim => panic!("it should hang: {result:?}"),
        () = accepted.reached() => {}
    }
    winner.kill().await;

    // The run is leased to nobody who lives; what was accepted stands.
    let other = world.builder().await.workflow(&workflow).wait(Duration::ZERO).build().await.unwrap();
    let conflict = other.resume(&gate, ResumeResponse::text("another")).await;
    assert_eq!(reason(conflict), RefusalReason::AlreadyResolved);
    let repeated = other.resume(&gate, ResumeResponse::text("the winner's")).await.unwrap_err();
    assert!(matches!(repeated, OrchestratorError::StillRunning(_)), "{repeated:?}");
    assert_eq!(done.count(), 0);

    world.advance(Duration::from_secs(31));
    takes_over(&other).await;
    ends(&other, &gate, RunStatus::Completed).await;
    let result = other.resume(&gate, ResumeResponse::text("the winner's")).await.unwrap();
    assert_eq!((data(result)["answer"].as_str(), done.count()), (Some("the winner's"), 1));
}

#[tokio::test]
async fn b095_two_resumes_at_once_get_one_result_or_a_result_and_a_conflict() {
    let world = World::new();
    let done = Counter::new();
    let workflow = effect(&done);
    let (here, there) = (world.agent(&workflow).await, world.agent(&workflow).await);
    let pause = async || only(&here.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap()).resume;

    let gate = pause().await;
    let same = ResumeResponse::text("same");
    let (first, second) = join!(here.resume(&gate, same.clone()), there.resume(&gate, same));
    assert_eq!(data(first.unwrap()), data(second.unwrap()));
    assert_eq!(done.count(), 1);

    let gate = pause().await;
    let outcomes = [
        here.resume(&gate, ResumeResponse::text("one")).boxed(),
        there.resume(&gate, ResumeResponse::text("two")).boxed(),
    ];
    let mut outcomes = join_all(outcomes).await;
    outcomes.sort_by_key(Result::is_err);
    let lost = outcomes.pop().unwrap();
    assert_eq!(code(lost), FailureCode::InterruptAlreadyResolved);
    assert_eq!(outcomes.pop().unwrap().unwrap().status(), "completed");
    assert_eq!(done.count(), 2);
}

fn message(gate: &ResumeHandle, text: &str) -> Vec<ChatMessage> {
    let mut meta = ResumeMeta::new(gate.token.clone(), gate.request_id.clone());
    meta.text = Some(text.to_owned());
    vec![ChatMessage::user(text).with_resume(&meta)]
}

#[tokio::test]
async fn b095_a_double_click_in_a_chat_starts_nothing_twice() {
    let world = World::new();
    let done = Counter::new();
    let workflow = effect(&done);
    let agent = world.agent(&workflow).await;
    for (second, kind) in [("yes", "done"), ("no", "error")] {
        let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        let gate = only(&paused).resume;
        let before = done.count();
        let clicks = ["yes", second].map(|text| agent.stream_chat(message(&gate, text), ChatOptions::new()).collect());
        let [one, two] = <[_; 2]>::try_from(join_all(clicks).await).unwrap();
        let mut streams = [kinds(&one), kinds(&two)];
        streams.sort_by_key(Vec::len);
        assert_eq!((streams[0].as_slice(), streams[1][1]), (["session", "done"].as_slice(), kind));
        assert_eq!(done.count(), before + 1);
        let errors = [one, two].into_iter().flatten().filter_map(|chunk| match chunk {
            StreamChunk::Error { failure, .. } => Some(failure.code),
            _ => None,
        });
        assert!(errors.into_iter().all(|code| code == FailureCode::InterruptAlreadyResolved));
    }
}

#[tokio::test]
async fn b051_eight_repeated_resumes_during_one_slow_action_do_it_once() {
    let world = World::new();
    let (done, gate) = (Counter::new(), std::sync::Arc::new(Semaphore::new(0)));
    let workflow = one_node(
        "slow",
        with((done.clone(), gate.clone()), |ctx, (done, gate)| async move {
            let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
            let slow = || async {
                done.hit();
                drop(gate.acquire().await?);
                Ok::<_, NodeError>(())
            };
            ctx.step("slow", slow).await?;
            Ok(NodeOutput::new().data("answer", &answer))
        }),
    );
    let (here, there) = (world.agent(&workflow).await, world.agent(&workflow).await);
    let paused = here.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let ask = only(&paused).resume;
    let resumes = (0..8).map(|number| {
        let agent = if number % 2 == 0 { &here } else { &there };
        agent.resume(&ask, ResumeResponse::text("go"))
    });
    let open = async {
        eventually("the action began", || async { done.count() > 0 }).await;
        for _ in 0..100 {
            yield_now().await;
        }
        gate.add_permits(1);
    };
    let (results, ()) = join!(join_all(resumes), open);
    assert!(results.into_iter().all(|result| data(result.unwrap())["answer"] == "go"));
    assert_eq!(done.count(), 1);
}

/// A driver that was thought dead wakes up when another one has finished its run.
#[tokio::test]
async fn b096_a_driver_whose_lease_was_taken_over_writes_nothing() {
    let world = World::new();
    let (entered, gate) = (Counter::new(), std::sync::Arc::new(Semaphore::new(0)));
    let keys = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let workflow = one_node(
        "stale",
        with((entered.clone(), gate.clone(), keys.clone()), |ctx, (entered, gate, keys)| async move {
            let key = ctx.idempotency_key("slow");
            let slow = || async {
                keys.lock().unwrap().push(key);
                let number = entered.hit();
                if number == 0 {
                    drop(gate.acquire().await?);
                }
                Ok::<_, NodeError>(number)
            };
            let winner = ctx.step("slow", slow).await?;
            Ok(NodeOutput::new().data("winner", &winner))
        }),
    );
    let (stale, fresh) = (world.agent(&workflow).await, world.agent(&workflow).await);
    let take_over = async {
        eventually("the first driver works", || async { entered.count() == 1 }).await;
        world.advance(Duration::from_secs(31));
        takes_over(&fresh).await;
        eventually("the second driver ends", || async { entered.count() == 2 && fresh.driven_runs() == 0 }).await;
        gate.add_permits(1);
    };
    let (result, ()) = join!(stale.execute(&workflow, json!({}), ExecuteOptions::new()), take_over);
    let result = result.unwrap();
    let (run_id, scope) = (result.run_id().clone(), Scope::session(result.session_id().clone()));
    assert_eq!(data(result)["winner"], 1, "the stale driver tells what was stored");
    let run = fresh.get_run(&run_id, &scope).await.unwrap().unwrap();
    assert_eq!(run.data.unwrap().to_value().unwrap()["winner"], 1);
    let keys = keys.lock().unwrap().clone();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1], "outside, both attempts are one effect");
}

/// The fork of a history needs two writers of one revision; a run has one lease, so the second never begins.
#[tokio::test]
async fn b096_answers_to_a_run_that_is_driven_join_its_one_history() {
    let world = World::new();
    let workflow = one_node("two", |ctx| async move {
        let (a, b) = join!(ctx.interrupt("a", Text::new("A?")), ctx.interrupt("b", Text::new("B?")));
        Ok(NodeOutput::new().data("both", &[a?, b?]))
    });
    let (here, there) = (world.agent(&workflow).await, world.agent(&workflow).await);
    for _ in 0..25 {
        let paused = here.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        let (a, b) = (kortyx_tests::handle(&paused, "a"), kortyx_tests::handle(&paused, "b"));
        let (first, second) = join!(
            here.submit(vec![Answer::with_handle(&a, ResumeResponse::text("one"))]),
            there.submit(vec![Answer::with_handle(&b, ResumeResponse::text("two"))])
        );
        let (first, second) = (first.unwrap(), second.unwrap());
        let mut places = [first.receipts[0].seq, second.receipts[0].seq];
        places.sort_unstable();
        assert_eq!(places, [1, 2]);
        let result = there.resume(&b, ResumeResponse::text("two")).await.unwrap();
        assert_eq!(data(result)["both"], json!(["one", "two"]));
    }
}
