//! Child workflows: asked through the root run, run once, stored within their caller.

use std::time::Duration;

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, try_join_all},
};
use kortyx_contracts::Text;
use kortyx_protocol::FailureCode;
use kortyx_runtime::{CallError, NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    sample::{Counter, asks, named, one_node, yes_no},
    support::{Drive, World, completed, failed, select, text},
};

/// A node that calls a child under the id `child` and sets the field `child` to its output.
pub(crate) fn calls(child: &Workflow) -> impl Fn(NodeContext) -> BoxFuture<'static, NodeResult> + use<> {
    let child = child.clone();
    move |ctx| {
        let child = child.clone();
        async move { Ok(NodeOutput::new().data("child", &ctx.call("child", &child, json!({})).await?)) }.boxed()
    }
}

/// Workflows that call each other in a row, `depth` of them above the innermost; the outermost first.
pub(crate) fn nested(depth: usize, innermost: Workflow) -> Vec<Workflow> {
    let mut workflows = vec![innermost];
    for level in 0..depth {
        let outer = named(&format!("level{level}"), calls(&workflows[0]));
        workflows.insert(0, outer);
    }
    workflows
}

pub(crate) fn world(workflows: &[Workflow]) -> std::sync::Arc<World> {
    World::new(&workflows.iter().collect::<Vec<_>>())
}

#[tokio::test(start_paused = true)]
async fn b042_steps_of_a_child_run_once_at_any_depth() {
    for depth in 1..=3 {
        let mailed = Counter::default();
        let counter = mailed.clone();
        let innermost = named("innermost", move |ctx| {
            let mailed = counter.clone();
            async move {
                ctx.step("mail", || mailed.effect()).await?;
                let answer = ctx.interrupt("q", yes_no("?")).await?;
                Ok(NodeOutput::new().data("answer", &answer))
            }
        });
        let workflows = nested(depth, innermost);
        let world = world(&workflows);
        world.run(&workflows[0], json!(null)).await;
        assert!(matches!(world.resume().await, Drive::Waiting));
        let mut output = completed(world.answer("q", select(&["yes"])).await);
        for _ in 0..depth {
            output = output["child"].take();
        }
        assert_eq!(output, json!({"answer": "yes"}));
        assert_eq!(mailed.get(), 1, "depth {depth}");
    }
}

#[tokio::test(start_paused = true)]
async fn b064_an_answer_deep_below_enters_no_first_node_again() {
    let entered = Counter::default();
    let counter = entered.clone();
    let inner = named("inner", asks("q"));
    let outer = Workflow::builder("outer")
        .node("first", move |_| {
            counter.up();
            async { Ok(NodeOutput::new()) }
        })
        .node("second", calls(&inner))
        .edge("first", "second")
        .build()
        .unwrap();
    let root = named("root", calls(&outer));
    let world = World::new(&[&root, &outer, &inner]);
    world.run(&root, json!(null)).await;
    let output = completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(output, json!({"child": {"child": {"q": "yes"}}}));
    assert_eq!(entered.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn b065_the_second_of_two_children_starts_fresh() {
    for second_asks in [false, true] {
        let first = named("first", asks("q"));
        let second = named("second", move |ctx: NodeContext| async move {
            if second_asks {
                ctx.interrupt("q", yes_no("?")).await?;
            }
            Ok(NodeOutput::new().data("asked", &second_asks))
        });
        let children = (first.clone(), second.clone());
        let parent = one_node(move |ctx| {
            let (first, second) = children.clone();
            async move {
                let a = ctx.call("first", &first, json!({})).await?;
                let b = ctx.call("second", &second, json!({})).await?;
                Ok(NodeOutput::new().data("both", &(a, b)))
            }
        });
        let world = World::new(&[&parent, &first, &second]);
        world.run(&parent, json!(null)).await;
        let mut last = world.answer("q", select(&["yes"])).await;
        if second_asks {
            assert!(matches!(last, Drive::Waiting));
            last = world.answer("q", select(&["no"])).await;
        }
        assert_eq!(completed(last), json!({"both": [{"q": "yes"}, {"asked": second_asks}]}));
    }
}

#[tokio::test(start_paused = true)]
async fn b066_b077_a_child_that_is_answered_in_another_process_wakes_its_parent() {
    let child = named("child", asks("q"));
    let parent = one_node(calls(&child));
    let world = World::new(&[&parent, &child]);
    world.run(&parent, json!(null)).await;
    // Other objects, the same code.
    let child = named("child", asks("q"));
    let parent = one_node(calls(&child));
    let other = world.redeploy(&[&parent, &child]);
    assert_eq!(completed(other.answer("q", select(&["no"])).await), json!({"child": {"q": "no"}}));
}

#[tokio::test(start_paused = true)]
async fn b071_a_pause_of_a_child_is_no_error_for_its_parent() {
    let child = named("child", asks("q"));
    let middle = named("middle", calls(&child));
    let inner = middle.clone();
    let parent = one_node(move |ctx| {
        let middle = inner.clone();
        async move {
            // Everything that goes wrong becomes a value.
            let outcome = match ctx.call("middle", &middle, json!({})).await {
                Ok(output) => output,
                Err(error) => json!(error.to_string()),
            };
            Ok(NodeOutput::new().data("outcome", &outcome))
        }
    });
    let world = World::new(&[&parent, &middle, &child]);
    assert!(matches!(world.run(&parent, json!(null)).await, Drive::Waiting));
    let output = completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(output, json!({"outcome": {"child": {"q": "yes"}}}));
}

#[tokio::test(start_paused = true)]
async fn b072_every_pause_of_a_child_resumes_alike() {
    let child = named("child", |ctx| async move {
        let mut answers = Vec::new();
        for i in 0..5 {
            answers.push(ctx.interrupt(&format!("q{i}"), Text::new("?")).await?);
        }
        Ok(NodeOutput::new().data("answers", &answers))
    });
    let parent = one_node(calls(&child));
    let world = World::new(&[&parent, &child]);
    let mut last = world.run(&parent, json!(null)).await;
    for i in 0..5 {
        assert!(matches!(last, Drive::Waiting));
        last = world.answer(&format!("q{i}"), text(&i.to_string())).await;
    }
    assert_eq!(completed(last), json!({"child": {"answers": ["0", "1", "2", "3", "4"]}}));
}

#[tokio::test(start_paused = true)]
async fn b070_an_approved_call_goes_on_from_its_record_whatever_else_is_done_first() {
    let acted = Counter::default();
    let counter = acted.clone();
    let child = named("child", move |ctx: NodeContext| {
        let acted = counter.clone();
        async move {
            let answer = ctx.interrupt("gate", yes_no("Act?")).await?;
            ctx.step("look up", || async { Ok::<_, NodeError>(1) }).await?;
            if answer == "yes" {
                ctx.step("act", || acted.effect()).await?;
            }
            Ok(NodeOutput::new())
        }
    });
    let parent = one_node(calls(&child));
    let world = World::new(&[&parent, &child]);
    world.run(&parent, json!(null)).await;
    completed(world.answer("gate", select(&["yes"])).await);
    assert_eq!((acted.get(), world.stored.lock().unwrap().answers.len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn b076_a_restored_child_shows_only_what_is_still_open() {
    let child = named("child", |ctx| async move {
        ctx.interrupt("q1", yes_no("?")).await?;
        ctx.interrupt("q2", yes_no("?")).await?;
        Ok(NodeOutput::new())
    });
    let parent = one_node(calls(&child));
    let world = World::new(&[&parent, &child]);
    world.run(&parent, json!(null)).await;
    assert!(matches!(world.resume().await, Drive::Waiting));
    assert_eq!(world.open(), ["q1"]);
    assert!(matches!(world.answer("q1", select(&["yes"])).await, Drive::Waiting));
    assert_eq!(world.open(), ["q2"]);
    assert!(matches!(world.resume().await, Drive::Waiting));
    assert_eq!(world.open(), ["q2"]);
    completed(world.answer("q2", select(&["yes"])).await);
}

#[tokio::test(start_paused = true)]
async fn b159_a_run_restored_in_the_middle_of_a_child_runs_only_the_rest_of_it() {
    let counters: [Counter; 4] = Default::default();
    let steps = counters.clone();
    let child = named("child", move |ctx: NodeContext| {
        let steps = steps.clone();
        async move {
            for (i, step) in steps.iter().enumerate() {
                ctx.step(&format!("{i}"), || step.effect()).await?;
                if i == 1 {
                    ctx.interrupt("q", yes_no("?")).await?;
                }
            }
            Ok(NodeOutput::new())
        }
    });
    let parent = one_node(calls(&child));
    let world = World::new(&[&parent, &child]);
    world.run(&parent, json!(null)).await;
    let back = world.redeploy(&[&parent, &child]);
    completed(world.answer("q", select(&["yes"])).await);
    completed(back.answer("q", select(&["no"])).await);
    assert_eq!(counters.map(|counter| counter.get()), [1, 1, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_has_ended_never_runs_again() {
    let entered = Counter::default();
    let counter = entered.clone();
    let child = named("child", move |_| {
        let output = NodeOutput::new().data("n", &counter.up());
        async move { Ok(output) }
    });
    let inner = child.clone();
    let parent = one_node(move |ctx| {
        let child = inner.clone();
        async move {
            let output = ctx.call("child", &child, json!({})).await?;
            ctx.interrupt("q", yes_no("?")).await?;
            Ok(NodeOutput::new().data("child", &output))
        }
    });
    let world = World::new(&[&parent, &child]);
    world.run(&parent, json!(null)).await;
    let output = completed(world.answer("q", select(&["yes"])).await);
    assert_eq!((output, entered.get()), (json!({"child": {"n": 0}}), 1));
}

#[tokio::test(start_paused = true)]
async fn joined_children_run_at_once_and_in_turn_only_when_awaited_so() {
    let child = named("child", |_| async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok(NodeOutput::new())
    });
    let inner = child.clone();
    let parent = one_node(move |ctx| {
        let child = inner.clone();
        async move {
            try_join_all((0..64).map(|_| ctx.call("child", &child, json!({})))).await?;
            Ok(NodeOutput::new())
        }
    });
    let world = World::new(&[&parent, &child]);
    let began = tokio::time::Instant::now();
    completed(world.run(&parent, json!(null)).await);
    assert!(began.elapsed() < Duration::from_secs(11), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_lost_a_race_is_closed_with_its_questions() {
    let child = named("child", asks("inner"));
    let inner = child.clone();
    let parent = one_node(move |ctx| {
        let child = inner.clone();
        async move {
            tokio::select! {
                output = ctx.call("child", &child, json!({})) => drop(output?),
                answer = ctx.interrupt("outer", yes_no("?")) => drop(answer?),
            }
            let last = ctx.interrupt("last", yes_no("?")).await?;
            Ok(NodeOutput::new().data("last", &last))
        }
    });
    let world = World::new(&[&parent, &child]);
    world.run(&parent, json!(null)).await;
    assert_eq!(world.open(), ["outer", "inner"]);
    assert!(matches!(world.answer("outer", select(&["yes"])).await, Drive::Waiting));
    assert_eq!(world.open(), ["last"], "the child's question is closed");
    assert_eq!(completed(world.answer("last", select(&["yes"])).await), json!({"last": "yes"}));
}

#[tokio::test(start_paused = true)]
async fn a_childs_failure_is_a_typed_error_that_its_parent_can_handle() {
    let tried = Counter::default();
    let counter = tried.clone();
    let child = named("child", move |_| {
        counter.up();
        async { Err(NodeError::public("too-late", "the shop is closed")) }
    });
    let inner = child.clone();
    let parent = one_node(move |ctx| {
        let child = inner.clone();
        async move {
            let failure = match ctx.call("child", &child, json!({})).await {
                Err(CallError::Failed(failure)) => failure,
                other => return Err(NodeError::message(format!("{other:?}"))),
            };
            ctx.interrupt("q", yes_no("Closed. Go on?")).await?;
            Ok(NodeOutput::new().data("code", &failure.details).data("why", &failure.message))
        }
    });
    let world = World::new(&[&parent, &child]);
    world.run(&parent, json!(null)).await;
    let output = completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(output, json!({"code": {"code": "too-late"}, "why": "the shop is closed"}));
    assert_eq!(tried.get(), 1, "a failed child does not run again");
}

#[tokio::test(start_paused = true)]
async fn a_childs_failure_that_its_parent_passes_on_fails_the_run_with_its_code() {
    let child = named("child", |_| async { Err(NodeError::public("too-late", "the shop is closed")) });
    let parent = one_node(calls(&child));
    let failure = failed(World::new(&[&parent, &child]).run(&parent, json!(null)).await);
    assert_eq!(failure.code, FailureCode::DomainError);
    assert_eq!(failure.message, "the shop is closed");
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    #[schemars(range(min = 1))]
    amount: u32,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Receipt {
    total: u32,
}

#[tokio::test(start_paused = true)]
async fn a_childs_input_and_output_are_checked() {
    let child = Workflow::builder("child")
        .input::<Order>()
        .output::<Receipt>()
        .node("node", |ctx| async move {
            let order: Order = ctx.input()?;
            if order.amount == 13 {
                return Ok(NodeOutput::new().data("total", "thirteen"));
            }
            Ok(NodeOutput::new().data("total", &(order.amount * 2)))
        })
        .build()
        .unwrap();
    let inner = child.clone();
    let parent = one_node(move |ctx| {
        let child = inner.clone();
        async move {
            let order = Order { amount: ctx.input()? };
            let outcome = match ctx.call("child", &child, order).await {
                Ok(receipt) => json!(receipt.total),
                Err(CallError::Input { issues, .. }) => json!(issues),
                Err(CallError::Failed(failure)) => json!([failure.code.as_str(), failure.issues]),
                Err(other) => return Err(other.into()),
            };
            Ok(NodeOutput::new().data("outcome", &outcome))
        }
    });
    let erased = child.erase();
    let outcome = async |amount: u32| {
        completed(World::new(&[&parent, &erased]).run(&parent, json!(amount)).await)["outcome"].clone()
    };
    assert_eq!(outcome(21).await, 42);
    assert_eq!(outcome(0).await[0]["path"], "/amount");
    let wrong = outcome(13).await;
    assert_eq!((&wrong[0], &wrong[1][0]["path"]), (&json!("INVALID_OUTPUT"), &json!("/total")));
}

#[tokio::test(start_paused = true)]
async fn a_childs_data_and_state_are_its_own() {
    let child = named("child", |ctx| async move {
        let state = ctx.workflow_state("n", 0u32);
        state.set(&(state.get()? + 10))?;
        let node = ctx.node_state("n", 0u32);
        node.set(&(node.get()? + 10))?;
        let data: Option<Value> = ctx.optional_data("field")?;
        Ok(NodeOutput::new().data("state", &state.get()?).data("node", &node.get()?).data("field", &data))
    });
    let inner = child.clone();
    let parent = Workflow::builder("flow")
        .node("node", move |ctx| {
            let child = inner.clone();
            async move {
                let state = ctx.workflow_state("n", 0u32);
                state.set(&1)?;
                let first = ctx.call("child", &child, json!({})).await?;
                let second = ctx.call("child", &child, json!({})).await?;
                let field: String = ctx.data("field")?;
                Ok(NodeOutput::new().data("all", &(first, second, state.get()?, field)))
            }
        })
        .node("before", |_| async { Ok(NodeOutput::new().data("field", "parent's")) })
        .start("before")
        .edge("before", "node")
        .build()
        .unwrap();
    let world = World::new(&[&parent, &child]);
    let output = completed(world.run(&parent, json!(null)).await);
    let own = json!({"state": 10, "node": 10, "field": null});
    assert_eq!(output["all"], json!([own, own, 1, "parent's"]));
}
