//! Retries of nodes: never around a pause, with the journal kept.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use kortyx_protocol::FailureCode;
use kortyx_runtime::{
    NodeContext, NodeError, NodeOutput, Workflow,
    workflow::{NodeOptions, Retry},
};
use serde_json::json;

use crate::{
    sample::{Counter, yes_no},
    support::{Drive, World, completed, failed, select},
};

fn with_retry<F, Fut>(retry: Retry, node: F) -> Workflow
where
    F: Fn(NodeContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = kortyx_runtime::NodeResult> + Send + 'static,
{
    Workflow::builder("flow").node_with("node", NodeOptions::new().retry(retry), node).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_failing_node_is_tried_so_often_and_with_growing_waits() {
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let log = attempts.clone();
    let retry = Retry::attempts(4).delay(Duration::from_secs(10)).backoff(3.0).max_delay(Duration::from_mins(1));
    let flow = with_retry(retry, move |_| {
        log.lock().unwrap().push(tokio::time::Instant::now());
        async { Err(NodeError::message("secret")) }
    });
    let failure = failed(World::new(&[&flow]).run(&flow, json!(null)).await);
    assert_eq!(failure.code, FailureCode::ExecutionFailed);
    let attempts = attempts.lock().unwrap();
    let waits: Vec<u64> = attempts.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(waits, [10, 30, 60]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_succeeds_ends_it_and_steps_of_the_failed_ones_stay_done() {
    let (attempts, effects) = (Counter::default(), Counter::default());
    let counters = (attempts.clone(), effects.clone());
    let flow = with_retry(Retry::attempts(3), move |ctx| {
        let (attempts, effects) = counters.clone();
        async move {
            let done = ctx.step("once", || effects.effect()).await?;
            let failing = ctx.step("flaky", || {
                let n = attempts.up();
                async move { if n < 2 { Err(NodeError::message("flaky")) } else { Ok(n) } }
            });
            Ok(NodeOutput::new().data("all", &(done, failing.await?)))
        }
    });
    assert_eq!(completed(World::new(&[&flow]).run(&flow, json!(null)).await), json!({"all": [0, 2]}));
    assert_eq!((attempts.get(), effects.get()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_no_failure_and_uses_up_no_attempt() {
    let attempts = Counter::default();
    let counter = attempts.clone();
    let flow = with_retry(Retry::attempts(2), move |ctx| {
        let attempts = counter.clone();
        async move {
            for i in 0..5 {
                ctx.interrupt(&format!("q{i}"), yes_no("?")).await?;
            }
            if attempts.up() == 0 { Err(NodeError::message("once")) } else { Ok(NodeOutput::new()) }
        }
    });
    let world = World::new(&[&flow]);
    let mut last = world.run(&flow, json!(null)).await;
    for i in 0..5 {
        assert!(matches!(last, Drive::Waiting));
        last = world.answer(&format!("q{i}"), select(&["yes"])).await;
    }
    completed(last);
    assert_eq!(attempts.get(), 2, "the second attempt has the answers and asks nobody again");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_open_while_another_branch_fails_stays_open() {
    let attempts = Counter::default();
    let counter = attempts.clone();
    let flow = with_retry(Retry::attempts(3), move |ctx| {
        let attempts = counter.clone();
        async move {
            let flaky = async {
                ctx.interrupt("go", yes_no("Go?")).await?;
                if attempts.up() < 2 { Err(NodeError::message("flaky")) } else { Ok(()) }
            };
            let (answer, ()) = tokio::try_join!(ctx.interrupt("q", yes_no("?")), flaky)?;
            Ok(NodeOutput::new().data("answer", &answer))
        }
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert!(matches!(world.answer("go", select(&["yes"])).await, Drive::Waiting));
    assert_eq!((attempts.get(), world.open()), (3, vec!["q".to_owned()]));
    assert!(world.stored.lock().unwrap().superseded.is_empty(), "the question was not asked anew");
    assert_eq!(completed(world.answer("q", select(&["no"])).await), json!({"answer": "no"}));
}

#[tokio::test(start_paused = true)]
async fn failed_attempts_are_counted_over_pauses_and_crashes() {
    let attempts = Counter::default();
    let counter = attempts.clone();
    let flow = with_retry(Retry::attempts(3).delay(Duration::ZERO), move |ctx| {
        let attempts = counter.clone();
        async move {
            if attempts.up() > 0 {
                ctx.interrupt("q", yes_no("?")).await?;
            }
            Err(NodeError::message("always"))
        }
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting), "the second attempt asks");
    failed(world.answer("q", select(&["yes"])).await);
    assert_eq!(attempts.get(), 1 + 2 + 1, "the second attempt is entered twice, the third once");
}

#[tokio::test(start_paused = true)]
async fn idempotency_keys_are_equal_in_all_attempts_and_replays_and_differ_by_round() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let log = keys.clone();
    let flow = with_retry(Retry::attempts(3), move |ctx| {
        let log = log.clone();
        async move {
            for round in 0..2 {
                let pay = ctx.step("pay", || {
                    let mut keys = log.lock().unwrap();
                    keys.push((round, ctx.idempotency_key("pay")));
                    let is_first = keys.iter().filter(|(known, _)| *known == round).count() == 1;
                    async move { if is_first { Err(NodeError::message("flaky")) } else { Ok(()) } }
                });
                pay.await?;
                ctx.interrupt("q", yes_no("?")).await?;
            }
            Ok(NodeOutput::new().data("key", &ctx.idempotency_key("pay")))
        }
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    world.answer("q", select(&["yes"])).await;
    let after = completed(world.answer("q", select(&["yes"])).await);
    let keys = keys.lock().unwrap();
    let rounds: Vec<usize> = keys.iter().map(|(round, _)| *round).collect();
    assert_eq!(rounds, [0, 0, 1, 1]);
    assert_eq!(keys[0].1, keys[1].1);
    assert_eq!(keys[2].1, keys[3].1);
    assert_ne!(keys[0].1, keys[2].1);
    assert_ne!(json!(keys[2].1), after["key"], "a third use has a third key");
    assert!(keys.iter().all(|(_, key)| key.len() == 64 && key.chars().all(|c| c.is_ascii_hexdigit())));
}

#[tokio::test(start_paused = true)]
async fn a_key_taken_before_the_step_is_the_one_within_it() {
    let flow = Workflow::builder("flow")
        .node("node", |ctx: NodeContext| async move {
            let before = ctx.idempotency_key("pay");
            let within = ctx.step("pay", || async { Ok::<_, NodeError>(ctx.idempotency_key("pay")) }).await?;
            let other = ctx.idempotency_key("other");
            Ok(NodeOutput::new().data("keys", &(before, within, other)))
        })
        .build()
        .unwrap();
    let keys = completed(World::new(&[&flow]).run(&flow, json!(null)).await)["keys"].take();
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[0], keys[2]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_says_it_cannot_end_otherwise_is_not_tried_again() {
    let attempts = Counter::default();
    let counter = attempts.clone();
    let flow = Workflow::builder("flow")
        .node_with("node", NodeOptions::new().retry(Retry::attempts(5)), move |_: NodeContext| {
            counter.up();
            async { Ok(NodeOutput::new().condition("nowhere")) }
        })
        .edge_if("node", "node", "again")
        .build()
        .unwrap();
    assert_eq!(failed(World::new(&[&flow]).run(&flow, json!(null)).await).code, FailureCode::NoRoute);
    assert_eq!(attempts.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn state_set_by_a_failed_attempt_is_forgotten() {
    let attempts = Counter::default();
    let counter = attempts.clone();
    let flow = with_retry(Retry::attempts(2), move |ctx| {
        let attempts = counter.clone();
        async move {
            let state = ctx.workflow_state("n", 0u32);
            state.set(&(state.get()? + 1))?;
            if attempts.up() == 0 {
                return Err(NodeError::message("once"));
            }
            Ok(NodeOutput::new().data("n", &state.get()?))
        }
    });
    assert_eq!(completed(World::new(&[&flow]).run(&flow, json!(null)).await), json!({"n": 1}));
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_closes_its_children_and_the_next_calls_them_anew() {
    let (attempts, entered) = (Counter::default(), Counter::default());
    let counter = entered.clone();
    let child = crate::sample::named("child", move |ctx| {
        let entered = counter.clone();
        async move {
            ctx.step("enter", || entered.effect()).await?;
            ctx.interrupt("q", yes_no("?")).await?;
            Ok(NodeOutput::new())
        }
    });
    let (inner, counter) = (child.clone(), attempts.clone());
    let flow = with_retry(Retry::attempts(2), move |ctx| {
        let (child, attempts) = (inner.clone(), counter.clone());
        async move {
            let flaky = async {
                ctx.interrupt("go", yes_no("Go?")).await?;
                if attempts.up() == 0 { Err(NodeError::message("once")) } else { Ok(()) }
            };
            tokio::try_join!(async { Ok(ctx.call("child", &child, json!({})).await?) }, flaky)?;
            Ok(NodeOutput::new())
        }
    });
    let world = World::new(&[&flow, &child]);
    world.run(&flow, json!(null)).await;
    assert!(matches!(world.answer("go", select(&["yes"])).await, Drive::Waiting));
    assert_eq!((world.open(), entered.get()), (vec!["q".to_owned()], 2), "the first child is gone with its question");
    completed(world.answer("q", select(&["yes"])).await);
}
