//! The bounds of child workflows: how many, how deep, which are registered, and what a crash leaves.

use std::sync::atomic::Ordering;

use futures_util::{TryStreamExt as _, stream::FuturesUnordered};
use kortyx_protocol::FailureCode;
use kortyx_runtime::{Limits, NodeError, NodeOutput, Workflow};
use serde_json::json;

use crate::{
    children::{calls, nested, world},
    sample::{Counter, asks, named, one_node, yes_no},
    support::{Drive, World, completed, failed, select},
};

#[tokio::test(start_paused = true)]
async fn children_nest_sixteen_deep_and_no_deeper() {
    for (depth, is_fine) in [(16, true), (17, false)] {
        let workflows = nested(depth, named("innermost", asks("q")));
        let world = world(&workflows);
        let drive = world.run(&workflows[0], json!(null)).await;
        if is_fine {
            assert!(matches!(drive, Drive::Waiting), "{drive:?}");
            completed(world.answer("q", select(&["yes"])).await);
        } else {
            let failure = failed(drive);
            assert_eq!(failure.code, FailureCode::LimitReached);
            assert!(failure.message.contains("more than 16 deep"), "{}", failure.message);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_activation_calls_sixty_four_children_and_no_more() {
    let child = named("child", asks("q"));
    let inner = child.clone();
    let parent = one_node(move |ctx| {
        let child = inner.clone();
        async move {
            ctx.interrupt("before", yes_no("?")).await?;
            let calls: usize = ctx.input()?;
            let children: FuturesUnordered<_> = (0..calls).map(|_| ctx.call("child", &child, json!({}))).collect();
            children.try_collect::<Vec<_>>().await?;
            Ok(NodeOutput::new())
        }
    });
    for (calls, is_fine) in [(64, true), (65, false)] {
        let world = World::new(&[&parent, &child]);
        world.run(&parent, json!(calls)).await;
        let drive = world.answer("before", select(&["yes"])).await;
        if is_fine {
            assert!(matches!(drive, Drive::Waiting), "{drive:?}");
            assert_eq!(world.open().len(), 64);
            (0..64).for_each(|_| world.accept("q", select(&["yes"])));
            completed(world.resume().await);
        } else {
            assert_eq!(failed(drive).code, FailureCode::LimitReached);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn limits_of_children_can_be_set() {
    let child = named("child", asks("q"));
    let parent = one_node(calls(&child));
    let mut limits = Limits::default();
    limits.call_depth = 0;
    let world = World::with_limits(&[&parent, &child], limits);
    assert_eq!(failed(world.run(&parent, json!(null)).await).code, FailureCode::LimitReached);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_not_registered_is_a_clear_error() {
    let child = named("child", asks("q"));
    let parent = one_node(calls(&child));
    let failure = failed(World::new(&[&parent]).run(&parent, json!(null)).await);
    assert_eq!(failure.code, FailureCode::UnknownWorkflow);
    assert!(failure.message.contains("`child` version `1`"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn b166_a_child_that_is_missing_on_resume_parks_the_run_at_once() {
    let child = named("child", asks("q"));
    let parent = one_node(calls(&child));
    let world = World::new(&[&parent, &child]);
    world.run(&parent, json!(null)).await;
    world.accept("q", select(&["yes"]));
    let without = world.redeploy(&[&parent]);
    let Drive::Parked(failure) = without.resume().await else { panic!("expected a parked run") };
    assert_eq!(failure.code, FailureCode::WorkflowChanged);
    assert!(failure.message.contains("`child`"), "{}", failure.message);
    let again = without.redeploy(&[&parent, &child]);
    assert_eq!(completed(again.resume().await), json!({"child": {"q": "yes"}}));
}

#[tokio::test(start_paused = true)]
async fn a_child_under_way_that_is_no_longer_called_parks_the_run() {
    let child = named("child", asks("q"));
    let old = one_node(calls(&child));
    let new = one_node(|_| async { Ok(NodeOutput::new()) });
    let world = World::new(&[&old, &child]);
    world.run(&old, json!(null)).await;
    world.accept("q", select(&["yes"]));
    let changed = world.redeploy(&[&new, &child]);
    let Drive::Parked(failure) = changed.resume().await else { panic!("expected a parked run") };
    assert_eq!(failure.code, FailureCode::ReplayDiverged);
    assert!(failure.message.contains("call `child` (use 0) of child@1"), "{}", failure.message);
    assert_eq!(completed(changed.redeploy(&[&old, &child]).resume().await), json!({"child": {"q": "yes"}}));
}

#[tokio::test(start_paused = true)]
async fn another_version_of_a_child_in_the_code_parks_the_run() {
    let version = |version: &str| Workflow::builder("child").version(version).node("node", asks("q")).build().unwrap();
    let (one, two) = (version("1"), version("2"));
    let (old, new) = (one_node(calls(&one)), one_node(calls(&two)));
    let world = World::new(&[&old, &one, &two]);
    world.run(&old, json!(null)).await;
    world.accept("q", select(&["yes"]));
    let Drive::Parked(failure) = world.redeploy(&[&new, &one, &two]).resume().await else {
        panic!("expected a parked run")
    };
    assert_eq!(failure.code, FailureCode::ReplayDiverged);
    assert!(failure.message.contains("child@1") && failure.message.contains("child@2"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_nested_children_runs_no_step_twice_that_was_stored() {
    for writes in 0..8 {
        let mailed = Counter::default();
        let counter = mailed.clone();
        let innermost = named("innermost", move |ctx| {
            let mailed = counter.clone();
            async move {
                let key = ctx.step("mail", || async {
                    mailed.up();
                    Ok::<_, NodeError>(ctx.idempotency_key("mail"))
                });
                let key = key.await?;
                ctx.interrupt("q", yes_no("?")).await?;
                Ok(NodeOutput::new().data("key", &key))
            }
        });
        let workflows = nested(2, innermost);
        let world = world(&workflows);
        world.writes_left.store(writes, Ordering::SeqCst);
        let mut last = world.run(&workflows[0], json!(null)).await;
        world.writes_left.store(u64::MAX, Ordering::SeqCst);
        loop {
            last = match last {
                Drive::Crashed if world.stored.lock().unwrap().snapshot.is_none() => {
                    world.run(&workflows[0], json!(null)).await
                }
                Drive::Crashed => world.resume().await,
                Drive::Waiting => world.answer("q", select(&["yes"])).await,
                end => break drop(completed(end)),
            }
        }
        assert!(mailed.get() <= 2, "at most the one whose record was refused: {}", mailed.get());
    }
}
