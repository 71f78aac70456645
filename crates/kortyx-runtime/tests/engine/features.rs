//! Everything that a node can do, on three journals: fresh, waiting and complete.

use std::{sync::Arc, time::Duration};

use kortyx_contracts::{Choice, MultiChoice, Picker, Text};
use kortyx_protocol::{ResumeResponse, StreamChunk};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use serde_json::{Value, json};

use crate::{
    sample::{ANYTHING, Counter, asks, named, one_node, slept, yes_no},
    support::{Drive, World, completed, select, text},
};

/// A node that uses a feature, with an outside tally of its effects.
type Node = fn(NodeContext, Counter, Workflow) -> futures_util::future::BoxFuture<'static, NodeResult>;

/// Runs a node on the three journals. The answers are to its questions, in the order in which they open.
async fn on_three_journals(node: Node, answers: &[(&str, ResumeResponse)], effects: usize, output: Value) {
    let tally = Counter::default();
    let child = named("child", asks("inner"));
    let (counter, inner) = (tally.clone(), child.clone());
    let flow = one_node(move |ctx| node(ctx, counter.clone(), inner.clone()));
    let world = World::new(&[&flow, &child]);

    // Fresh.
    let mut last = world.run(&flow, json!({"in": 1})).await;
    for (id, response) in answers {
        assert!(matches!(last, Drive::Waiting), "{last:?}");
        // Waiting: nothing happens again, however often the run goes on with nothing.
        let before = (tally.get(), world.open(), shown(&world));
        for _ in 0..2 {
            assert!(matches!(world.resume().await, Drive::Waiting));
            assert_eq!((tally.get(), world.open(), shown(&world)), before);
        }
        assert!(world.issues(id, response).is_empty());
        last = world.answer(id, response.clone()).await;
    }
    assert_eq!(completed(last), output);
    assert_eq!(tally.get(), effects);

    // Complete: the process died before the end was stored, so the node runs again on all that it has done.
    let before = (tally.get(), shown(&world));
    for _ in 0..2 {
        assert_eq!(completed(world.resume().await), output);
        assert_eq!((tally.get(), shown(&world).len()), (before.0, before.1.len()));
    }
}

/// What the client saw before the last pause or since then; what is emitted after it is delivered again by a recovery.
fn shown(world: &Arc<World>) -> Vec<Value> {
    let chunks = world.chunks.lock().unwrap();
    let shown = chunks.iter().filter(|chunk| !matches!(chunk, StreamChunk::Status { .. }));
    shown.map(|chunk| serde_json::to_value(chunk).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_choice() {
    let node: Node = |ctx, _, _| {
        Box::pin(async move {
            let ask = Choice::new("?").option("a", "A").option("b", "B");
            Ok(NodeOutput::new().data("x", &ctx.interrupt("q", ask).await?))
        })
    };
    on_three_journals(node, &[("q", select(&["b"]))], 0, json!({"x": "b"})).await;
}

#[tokio::test(start_paused = true)]
async fn a_multi_choice() {
    let node: Node = |ctx, _, _| {
        Box::pin(async move {
            let ask = MultiChoice::new("?").option("a", "A").option("b", "B").min(1);
            Ok(NodeOutput::new().data("x", &ctx.interrupt("q", ask).await?))
        })
    };
    on_three_journals(node, &[("q", select(&["b", "a"]))], 0, json!({"x": ["b", "a"]})).await;
}

#[tokio::test(start_paused = true)]
async fn a_text() {
    let node: Node = |ctx, _, _| {
        Box::pin(async move { Ok(NodeOutput::new().data("x", &ctx.interrupt("q", Text::new("?")).await?)) })
    };
    on_three_journals(node, &[("q", text("words"))], 0, json!({"x": "words"})).await;
}

#[tokio::test(start_paused = true)]
async fn a_picker() {
    let node: Node = |ctx, _, _| {
        Box::pin(async move { Ok(NodeOutput::new().data("x", &ctx.interrupt("q", Picker::new("test.users")).await?)) })
    };
    on_three_journals(node, &[("q", select(&["u7"]))], 0, json!({"x": "u7"})).await;
}

#[tokio::test(start_paused = true)]
async fn a_contract() {
    let node: Node = |ctx, _, _| {
        Box::pin(async move {
            Ok(NodeOutput::new().data("x", &ctx.interrupt("q", ANYTHING.ask(json!({"draft": 1}))).await?))
        })
    };
    let answer = ResumeResponse::Value { value: json!({"deep": [1, {"er": null}]}) };
    on_three_journals(node, &[("q", answer)], 0, json!({"x": {"deep": [1, {"er": null}]}})).await;
}

#[tokio::test(start_paused = true)]
async fn a_group() {
    let node: Node = |ctx, tally, _| {
        Box::pin(async move {
            let answers = ctx.interrupt_all([("a", Text::new("?")), ("b", Text::new("?"))]).await?;
            ctx.step("after", || tally.effect()).await?;
            Ok(NodeOutput::new().data("x", &answers))
        })
    };
    on_three_journals(node, &[("b", text("2")), ("a", text("1"))], 1, json!({"x": ["1", "2"]})).await;
}

#[tokio::test(start_paused = true)]
async fn steps_before_between_and_after_questions() {
    let node: Node = |ctx, tally, _| {
        Box::pin(async move {
            let first = ctx.step("s", || tally.effect()).await?;
            ctx.interrupt("q", yes_no("?")).await?;
            let second = ctx.step("s", || tally.effect()).await?;
            ctx.interrupt("q", yes_no("?")).await?;
            let third = ctx.step("s", || tally.effect()).await?;
            Ok(NodeOutput::new().data("x", &[first, second, third]))
        })
    };
    on_three_journals(node, &[("q", select(&["yes"])), ("q", select(&["no"]))], 3, json!({"x": [0, 1, 2]})).await;
}

#[tokio::test(start_paused = true)]
async fn a_child() {
    let node: Node = |ctx, tally, child| {
        Box::pin(async move {
            let output = ctx.call("child", &child, json!({})).await?;
            ctx.step("after", || tally.effect()).await?;
            let again = ctx.call("child", &child, json!({})).await?;
            Ok(NodeOutput::new().data("x", &(output, again)))
        })
    };
    let answers = [("inner", select(&["yes"])), ("inner", select(&["no"]))];
    on_three_journals(node, &answers, 1, json!({"x": [{"inner": "yes"}, {"inner": "no"}]})).await;
}

#[tokio::test(start_paused = true)]
async fn state_and_input() {
    let node: Node = |ctx, _, _| {
        Box::pin(async move {
            let (own, all) = (ctx.node_state("n", 1u32), ctx.workflow_state("n", 10u32));
            own.set(&(own.get()? + 1))?;
            ctx.interrupt("q", yes_no("?")).await?;
            all.set(&(all.get()? + own.get()?))?;
            Ok(NodeOutput::new().data("x", &(own.get()?, all.get()?, ctx.input::<Value>()?)))
        })
    };
    on_three_journals(node, &[("q", select(&["yes"]))], 0, json!({"x": [2, 12, {"in": 1}]})).await;
}

#[tokio::test(start_paused = true)]
async fn clock_randomness_and_keys() {
    let node: Node = |ctx, _, _| {
        Box::pin(async move {
            let read = |ctx: &NodeContext| {
                let key = ctx.idempotency_key("k").chars().take(4).collect::<String>();
                Ok::<_, NodeError>((ctx.now()?.as_millis(), ctx.random_id()?, key))
            };
            let first = read(&ctx)?;
            ctx.interrupt("q", yes_no("?")).await?;
            let recorded: (i64, String, String) =
                ctx.step("first", || async { Ok::<_, NodeError>(first.clone()) }).await?;
            assert_eq!(recorded, first, "the same in every pass");
            let second = read(&ctx)?;
            assert!(second.0 > first.0 && second.1 != first.1);
            Ok(NodeOutput::new().data("x", &(first.0, first.2 == second.2)))
        })
    };
    on_three_journals(node, &[("q", select(&["yes"]))], 0, json!({"x": [1001, true]})).await;
}

#[tokio::test(start_paused = true)]
async fn emissions_and_streams() {
    let node: Node = |ctx, tally, _| {
        Box::pin(async move {
            ctx.text("a").await;
            ctx.text("a").await;
            ctx.message("m").await;
            let stream = ctx.structured("doc", "test.doc");
            stream.set("title", "T").await?;
            stream.text_delta("body", "x").await;
            stream.text_delta("body", "x").await;
            ctx.interrupt("q", yes_no("?")).await?;
            ctx.step("after", || tally.effect()).await?;
            ctx.interrupt("last", yes_no("?")).await?;
            Ok(NodeOutput::new().data("x", &1))
        })
    };
    on_three_journals(node, &[("q", select(&["yes"])), ("last", select(&["yes"]))], 1, json!({"x": 1})).await;
}

#[tokio::test(start_paused = true)]
async fn races_and_joins() {
    let node: Node = |ctx, tally, child| {
        Box::pin(async move {
            let (slow, winner, free) = tokio::join!(
                ctx.step("slow", || slept(Duration::from_secs(5))),
                async {
                    tokio::select! {
                        a = ctx.interrupt("a", yes_no("?")) => a,
                        b = ctx.interrupt("b", yes_no("?")) => b,
                        c = ctx.call("child", &child, json!({})) => Ok(c?.to_string()),
                    }
                },
                ctx.step("free", || tally.effect()),
            );
            slow?;
            Ok(NodeOutput::new().data("x", &(winner?, free?)))
        })
    };
    on_three_journals(node, &[("b", select(&["no"]))], 1, json!({"x": ["no", 0]})).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_cancelled_where_the_node_may_see_it() {
    use kortyx_contracts::AskExt;
    let node: Node = |ctx, _, _| {
        Box::pin(
            async move { Ok(NodeOutput::new().data("x", &ctx.interrupt("q", yes_no("?").optional_cancel()).await?)) },
        )
    };
    on_three_journals(node, &[("q", ResumeResponse::Cancel)], 0, json!({"x": null})).await;
}
