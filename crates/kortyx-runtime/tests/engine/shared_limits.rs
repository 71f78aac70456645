//! Limits that a run shares with its branches and its children.

use std::{sync::Arc, time::Duration};

use futures_util::future::{join_all, try_join, try_join_all};
use kortyx_protocol::{FailureCode, StreamChunk};
use kortyx_runtime::{
    Allowances, CHILD_CALLS, Counter, Draw, Limits, NodeContext, NodeError, NodeOutput, TOKENS, Workflow,
    workflow::Retry,
};
use serde_json::{Value, json};

use crate::{
    sample::{Counter as Tally, idle, named, one_node, yes_no},
    support::{Drive, World, completed, failed, select},
};

pub(crate) const ROUNDS: Counter = Counter::new("rounds").limit(1000);
const ASK: &str = "limit-reached";

/// A step that takes a round and may use tokens.
pub(crate) async fn round(ctx: &NodeContext, id: &str, tally: &Tally, tokens: u64) -> Result<usize, NodeError> {
    let (tally, inner) = (tally.clone(), ctx.clone());
    let work = move || async move {
        inner.spend(TOKENS, tokens)?;
        tally.effect().await
    };
    ctx.step_within(id, &[Draw::One(ROUNDS), Draw::Measured(TOKENS)], work).await
}

/// Takes this many rounds, one after the other.
async fn rounds(ctx: NodeContext, tally: Tally, rounds: usize) -> Result<(), NodeError> {
    for _ in 0..rounds {
        round(&ctx, "round", &tally, 0).await?;
    }
    Ok(())
}

fn taking(
    tally: &Tally,
    count: usize,
) -> impl Fn(NodeContext) -> futures_util::future::BoxFuture<'static, kortyx_runtime::NodeResult> + use<> {
    let tally = tally.clone();
    move |ctx| {
        let tally = tally.clone();
        Box::pin(async move {
            rounds(ctx, tally, count).await?;
            Ok(NodeOutput::new())
        })
    }
}

/// What was said about limits: which, how much, how much of it.
pub(crate) fn said(world: &World) -> Vec<(String, u64, u64)> {
    let chunks = world.chunks.lock().unwrap();
    let said = chunks.iter().filter_map(|chunk| match chunk {
        StreamChunk::LimitReached { limit, maximum, consumed, .. } => Some((limit.to_string(), *maximum, *consumed)),
        _ => None,
    });
    said.collect()
}

fn limited(tally: &Tally, count: usize, limit: u64) -> Workflow {
    Workflow::builder("flow").node("node", taking(tally, count)).limit(ROUNDS, limit).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_run_at_a_limit_says_so_asks_once_and_goes_on_with_a_fresh_allowance() {
    let tally = Tally::default();
    let flow = limited(&tally, 8, 3);
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!((tally.get(), world.open()), (3, vec![ASK.to_owned()]));
    for _ in 0..3 {
        assert!(matches!(world.resume().await, Drive::Waiting));
    }
    assert!(matches!(world.answer(ASK, select(&["continue"])).await, Drive::Waiting));
    assert_eq!(tally.get(), 6);
    completed(world.answer(ASK, select(&["continue"])).await);
    assert_eq!(tally.get(), 8);
    let limit = |count| ("max_rounds".to_owned(), count, count);
    assert_eq!(said(&world), [limit(3), limit(6)]);
}

#[tokio::test(start_paused = true)]
async fn no_ends_the_run_and_no_node_can_swallow_it() {
    let tally = Tally::default();
    let (inner, after) = (tally.clone(), Tally::default());
    let seen = after.clone();
    let flow = Workflow::builder("flow")
        .node("node", move |ctx: NodeContext| {
            let tally = inner.clone();
            async move {
                let _ = rounds(ctx, tally, 5).await;
                Ok(NodeOutput::new())
            }
        })
        .node("after", move |_| {
            seen.up();
            async { Ok(NodeOutput::new()) }
        })
        .edge("node", "after")
        .limit(ROUNDS, 2)
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    let failure = failed(world.answer(ASK, select(&["stop"])).await);
    assert_eq!((failure.code, failure.retryable), (FailureCode::LimitReached, Some(false)));
    assert_eq!(failure.details.unwrap(), json!({"limit": "max_rounds", "maximum": 2, "consumed": 2}));
    assert_eq!((tally.get(), after.get()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn joined_calls_at_the_limit_take_exactly_what_is_left_and_one_question_lets_all_go_on() {
    let tally = Tally::default();
    let inner = tally.clone();
    let node = move |ctx: NodeContext| {
        let tally = inner.clone();
        async move {
            try_join_all((0..7).map(|at| {
                let (ctx, tally) = (ctx.clone(), tally.clone());
                async move { round(&ctx, &format!("r{at}"), &tally, 0).await }
            }))
            .await?;
            Ok(NodeOutput::new())
        }
    };
    let flow = Workflow::builder("flow").node("node", node).limit(ROUNDS, 4).build().unwrap();
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!((tally.get(), world.open()), (4, vec![ASK.to_owned()]));
    completed(world.answer(ASK, select(&["continue"])).await);
    assert_eq!((tally.get(), said(&world).len()), (7, 1));
}

/// Two branches of a graph, each with a child that takes three rounds.
fn branching(tally: &Tally, limit: u64) -> (Workflow, Workflow) {
    let child = named("child", taking(tally, 3));
    let calls = |child: &Workflow| {
        let child = child.clone();
        move |ctx: NodeContext| {
            let child = child.clone();
            async move {
                ctx.call("child", &child, json!({})).await?;
                Ok(NodeOutput::new())
            }
        }
    };
    let parent = Workflow::builder("flow")
        .node("start", idle)
        .node("a", calls(&child))
        .node("b", calls(&child))
        .node("join", |_| async { Ok(NodeOutput::new().data("joined", &true)) })
        .edge("start", "a")
        .edge("start", "b")
        .edge("a", "join")
        .edge("b", "join")
        .limit(ROUNDS, limit)
        .build()
        .unwrap();
    (parent, child)
}

#[tokio::test(start_paused = true)]
async fn branches_and_children_share_a_limit_and_its_one_question() {
    let tally = Tally::default();
    let (parent, child) = branching(&tally, 4);
    let world = World::new(&[&parent, &child]);
    assert!(matches!(world.run(&parent, json!(null)).await, Drive::Waiting));
    assert_eq!((tally.get(), world.open()), (4, vec![ASK.to_owned()]));
    let asked = world.stored.lock().unwrap().open[0].clone();
    assert_eq!(asked.workflow, "flow");
    assert!(["a", "b"].contains(&&*asked.node), "{}", asked.node);
    assert_eq!(completed(world.answer(ASK, select(&["continue"])).await), json!({"joined": true}));
    assert_eq!(tally.get(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_at_any_write_counts_nothing_twice_and_loses_nothing() {
    for writes in 0.. {
        let tally = Tally::default();
        let (parent, child) = branching(&tally, 4);
        let world = World::new(&[&parent, &child]);
        world.writes_left.store(writes, std::sync::atomic::Ordering::SeqCst);
        let mut drive = world.run(&parent, json!(null)).await;
        let is_dead = matches!(drive, Drive::Crashed);
        world.writes_left.store(u64::MAX, std::sync::atomic::Ordering::SeqCst);
        if is_dead && world.stored.lock().unwrap().snapshot.is_none() {
            continue;
        }
        for kill in [writes, 0, 1, 2] {
            if matches!(drive, Drive::Crashed) {
                drive = world.resume().await;
            }
            if world.open().is_empty() {
                break;
            }
            world.writes_left.store(kill, std::sync::atomic::Ordering::SeqCst);
            drive = world.answer(ASK, select(&["continue"])).await;
            world.writes_left.store(u64::MAX, std::sync::atomic::Ordering::SeqCst);
        }
        while matches!(drive, Drive::Crashed) {
            drive = world.resume().await;
        }
        assert_eq!(completed(drive), json!({"joined": true}), "killed at write {writes}");
        // A limit of 4, 6 rounds: one question, however often the process died.
        assert_eq!(world.stored.lock().unwrap().answers.len(), 1, "killed at write {writes}");
        if !is_dead {
            assert!(writes > 2);
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_measured_counts_when_its_step_ends_and_holds_the_next_one() {
    let tally = Tally::default();
    let inner = tally.clone();
    let node = move |ctx: NodeContext| {
        let tally = inner.clone();
        async move {
            for tokens in [60, 70, 10] {
                round(&ctx, "round", &tally, tokens).await?;
            }
            let level = ctx.level(TOKENS)?;
            Ok(NodeOutput::new().data("level", &level).data("left", &level.left()))
        }
    };
    let flow = Workflow::builder("flow").node("node", node).limit(TOKENS, 100).build().unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert_eq!(said(&world), [("max_tokens".to_owned(), 100, 130)]);
    let data = completed(world.answer(ASK, select(&["continue"])).await);
    // The fresh allowance is a whole one, on top of what was used.
    assert_eq!(data, json!({"level": {"used": 140, "allowed": 230}, "left": 90}));
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_counts_what_it_used_and_each_attempt_takes() {
    let (tally, seen) = (Tally::default(), Tally::default());
    let (inner, attempts) = (tally.clone(), seen.clone());
    let node = move |ctx: NodeContext| {
        let (tally, attempts) = (inner.clone(), attempts.clone());
        async move {
            round(&ctx, "first", &tally, 5).await?;
            let fails = attempts.up() == 0;
            let inner = ctx.clone();
            let work = move || async move {
                inner.spend(TOKENS, 7)?;
                if fails { Err(NodeError::message("not now")) } else { Ok(()) }
            };
            ctx.step_within("second", &[Draw::One(ROUNDS)], work).await?;
            let (rounds, tokens) = (ctx.level(ROUNDS)?, ctx.level(TOKENS)?);
            Ok(NodeOutput::new().data("rounds", &rounds.used).data("tokens", &tokens.used))
        }
    };
    let options = kortyx_runtime::workflow::NodeOptions::new().retry(Retry::attempts(2));
    let flow = Workflow::builder("flow").node_with("node", options, node).build().unwrap();
    let data = completed(World::new(&[&flow]).run(&flow, json!(null)).await);
    assert_eq!(data, json!({"rounds": 3, "tokens": 19}));
}

#[tokio::test(start_paused = true)]
async fn child_calls_are_limited_at_any_depth() {
    let leaf = named("leaf", idle);
    let call = |leaf: &Workflow, times: usize| {
        let leaf = leaf.clone();
        move |ctx: NodeContext| {
            let leaf = leaf.clone();
            async move {
                let calls = (0..times).map(|_| ctx.call("leaf", &leaf, json!({})));
                try_join_all(calls.collect::<Vec<_>>()).await?;
                Ok(NodeOutput::new().data("calls", &ctx.level(CHILD_CALLS)?.used))
            }
        }
    };
    let middle = named("middle", call(&leaf, 3));
    let root = Workflow::builder("root").node("node", call(&middle, 2)).limit(CHILD_CALLS, 4).build().unwrap();
    let world = World::new(&[&root, &middle, &leaf]);
    assert!(matches!(world.run(&root, json!(null)).await, Drive::Waiting));
    assert_eq!(said(&world), [("max_child_calls".to_owned(), 4, 4)]);
    assert_eq!(completed(world.answer(ASK, select(&["continue"])).await), json!({"calls": 8}));
}

#[tokio::test(start_paused = true)]
async fn a_question_whether_to_go_on_that_nobody_waits_for_is_withdrawn() {
    let tally = Tally::default();
    let inner = tally.clone();
    let node = move |ctx: NodeContext| {
        let tally = inner.clone();
        async move {
            tokio::select! {
                biased;
                answer = ctx.interrupt("enough", yes_no("Enough?")) => drop(answer?),
                more = rounds(ctx.clone(), tally, 5) => more?,
            }
            Ok(NodeOutput::new())
        }
    };
    let flow = Workflow::builder("flow").node("node", node).limit(ROUNDS, 2).build().unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert_eq!(world.open().len(), 2);
    assert_eq!(completed(world.answer("enough", select(&["yes"])).await), json!({}));
    assert_eq!(tally.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_waits_at_a_limit_asks_while_others_work() {
    let tally = Tally::default();
    let (inner, world) = (tally.clone(), Arc::new(std::sync::OnceLock::<Arc<World>>::new()));
    let seen = world.clone();
    let node = move |ctx: NodeContext| {
        let (tally, seen) = (inner.clone(), seen.clone());
        async move {
            let busy = ctx.step("busy", move || async move {
                tokio::time::sleep(Duration::from_mins(1)).await;
                let asked = seen.get().unwrap().open();
                Ok::<_, NodeError>(asked)
            });
            let (asked, ()) = try_join(busy, rounds(ctx.clone(), tally, 3)).await?;
            Ok(NodeOutput::new().data("asked", &asked))
        }
    };
    let holding = Workflow::builder("holding").node("node", taking(&tally, 3)).build().unwrap();
    let child = holding.clone();
    let side = move |ctx: NodeContext| {
        let child = child.clone();
        async move {
            ctx.call("holding", &child, json!({})).await?;
            Ok(NodeOutput::new())
        }
    };
    let flow = Workflow::builder("flow")
        .node("start", idle)
        .node("node", node)
        .node("side", side)
        .edge("start", "node")
        .edge("start", "side")
        .limit(ROUNDS, 2)
        .build()
        .unwrap();
    let made = World::new(&[&flow, &holding]);
    world.set(made.clone()).ok();
    let mut drive = made.run(&flow, json!(null)).await;
    while matches!(drive, Drive::Waiting) {
        drive = made.answer(ASK, select(&["continue"])).await;
    }
    assert_eq!(completed(drive)["asked"], json!([ASK]));
}

#[tokio::test(start_paused = true)]
async fn the_run_counts_before_its_workflow_and_that_before_the_engine() {
    let asks = async |engine: Option<u64>, workflow: Option<u64>, run: Option<Allowances>| {
        let tally = Tally::default();
        let builder = Workflow::builder("flow").node("node", taking(&tally, 9));
        let builder = match workflow {
            Some(limit) => builder.limit(ROUNDS, limit),
            None => builder,
        };
        let flow = builder.build().unwrap();
        let mut limits = Limits::default();
        limits.allowances = engine.map_or(Allowances::new(), |limit| Allowances::new().limit(ROUNDS, limit));
        let world = World::with_limits(&[&flow], limits);
        let mut execution = world.start_within(&flow, run.unwrap_or_default());
        let drive = world.drive(&mut execution).await;
        matches!(drive, Drive::Waiting).then(|| tally.get())
    };
    assert_eq!(asks(None, None, None).await, None);
    assert_eq!(asks(Some(5), None, None).await, Some(5));
    assert_eq!(asks(Some(5), Some(4), None).await, Some(4));
    assert_eq!(asks(Some(5), Some(4), Some(Allowances::new().limit(ROUNDS, 3))).await, Some(3));
    assert_eq!(asks(Some(5), Some(4), Some(Allowances::new().unlimited(ROUNDS))).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_level_reads_the_same_in_replay_though_others_go_on() {
    let tally = Tally::default();
    let inner = tally.clone();
    let node = move |ctx: NodeContext| {
        let tally = inner.clone();
        async move {
            round(&ctx, "a", &tally, 1).await?;
            let before = ctx.level(ROUNDS)?.used;
            let (asked, more) = tokio::join!(ctx.interrupt("x", yes_no("x")), rounds(ctx.clone(), tally.clone(), 2));
            asked?;
            more?;
            Ok(NodeOutput::new().data("before", &before).data("after", &ctx.level(ROUNDS)?.used))
        }
    };
    let flow = one_node(node);
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    world.resume().await;
    assert_eq!(completed(world.answer("x", select(&["yes"])).await), json!({"before": 1, "after": 3}));
}

#[tokio::test(start_paused = true)]
async fn what_is_spent_outside_of_a_step_is_refused() {
    let flow = one_node(|ctx: NodeContext| async move {
        let refused = ctx.spend(TOKENS, 1).unwrap_err().to_string();
        Ok(NodeOutput::new().data("refused", &refused))
    });
    let data = completed(World::new(&[&flow]).run(&flow, json!(null)).await);
    assert!(data["refused"].as_str().unwrap().contains("outside of a step"), "{data}");
}

#[tokio::test(start_paused = true)]
async fn a_mark_holds_for_parents_and_children_and_each_use_of_an_id_sets_it_once() {
    let is_marked = async |ctx: &NodeContext, id: &str| {
        let inner = ctx.clone();
        ctx.step(id, move || async move { inner.is_marked("m") }).await
    };
    let child = named("child", move |ctx: NodeContext| async move {
        let before = is_marked(&ctx, "before").await?;
        ctx.mark("set", "m", true)?;
        ctx.interrupt("x", yes_no("x")).await?;
        Ok(NodeOutput::new().data("before", &before))
    });
    let inner = child.clone();
    let flow = one_node(move |ctx: NodeContext| {
        let child = inner.clone();
        async move {
            let first: Value = ctx.call("first", &child, json!({})).await?;
            ctx.mark("clear", "m", false)?;
            let cleared = is_marked(&ctx, "cleared").await?;
            ctx.mark("clear", "m", true)?;
            let second: Value = ctx.call("second", &child, json!({})).await?;
            let outside = ctx.is_marked("m").is_err();
            Ok(NodeOutput::new().data("seen", &json!([first["before"], cleared, second["before"], outside])))
        }
    });
    let world = World::new(&[&flow, &child]);
    world.run(&flow, json!(null)).await;
    assert!(matches!(world.answer("x", select(&["yes"])).await, Drive::Waiting));
    assert_eq!(completed(world.answer("x", select(&["yes"])).await), json!({"seen": [false, false, true, true]}));
}

#[tokio::test(start_paused = true)]
async fn two_limits_reached_at_once_ask_a_question_each() {
    let tally = Tally::default();
    let inner = tally.clone();
    let node = move |ctx: NodeContext| {
        let tally = inner.clone();
        async move {
            round(&ctx, "a", &tally, 50).await?;
            let only = async |id: &str, draw: Draw| {
                let tally = tally.clone();
                ctx.step_within(id, &[draw], move || tally.effect()).await
            };
            let done = join_all([
                Box::pin(only("r", Draw::One(ROUNDS))) as std::pin::Pin<Box<dyn Future<Output = _> + Send>>,
                Box::pin(only("t", Draw::Measured(TOKENS))),
            ]);
            for result in done.await {
                result?;
            }
            Ok(NodeOutput::new())
        }
    };
    let flow = Workflow::builder("flow").node("node", node).limit(ROUNDS, 1).limit(TOKENS, 50).build().unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert_eq!(world.open(), [ASK, ASK]);
    assert!(matches!(world.answer(ASK, select(&["continue"])).await, Drive::Waiting));
    completed(world.answer(ASK, select(&["continue"])).await);
    assert_eq!(tally.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_goes_on_at_once_while_another_of_its_node_works() {
    let tally = Tally::default();
    let inner = tally.clone();
    let node = move |ctx: NodeContext| {
        let (tally, seen) = (inner.clone(), inner.clone());
        async move {
            let busy = ctx.step("busy", move || async move {
                tokio::time::sleep(Duration::from_mins(1)).await;
                Ok::<_, NodeError>(seen.get())
            });
            let (meanwhile, ()) = try_join(busy, rounds(ctx.clone(), tally, 3)).await?;
            Ok(NodeOutput::new().data("meanwhile", &meanwhile))
        }
    };
    let flow = Workflow::builder("flow").node("node", node).limit(ROUNDS, 2).build().unwrap();
    let world = World::new(&[&flow]);
    let mut execution = world.start(&flow, &json!(null));
    let handle = execution.handle();
    let person = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.accept(ASK, select(&["continue"]));
        handle.deliver(world.stored.lock().unwrap().answers.clone());
    };
    let (drive, ()) = tokio::join!(world.drive(&mut execution), person);
    assert_eq!(completed(drive), json!({"meanwhile": 3}));
}
