//! Code that changed while a run waits.

use kortyx_protocol::FailureCode;
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use serde_json::json;

use crate::{
    sample::{Counter, asks, idle, one_node, yes_no},
    support::{Drive, World, completed, failed, select},
};

/// Nodes in a row, the last of which asks.
fn in_a_row(version: &str, nodes: &[&'static str], entered: &Counter) -> Workflow {
    let mut builder = Workflow::builder("flow").version(version);
    for (i, name) in nodes.iter().enumerate() {
        let entered = entered.clone();
        let is_last = i + 1 == nodes.len();
        builder = builder.node(*name, move |ctx: NodeContext| {
            let entered = entered.clone();
            async move {
                if is_last {
                    return asks("q")(ctx).await;
                }
                entered.up();
                Ok(NodeOutput::new().data(ctx.node(), &true))
            }
        });
        if let Some(before) = i.checked_sub(1) {
            builder = builder.edge(nodes[before], *name);
        }
    }
    builder.build().unwrap()
}

fn parked(drive: Drive) -> kortyx_protocol::Failure {
    match drive {
        Drive::Parked(failure) => failure,
        other => panic!("expected a parked run, found {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn b162_a_rewritten_definition_parks_the_run_and_says_what_changed() {
    let entered = Counter::default();
    let old = in_a_row("1", &["a", "b", "ask"], &entered);
    let world = World::new(&[&old]);
    world.run(&old, json!(null)).await;
    world.accept("q", select(&["yes"]));
    for nodes in [vec!["a", "x", "ask"], vec!["a", "ask"], vec!["a", "b", "ask", "after"]] {
        let new = in_a_row("1", &nodes, &entered);
        let failure = parked(world.redeploy(&[&new]).resume().await);
        assert_eq!(failure.code, FailureCode::WorkflowChanged);
        assert!(failure.message.contains("version `1` of the workflow `flow`"), "{}", failure.message);
        assert!(failure.message.contains("another definition"), "{}", failure.message);
    }
    assert_eq!(entered.get(), 2, "nothing ran meanwhile");
    let again = in_a_row("1", &["a", "b", "ask"], &entered);
    assert_eq!(completed(world.redeploy(&[&again]).resume().await), json!({"a": true, "b": true, "q": "yes"}));
}

#[tokio::test(start_paused = true)]
async fn b163_versions_stand_side_by_side_and_each_run_ends_on_its_own() {
    let entered = Counter::default();
    let one = in_a_row("1", &["a", "b", "ask"], &entered);
    let two = in_a_row("2", &["a", "new", "b", "ask"], &entered);
    let world = World::new(&[&one]);
    world.run(&one, json!(null)).await;
    world.accept("q", select(&["yes"]));
    let both = world.redeploy(&[&two, &one]);
    assert_eq!(completed(both.resume().await), json!({"a": true, "b": true, "q": "yes"}));
    assert_eq!(entered.get(), 2, "the run did not take the new way");
    let failure = parked(world.redeploy(&[&two]).resume().await);
    assert_eq!(failure.code, FailureCode::WorkflowChanged);
    assert!(failure.message.contains("not registered, though other versions are"), "{}", failure.message);
    let other = in_a_row("1", &["a"], &entered);
    let other = Workflow::builder("other").node("a", idle).build().map(|flow| (flow, other)).unwrap().0;
    let failure = parked(world.redeploy(&[&other]).resume().await);
    assert!(failure.message.contains("is not registered;"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn code_that_does_another_thing_under_a_recorded_id_parks_the_run() {
    let asked = one_node(|ctx| async move {
        ctx.interrupt("x", yes_no("?")).await?;
        ctx.interrupt("y", yes_no("?")).await?;
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&asked]);
    world.run(&asked, json!(null)).await;
    world.answer("x", select(&["yes"])).await;
    world.accept("y", select(&["yes"]));
    let steps = one_node(|ctx| async move {
        ctx.step("x", || async { Ok::<_, kortyx_runtime::NodeError>(1) }).await?;
        Ok(NodeOutput::new())
    });
    let failure = parked(world.redeploy(&[&steps]).resume().await);
    assert_eq!(failure.code, FailureCode::ReplayDiverged);
    assert!(failure.message.contains("recorded interrupt `x` (use 0) of"), "{}", failure.message);
    assert!(failure.message.contains("now step `x` (use 0)"), "{}", failure.message);
    assert!(failure.message.contains("flow/node#0"), "{}", failure.message);
    completed(world.redeploy(&[&asked]).resume().await);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_without_asking_what_was_answered_parks_the_run() {
    let old = one_node(asks("q"));
    let world = World::new(&[&old]);
    world.run(&old, json!(null)).await;
    world.accept("q", select(&["yes"]));
    let failure = parked(world.redeploy(&[&one_node(idle)]).resume().await);
    assert_eq!(failure.code, FailureCode::ReplayDiverged);
    assert!(failure.message.contains("accepted answer to interrupt `q`"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_no_longer_asked_is_closed_without_delay() {
    let flow = |asked: &'static [&'static str]| {
        one_node(move |ctx| async move {
            let asks = asked.iter().map(|id| ctx.interrupt(id, yes_no(id)));
            let answers = futures_util::future::try_join_all(asks).await?;
            Ok(NodeOutput::new().data("answers", &answers))
        })
    };
    let world = World::new(&[&flow(&["a", "b", "c"])]);
    world.run(&flow(&["a", "b", "c"]), json!(null)).await;
    world.accept("a", select(&["yes"]));
    let began = tokio::time::Instant::now();
    let changed = world.redeploy(&[&flow(&["a", "c", "d"])]);
    assert!(matches!(changed.resume().await, Drive::Waiting));
    assert_eq!(changed.open(), ["c", "d"]);
    assert_eq!(changed.stored.lock().unwrap().superseded.len(), 1);
    assert_eq!(began.elapsed().as_millis(), 0, "the node waits for nothing else, so nobody waits for it");
}

#[tokio::test(start_paused = true)]
async fn a_new_question_before_an_answered_one_takes_nobody_elses_answer() {
    let flow = |asked: &'static [&'static str]| {
        one_node(move |ctx| async move {
            let mut answers = Vec::new();
            for id in asked {
                answers.push(format!("{id}: {}", ctx.interrupt(id, yes_no(id)).await?));
            }
            Ok(NodeOutput::new().data("answers", &answers))
        })
    };
    let world = World::new(&[&flow(&["a"])]);
    world.run(&flow(&["a"]), json!(null)).await;
    world.accept("a", select(&["yes"]));
    // It is asked first, and the answer to the other would wait for ever: the run is parked, the answer kept.
    let failure = parked(world.redeploy(&[&flow(&["new", "a"])]).resume().await);
    assert!(failure.message.contains("`a`"), "{}", failure.message);
    // Behind it, it is simply asked.
    let after = world.redeploy(&[&flow(&["a", "new"])]);
    assert!(matches!(after.resume().await, Drive::Waiting));
    assert_eq!(completed(after.answer("new", select(&["no"])).await), json!({"answers": ["a: yes", "new: no"]}));
}

#[tokio::test(start_paused = true)]
async fn b116_a_recorded_result_that_no_longer_reads_parks_the_run_and_nothing_runs_again() {
    let effects = Counter::default();
    let old = one_node({
        let effects = effects.clone();
        move |ctx| {
            let effects = effects.clone();
            async move {
                ctx.step("count", || effects.effect()).await?;
                ctx.interrupt("q", yes_no("?")).await?;
                Ok(NodeOutput::new().data("ok", &true))
            }
        }
    });
    let world = World::new(&[&old]);
    world.run(&old, json!(null)).await;
    world.accept("q", select(&["yes"]));
    let new = one_node({
        let effects = effects.clone();
        move |ctx| {
            let effects = effects.clone();
            async move {
                // What a retry wrapper does: another use of the step's id would be another effect.
                for _ in 0..3 {
                    let text = || async { Ok::<_, kortyx_runtime::NodeError>(effects.up().to_string()) };
                    let _ = ctx.step::<String, _, _, _>("count", text).await;
                }
                ctx.interrupt("q", yes_no("?")).await?;
                Ok(NodeOutput::new())
            }
        }
    });
    let failure = parked(world.redeploy(&[&new]).resume().await);
    assert_eq!(failure.code, FailureCode::ReplayDiverged);
    assert!(failure.message.contains("the result of the step `count`"), "{}", failure.message);
    assert!(failure.message.contains("String"), "{}", failure.message);
    assert_eq!(effects.get(), 1);
    assert_eq!(completed(world.redeploy(&[&old]).resume().await), json!({"ok": true}));
    assert_eq!(effects.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn b116_the_output_of_a_child_that_no_longer_reads_parks_the_run() {
    let child = Workflow::builder("child").node("node", idle).build().unwrap();
    let old = one_node({
        let child = child.clone();
        move |ctx| {
            let child = child.clone();
            async move {
                let _: serde_json::Value = ctx.call("child", &child, json!(null)).await?;
                asks("q")(ctx).await
            }
        }
    });
    let world = World::new(&[&old, &child]);
    world.run(&old, json!(null)).await;
    world.accept("q", select(&["yes"]));
    let typed: Workflow<serde_json::Value, Vec<u8>> =
        Workflow::builder("child").node("node", idle).output::<Vec<u8>>().build().unwrap();
    let new = one_node(move |ctx| {
        let typed = typed.clone();
        async move {
            let _ = ctx.call("child", &typed, json!(null)).await;
            asks("q")(ctx).await
        }
    });
    let failure = parked(world.redeploy(&[&new, &child]).resume().await);
    assert!(failure.message.contains("the output of the call `child`"), "{}", failure.message);
    assert_eq!(completed(world.redeploy(&[&old, &child]).resume().await), json!({"q": "yes"}));
}

#[tokio::test(start_paused = true)]
async fn b116_a_node_that_fails_because_it_cannot_read_the_state_parks_the_run_only_when_it_was_stored() {
    let reads = |as_text: bool| {
        one_node(move |ctx| async move {
            let answer = ctx.interrupt("q", yes_no("?")).await?;
            if as_text {
                let _: String = ctx.input()?;
            }
            Ok(NodeOutput::new().data("q", &answer))
        })
    };
    let world = World::new(&[&reads(false)]);
    world.run(&reads(false), json!(5)).await;
    world.accept("q", select(&["yes"]));
    let failure = parked(world.redeploy(&[&reads(true)]).resume().await);
    assert!(failure.message.contains("the input of `flow`"), "{}", failure.message);
    assert_eq!(completed(world.redeploy(&[&reads(false)]).resume().await), json!({"q": "yes"}));

    let fresh = one_node(|ctx| async move {
        let _: String = ctx.input()?;
        Ok(NodeOutput::new())
    });
    let failure = failed(World::new(&[&fresh]).run(&fresh, json!(5)).await);
    assert_eq!(failure.code, FailureCode::ExecutionFailed, "nothing was stored that other code could read");
}
