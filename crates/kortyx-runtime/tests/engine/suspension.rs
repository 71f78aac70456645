//! Suspension by dropping: what a node can do around a question, and what it costs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::sample::{one_node, yes_no};
use crate::support::{Drive, World, completed, failed, select, text};
use kortyx_contracts::{AskExt, Text};
use kortyx_protocol::ResumeResponse;
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Workflow, workflow::END};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_question_pauses_the_run_and_its_answer_goes_on() {
    let flow = one_node(|ctx| async move {
        let answer = ctx.interrupt("q", yes_no("Really?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!(world.open(), ["q"]);
    assert_eq!(completed(world.answer("q", select(&["yes"])).await), json!({"answer": "yes"}));
    assert_eq!(world.stored.lock().unwrap().writes, 2, "one write to pause, one to finish");
}

#[tokio::test(start_paused = true)]
async fn joined_questions_are_open_at_once_and_a_joined_step_finishes_first() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let flow = one_node(move |ctx| {
        let runs = counter.clone();
        async move {
            let slow = || async {
                tokio::time::sleep(Duration::from_millis(30)).await;
                Ok::<_, NodeError>(runs.fetch_add(1, Ordering::SeqCst))
            };
            let (a, b, c) = tokio::join!(
                ctx.interrupt("a", yes_no("A?")),
                ctx.interrupt("b", yes_no("B?")),
                ctx.step("slow", slow)
            );
            Ok(NodeOutput::new().data("a", &a?).data("b", &b?).data("c", &c?))
        }
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!(world.open(), ["a", "b"]);
    assert!(matches!(world.answer("b", select(&["no"])).await, Drive::Waiting));
    assert_eq!(world.open(), ["a"]);
    let output = completed(world.answer("a", select(&["yes"])).await);
    assert_eq!(output, json!({"a": "yes", "b": "no", "c": 0}));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn the_loser_of_a_select_is_withdrawn() {
    let flow = one_node(|ctx| async move {
        let first = tokio::select! {
            a = ctx.interrupt("a", yes_no("A?")) => a?,
            b = ctx.interrupt("b", yes_no("B?")) => b?,
        };
        let next = ctx.interrupt("next", yes_no("Next?")).await?;
        Ok(NodeOutput::new().data("first", &first).data("next", &next))
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    let mut open = world.open();
    open.sort_unstable(); // `select!` polls in random order
    assert_eq!(open, ["a", "b"]);
    assert!(matches!(world.answer("b", select(&["no"])).await, Drive::Waiting));
    assert_eq!(world.open(), ["next"]);
    assert_eq!(world.stored.lock().unwrap().superseded.len(), 1);
    assert_eq!(completed(world.answer("next", select(&["yes"])).await), json!({"first": "no", "next": "yes"}));
}

#[tokio::test(start_paused = true)]
async fn b172_nothing_in_user_code_swallows_the_pause() {
    let flow = one_node(|ctx| async move {
        for _ in 0..3 {
            let ask = ctx.interrupt("q", yes_no("Q?"));
            if let Ok(Ok(answer)) = tokio::time::timeout(Duration::from_millis(1), ask).await {
                return Ok(NodeOutput::new().data("answer", &answer));
            }
        }
        Err(NodeError::message("swallowed"))
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!(completed(world.answer("q", select(&["yes"])).await), json!({"answer": "yes"}));
}

#[tokio::test(start_paused = true)]
async fn b172_a_question_in_a_spawned_task_pauses_too() {
    let flow = one_node(|ctx| async move {
        let asked = tokio::spawn(async move { ctx.interrupt("q", yes_no("Q?")).await });
        let answer = asked.await??;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!(completed(world.answer("q", select(&["no"])).await), json!({"answer": "no"}));
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_questions_are_open_at_once() {
    let flow = one_node(|ctx| async move {
        let asks = (0..300).map(|i| ctx.interrupt(&format!("m{i}"), Text::new("M?")));
        let answers = futures_util::future::try_join_all(asks).await?;
        Ok(NodeOutput::new().data("answers", &answers))
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!(world.open().len(), 300);
    for i in (0..299).rev() {
        world.accept(&format!("m{i}"), text(&i.to_string()));
    }
    assert!(matches!(world.resume().await, Drive::Waiting));
    let output = completed(world.answer("m299", text("299")).await);
    assert_eq!(output["answers"][17], "17");
}

#[tokio::test(start_paused = true)]
async fn b043_a_group_enters_the_node_again_only_when_all_are_answered() {
    let entered = Arc::new(AtomicUsize::new(0));
    let counter = entered.clone();
    let flow = one_node(move |ctx| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move {
            let asks = (("a", yes_no("A?")), ("b", Text::new("B?")), ("c", yes_no("C?")));
            let (a, b, c) = ctx.interrupt_all(asks).await?;
            Ok(NodeOutput::new().data("all", &(a, b, c)))
        }
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert!(matches!(world.answer("b", text("x")).await, Drive::Waiting));
    assert!(matches!(world.answer("a", select(&["yes"])).await, Drive::Waiting));
    assert_eq!(world.open(), ["c"]);
    let output = completed(world.answer("c", select(&["no"])).await);
    assert_eq!(output, json!({"all": ["yes", "x", "no"]}));
    assert_eq!(entered.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn b060_each_round_of_a_loop_gets_its_own_answer() {
    let flow = one_node(|ctx| async move {
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(ctx.interrupt("pick", Text::new("Pick")).await?);
        }
        Ok(NodeOutput::new().data("answers", &answers))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    world.answer("pick", text("1")).await;
    world.answer("pick", text("2")).await;
    assert_eq!(completed(world.answer("pick", text("3")).await), json!({"answers": ["1", "2", "3"]}));
}

#[tokio::test(start_paused = true)]
async fn an_optional_cancel_reaches_the_node_as_none() {
    let flow = one_node(|ctx| async move {
        let answer = ctx.interrupt("q", yes_no("Q?").optional_cancel()).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert_eq!(completed(world.answer("q", ResumeResponse::Cancel).await), json!({"answer": null}));
}

#[tokio::test(start_paused = true)]
async fn what_was_emitted_before_a_pause_is_not_emitted_again() {
    let flow = one_node(|ctx| async move {
        ctx.text("before ").await;
        ctx.text("before ").await;
        let answer = ctx.interrupt("q", yes_no("Q?")).await?;
        ctx.text("before ").await;
        ctx.text(format!("after {answer}")).await;
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(world.text(), "before before before after yes");
}

#[tokio::test(start_paused = true)]
async fn a_step_runs_once_over_any_number_of_pauses_and_crashes() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let flow = one_node(move |ctx| {
        let runs = counter.clone();
        async move {
            let n = ctx.step("n", || async { Ok::<_, NodeError>(runs.fetch_add(1, Ordering::SeqCst)) }).await?;
            ctx.interrupt("q", yes_no("Q?")).await?;
            ctx.interrupt("q", yes_no("Q again?")).await?;
            Ok(NodeOutput::new().data("n", &n))
        }
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    for _ in 0..3 {
        assert!(matches!(world.resume().await, Drive::Waiting), "continuing without an answer keeps waiting");
    }
    world.answer("q", select(&["yes"])).await;
    assert_eq!(completed(world.answer("q", select(&["yes"])).await), json!({"n": 0}));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_renamed_question_parks_the_run_and_the_old_code_goes_on() {
    let old = one_node(|ctx| async move {
        let answer = ctx.interrupt("old", yes_no("Q?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let new = one_node(|ctx| async move {
        ctx.interrupt("new", yes_no("Q?")).await?;
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&old]);
    world.run(&old, json!(null)).await;
    world.accept("old", select(&["yes"]));
    let world = world.redeploy(&[&new]);
    let Drive::Parked(failure) = world.resume().await else { panic!("expected a parked run") };
    assert_eq!(failure.code.as_str(), "REPLAY_DIVERGED");
    assert!(failure.message.contains("`old`"), "{}", failure.message);
    let world = world.redeploy(&[&old]);
    assert_eq!(completed(world.resume().await), json!({"answer": "yes"}));
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_two_nodes_ends_when_the_condition_says_so() {
    let flow = Workflow::builder("flow")
        .node("draft", |ctx: NodeContext| async move {
            let round = ctx.node_state("round", 0u32);
            round.set(&(round.get()? + 1))?;
            Ok(NodeOutput::new().data("round", &round.get()?))
        })
        .node("review", |ctx: NodeContext| async move {
            let answer = ctx.interrupt("ok", yes_no("Ok?")).await?;
            Ok(NodeOutput::new().condition(answer))
        })
        .edge("draft", "review")
        .edge_if("review", END, "yes")
        .otherwise("review", "draft")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    world.answer("ok", select(&["no"])).await;
    world.answer("ok", select(&["no"])).await;
    assert_eq!(completed(world.answer("ok", select(&["yes"])).await), json!({"round": 3}));
}

#[tokio::test(start_paused = true)]
async fn a_child_asks_through_its_parent_and_runs_once() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let child = Workflow::builder("child")
        .node("work", move |ctx: NodeContext| {
            let runs = counter.clone();
            async move {
                ctx.step("mail", || async { Ok::<_, NodeError>(runs.fetch_add(1, Ordering::SeqCst)) }).await?;
                let answer = ctx.interrupt("q", yes_no("Child?")).await?;
                Ok(NodeOutput::new().data("answer", &answer))
            }
        })
        .build()
        .unwrap();
    let inner = child.clone();
    let parent = one_node(move |ctx| {
        let child = inner.clone();
        async move {
            let (a, b) = tokio::join!(ctx.call("a", &child, json!({})), ctx.call("b", &child, json!({})));
            let last = ctx.interrupt("last", yes_no("Last?")).await?;
            Ok(NodeOutput::new().data("a", &a?).data("b", &b?).data("last", &last))
        }
    });
    let world = World::new(&[&parent, &child]);
    assert!(matches!(world.run(&parent, json!(null)).await, Drive::Waiting));
    assert_eq!(world.open(), ["q", "q"]);
    world.answer("q", select(&["yes"])).await;
    world.answer("q", select(&["no"])).await;
    assert_eq!(world.open(), ["last"]);
    let output = completed(world.answer("last", select(&["yes"])).await);
    assert_eq!(output, json!({"a": {"answer": "yes"}, "b": {"answer": "no"}, "last": "yes"}));
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_branch_is_visible_while_another_works() {
    let flow = Workflow::builder("flow")
        .node("start", |_| async { Ok(NodeOutput::new()) })
        .node("ask", |ctx: NodeContext| async move {
            let answer = ctx.interrupt("q", yes_no("Q?")).await?;
            Ok(NodeOutput::new().data("asked", &answer))
        })
        .node("work", |_| async {
            tokio::time::sleep(Duration::from_mins(1)).await;
            Ok(NodeOutput::new().data("worked", &true))
        })
        .node("join", |ctx: NodeContext| async move {
            let asked: String = ctx.data("asked")?;
            Ok(NodeOutput::new().data("both", &(asked, ctx.data::<bool>("worked")?)))
        })
        .edge("start", "ask")
        .edge("start", "work")
        .edge("ask", "join")
        .edge("work", "join")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    let mut execution = world.start(&flow, &json!(null));
    let handle = execution.handle();
    let driver = {
        let world = world.clone();
        tokio::spawn(async move { world.drive(&mut execution).await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.open(), ["q"]);
    world.accept("q", select(&["yes"]));
    handle.deliver(world.stored.lock().unwrap().answers.clone());
    let output = completed(driver.await.unwrap());
    assert_eq!(output["both"], json!(["yes", true]));
}

#[tokio::test(start_paused = true)]
async fn two_branches_that_write_one_field_conflict_at_the_join() {
    let write = |value: u32| move |_: NodeContext| async move { Ok(NodeOutput::new().data("field", &value)) };
    let flow = Workflow::builder("flow")
        .node("start", write(0))
        .node("left", write(1))
        .node("right", write(2))
        .node("join", |_| async { Ok(NodeOutput::new()) })
        .edge("start", "left")
        .edge("start", "right")
        .edge("left", "join")
        .edge("right", "join")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    let failure = failed(world.run(&flow, json!(null)).await);
    assert_eq!(failure.code.as_str(), "GRAPH_OUTPUT_CONFLICT");
    assert!(failure.message.contains("`left` and `right`"), "{}", failure.message);
}
