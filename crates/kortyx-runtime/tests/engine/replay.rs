//! Replay: what was done is not done again, and takes the same way again.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kortyx_contracts::Text;
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Workflow, workflow::END};
use serde_json::json;

use crate::{
    sample::{Counter, idle, one_node, yes_no},
    support::{Drive, World, completed, select, text},
};

#[tokio::test(start_paused = true)]
async fn b044_each_act_of_a_loop_of_asks_and_acts_runs_once() {
    let created = Counter::default();
    let counter = created.clone();
    let flow = one_node(move |ctx| {
        let created = counter.clone();
        async move {
            let mut results = Vec::new();
            for i in 0..3 {
                results.push(match ctx.interrupt("create", yes_no("Create?")).await?.as_str() {
                    "yes" => {
                        ctx.step("create", || async { Ok::<_, NodeError>((i, created.up())) }).await?;
                        "created"
                    }
                    _ => "declined",
                });
            }
            Ok(NodeOutput::new().data("results", &results))
        }
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    for (answer, count) in [("yes", 1), ("no", 1)] {
        assert!(matches!(world.answer("create", select(&[answer])).await, Drive::Waiting));
        assert_eq!(created.get(), count);
    }
    let output = completed(world.answer("create", select(&["yes"])).await);
    assert_eq!(output, json!({"results": ["created", "declined", "created"]}));
    assert_eq!(created.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn b045_b049_what_ran_beside_a_question_keeps_its_result() {
    let (plain, listed) = (Counter::default(), Counter::default());
    let counters = (plain.clone(), listed.clone());
    let flow = one_node(move |ctx| {
        let (plain, listed) = counters.clone();
        async move {
            let gated = async {
                let answer = ctx.interrupt("delete", yes_no("Delete?")).await?;
                ctx.step("delete", || async move { Ok::<_, NodeError>(format!("deleted: {answer}")) }).await
            };
            let free = ctx.step("list", || async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                listed.effect().await
            });
            let (plain, gated, free) = tokio::join!(ctx.step("plain", || plain.effect()), gated, free);
            Ok(NodeOutput::new().data("results", &(plain?, gated?, free?)))
        }
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!((plain.get(), listed.get()), (1, 1), "both finish before the pause");
    let output = completed(world.answer("delete", select(&["yes"])).await);
    assert_eq!(output, json!({"results": [0, "deleted: yes", 0]}));
    assert_eq!((plain.get(), listed.get()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn b047_a_restored_question_waits_and_is_not_entered_again() {
    let entered = Counter::default();
    let counter = entered.clone();
    let flow = one_node(move |ctx| {
        counter.up();
        async move {
            let answer = ctx.interrupt("q", yes_no("?")).await?;
            Ok(NodeOutput::new().data("answer", &answer))
        }
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    for _ in 0..3 {
        assert!(matches!(world.resume().await, Drive::Waiting));
    }
    assert_eq!(entered.get(), 1, "a node that waits is not running");
    completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(entered.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn b048_an_answer_to_another_question_does_not_start_a_step_under_way_again() {
    let started = Counter::default();
    let counter = started.clone();
    let flow = Workflow::builder("flow")
        .node("start", idle)
        .node("ask", |ctx: NodeContext| async move {
            ctx.interrupt("q", yes_no("?")).await?;
            Ok(NodeOutput::new())
        })
        .node("work", move |ctx: NodeContext| {
            let started = counter.clone();
            async move {
                ctx.step("long", || async {
                    started.up();
                    tokio::time::sleep(Duration::from_mins(1)).await;
                    Ok::<_, NodeError>(())
                })
                .await?;
                Ok(NodeOutput::new())
            }
        })
        .edge("start", "ask")
        .edge("start", "work")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    let mut execution = world.start(&flow, &json!(null));
    let handle = execution.handle();
    let same = world.clone();
    let driver = tokio::spawn(async move { same.drive(&mut execution).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.accept("q", select(&["yes"]));
    handle.deliver(world.stored.lock().unwrap().answers.clone());
    completed(driver.await.unwrap());
    assert_eq!(started.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn b050_a_confirmation_moves_the_sequence_on() {
    let entered = Counter::default();
    let worker = |name: &'static str| {
        let entered = entered.clone();
        move |ctx: NodeContext| {
            let entered = entered.clone();
            async move {
                if name != "validator" {
                    ctx.interrupt("confirm", yes_no(name)).await?;
                }
                ctx.step("work", || entered.effect()).await?;
                Ok(NodeOutput::new())
            }
        }
    };
    let flow = Workflow::builder("flow")
        .node("planner", worker("planner"))
        .node("executor", worker("executor"))
        .node("validator", worker("validator"))
        .edge("planner", "executor")
        .edge("executor", "validator")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert!(matches!(world.answer("planner/confirm", select(&["yes"])).await, Drive::Waiting));
    assert_eq!(entered.get(), 1);
    completed(world.answer("executor/confirm", select(&["yes"])).await);
    assert_eq!(entered.get(), 3);
    assert_eq!(world.stored.lock().unwrap().answers.len(), 2, "two questions in total");
}

#[tokio::test(start_paused = true)]
async fn b052_code_between_the_asks_of_a_loop_runs_again_with_each_answer() {
    let (between, effects) = (Counter::default(), Counter::default());
    let counters = (between.clone(), effects.clone());
    let flow = one_node(move |ctx| {
        let (between, effects) = counters.clone();
        async move {
            loop {
                let age = ctx.interrupt("age", Text::new("How old are you?")).await?;
                between.up();
                ctx.step("seen", || effects.effect()).await?;
                if let Ok(age) = age.parse::<u32>() {
                    return Ok(NodeOutput::new().data("age", &age));
                }
            }
        }
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    for bad in ["old", "", "-1"] {
        assert!(matches!(world.answer("age", text(bad)).await, Drive::Waiting));
    }
    assert_eq!(completed(world.answer("age", text("42")).await), json!({"age": 42}));
    assert_eq!(world.stored.lock().unwrap().answers.len(), 4);
    assert_eq!(between.get(), 1 + 2 + 3 + 4, "plain code runs again for every earlier answer");
    assert_eq!(effects.get(), 4, "a step does not");
}

#[tokio::test(start_paused = true)]
async fn b058_b061_input_and_way_are_those_of_the_pause() {
    let arm = |name: &'static str| {
        move |ctx: NodeContext| async move {
            ctx.interrupt("first", yes_no("?")).await?;
            ctx.interrupt("second", yes_no("?")).await?;
            let chosen: String = ctx.data("chosen")?;
            Ok(NodeOutput::new().data("arm", &(name, chosen)))
        }
    };
    let live = Arc::new(std::sync::Mutex::new("left"));
    let source = live.clone();
    let flow = Workflow::builder("flow")
        .node("choose", move |_| {
            let chosen = *source.lock().unwrap();
            async move { Ok(NodeOutput::new().data("chosen", chosen).condition(chosen)) }
        })
        .node("left", arm("left"))
        .node("right", arm("right"))
        .edge_if("choose", "left", "left")
        .edge_if("choose", "right", "right")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    *live.lock().unwrap() = "right";
    assert!(matches!(world.answer("left/first", select(&["yes"])).await, Drive::Waiting));
    let output = completed(world.answer("left/second", select(&["yes"])).await);
    assert_eq!(output, json!({"chosen": "left", "arm": ["left", "left"]}));
}

#[tokio::test(start_paused = true)]
async fn b014_a_decision_is_not_computed_again_after_the_answer() {
    let judged = Counter::default();
    let counter = judged.clone();
    let flow = one_node(move |ctx| {
        let judged = counter.clone();
        async move {
            let needs_approval = ctx.step("needs approval", || async {
                assert_eq!(judged.up(), 0, "judged twice");
                Ok::<_, NodeError>(true)
            });
            if needs_approval.await? {
                ctx.interrupt("q", yes_no("?")).await?;
            }
            Ok(NodeOutput::new())
        }
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(judged.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn b084_what_was_set_just_before_the_question_is_there_after_it() {
    let flow = one_node(|ctx| async move {
        let state = ctx.workflow_state("seen", 0u32);
        state.set(&(state.get()? + 1))?;
        let stamp = (ctx.now()?, ctx.random_id()?);
        ctx.interrupt("q", yes_no("?")).await?;
        Ok(NodeOutput::new().data("seen", &state.get()?).data("stamp", &(stamp.0.to_string(), stamp.1)))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    let output = completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(output["seen"], 1, "set once, however often the node is entered");
    assert_eq!(output, completed(world.resume().await));
    assert_eq!(output["stamp"][0], "1970-01-01T00:00:01.001Z", "the clock of the first pass");
}

#[tokio::test(start_paused = true)]
async fn b087_b089_a_run_that_was_cut_goes_on_from_its_last_step_in_another_process() {
    let counters: [Counter; 3] = Default::default();
    let steps = counters.clone();
    let flow = Workflow::builder("flow")
        .node("node", move |ctx: NodeContext| {
            let steps = steps.clone();
            async move {
                let mut results = Vec::new();
                for (i, step) in steps.iter().enumerate() {
                    results.push(ctx.step(&format!("{i}"), || step.effect()).await?);
                }
                Ok(NodeOutput::new().data("results", &results))
            }
        })
        .edge("node", END)
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    // One write opens the run, one stores the first step; the process dies at the second's.
    world.writes_left.store(2, Ordering::SeqCst);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Crashed));
    world.writes_left.store(u64::MAX, Ordering::SeqCst);
    let other = world.redeploy(&[&flow]);
    completed(other.resume().await);
    assert_eq!(counters.map(|counter| counter.get()), [1, 2, 1], "only the step that was not stored runs again");
}

#[tokio::test(start_paused = true)]
async fn b157_b161_a_run_that_goes_back_before_its_answer_asks_again_once() {
    let flow = one_node(|ctx| async move {
        let answer = ctx.interrupt("q", yes_no("?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    let before = world.redeploy(&[&flow]);
    assert_eq!(completed(world.answer("q", select(&["yes"])).await), json!({"answer": "yes"}));
    assert!(matches!(before.resume().await, Drive::Waiting), "the copy has no answer");
    assert_eq!(before.open(), ["q"]);
    assert_eq!(completed(before.answer("q", select(&["no"])).await), json!({"answer": "no"}));
    assert_eq!(completed(world.resume().await), json!({"answer": "yes"}), "the original is as it was");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_failed_runs_again_and_does_not_hide_what_follows() {
    let tries = Counter::default();
    let counter = tries.clone();
    let flow = one_node(move |ctx| {
        let tries = counter.clone();
        async move {
            let sent = ctx.step("send", || async {
                let n = tries.up();
                if n < 2 { Err(NodeError::message("unreachable")) } else { Ok(n) }
            });
            if let Ok(n) = sent.await {
                return Ok(NodeOutput::new().data("tried", &n));
            }
            let answer = ctx.interrupt("q", yes_no("Unreachable. Go on without?")).await?;
            Ok(NodeOutput::new().data("without", &answer))
        }
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!(completed(world.answer("q", select(&["yes"])).await), json!({"without": "yes"}));
    assert_eq!(tries.get(), 2, "a failure is not recorded");
}
