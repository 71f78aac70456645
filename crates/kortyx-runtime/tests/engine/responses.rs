//! Responses that are complete before the work is.

use std::{sync::atomic::Ordering, time::Duration};

use kortyx_contracts::Text;
use kortyx_protocol::FailureCode;
use kortyx_runtime::{FinalResponse, NodeContext, NodeOutput, NodeResult, Workflow};
use serde_json::{Value, json};

use crate::{
    sample::{Counter, asks, idle, named, one_node, slept, yes_no},
    support::{Drive, World, completed, failed, select, text},
};

/// The message, the data and the open questions of the only response that was completed.
fn only_response(world: &World) -> (Option<String>, Value, Vec<String>) {
    let stored = world.stored.lock().unwrap();
    let [(response, open)] = &*stored.responses else { panic!("{:?}", stored.responses) };
    (response.message.clone(), response.data.to_value().unwrap(), open.clone())
}

fn responses(world: &World) -> usize {
    world.stored.lock().unwrap().responses.len()
}

/// Completes the response, does one thing, and asks.
fn works_on(tally: &Counter) -> Workflow {
    let tally = tally.clone();
    one_node(move |ctx: NodeContext| {
        let tally = tally.clone();
        async move {
            ctx.complete_response(FinalResponse::new().message("Thanks.").data("order", &7)).await?;
            ctx.step("work", || tally.effect()).await?;
            let stock = ctx.interrupt("stock", yes_no("In stock?")).await?;
            Ok(NodeOutput::new().data("stock", &stock))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_response_is_completed_once_on_a_fresh_a_waiting_and_a_complete_journal() {
    let tally = Counter::default();
    let flow = works_on(&tally);
    let world = World::new(&[&flow]);

    // Fresh.
    assert!(matches!(world.run(&flow, json!({})).await, Drive::Waiting));
    let wanted = (Some("Thanks.".to_owned()), json!({"order": 7}), vec![]);
    assert_eq!(only_response(&world), wanted);

    // Waiting: nothing happens again, however often the run goes on with nothing.
    for _ in 0..2 {
        assert!(matches!(world.resume().await, Drive::Waiting));
        assert_eq!((only_response(&world), tally.get(), world.open()), (wanted.clone(), 1, vec!["stock".to_owned()]));
    }
    assert_eq!(completed(world.answer("stock", select(&["yes"])).await), json!({"stock": "yes"}));

    // Complete: the process died before the end was stored.
    for _ in 0..2 {
        assert_eq!(completed(world.resume().await), json!({"stock": "yes"}));
        assert_eq!((only_response(&world), tally.get()), (wanted.clone(), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_at_any_write_completes_the_response_once() {
    for writes in 0.. {
        let tally = Counter::default();
        let flow = works_on(&tally);
        let world = World::new(&[&flow]);
        world.writes_left.store(writes, Ordering::SeqCst);
        let first = world.run(&flow, json!({})).await;
        let (told, is_durable) = (responses(&world), world.stored.lock().unwrap().snapshot.is_some());
        assert!(told == 0 || is_durable, "told before it was durable");
        if matches!(first, Drive::Waiting) {
            assert!(writes > 3, "opening, completing, the step, the pause: {writes}");
            return;
        }
        assert!(matches!(first, Drive::Crashed), "{first:?}");
        world.writes_left.store(u64::MAX, Ordering::SeqCst);
        if is_durable {
            assert!(matches!(world.resume().await, Drive::Waiting));
            let (message, data, _) = only_response(&world);
            assert_eq!((message.as_deref(), data), (Some("Thanks."), json!({"order": 7})));
            assert_eq!(world.stored.lock().unwrap().after_response, ["stock"]);
        } else {
            assert_eq!((told, tally.get()), (0, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn completing_again_does_nothing() {
    let node = |ctx: NodeContext| async move {
        ctx.complete_response("First.").await?;
        ctx.complete_response("Second.").await?;
        let (a, b) = tokio::join!(ctx.complete_response("Third."), ctx.complete_response("Fourth."));
        a.and(b)?;
        ctx.interrupt("q", yes_no("?")).await?;
        ctx.complete_response("Fifth.").await?;
        Ok(NodeOutput::new())
    };
    let after = |ctx: NodeContext| async move {
        ctx.complete_response("Sixth.").await?;
        Ok(NodeOutput::new())
    };
    let flow = Workflow::builder("flow").node("one", node).node("two", after).edge("one", "two").build().unwrap();
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!({})).await, Drive::Waiting));
    completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(only_response(&world), (Some("First.".to_owned()), json!({}), vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_comes_before_the_end_of_the_response() {
    let node = |ctx: NodeContext| async move {
        tokio::join!(ctx.message("One."), ctx.message("Two."));
        ctx.complete_response(FinalResponse::new()).await?;
        ctx.message("Three.").await;
        Ok(NodeOutput::new())
    };
    let world = World::new(&[&one_node(node)]);
    let seen = world.clone();
    let at_end = std::sync::Arc::new(std::sync::Mutex::new(None));
    let noted = at_end.clone();
    *world.meddler.lock().unwrap() = Some(Box::new(move || {
        if responses(&seen) == 1 {
            noted.lock().unwrap().get_or_insert_with(|| seen.text());
        }
        crate::support::Wait::Polls(0)
    }));
    completed(world.run(&one_node(node), json!({})).await);
    assert_eq!(at_end.lock().unwrap().as_deref(), Some("One.Two."));
}

#[tokio::test(start_paused = true)]
async fn questions_of_other_branches_are_open_at_the_end_of_the_response_and_later_ones_are_marked() {
    let work = |ctx: NodeContext| async move {
        ctx.complete_response("Thanks.").await?;
        ctx.step("wait", || slept(Duration::from_secs(1))).await?;
        let later = ctx.interrupt("later", Text::new("?")).await?;
        Ok(NodeOutput::new().data("later", &later))
    };
    let flow = Workflow::builder("flow").node("fork", idle).node("ask", asks("early")).node("work", work);
    let flow = flow.edge("fork", "ask").edge("fork", "work").build().unwrap();
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!({})).await, Drive::Waiting));
    assert_eq!(only_response(&world), (Some("Thanks.".to_owned()), json!({}), vec!["early".to_owned()]));
    assert_eq!(world.open(), ["early", "later"]);
    assert_eq!(world.stored.lock().unwrap().after_response, ["later"]);
    assert!(matches!(world.answer("later", text("x")).await, Drive::Waiting));
    completed(world.answer("early", select(&["yes"])).await);
    assert_eq!(responses(&world), 1);
}

#[tokio::test(start_paused = true)]
async fn of_two_branches_that_complete_the_response_one_does() {
    let work = |ctx: NodeContext| async move {
        ctx.complete_response(ctx.node()).await?;
        ctx.interrupt(ctx.node(), yes_no("?")).await?;
        Ok(NodeOutput::new())
    };
    let flow = Workflow::builder("flow").node("fork", idle).node("a", work).node("b", work);
    let flow = flow.edge("fork", "a").edge("fork", "b").build().unwrap();
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!({})).await, Drive::Waiting));
    assert!(matches!(world.answer("b", select(&["yes"])).await, Drive::Waiting));
    completed(world.answer("a", select(&["yes"])).await);
    let (message, ..) = only_response(&world);
    assert!(["a", "b"].map(Some).contains(&message.as_deref()));
}

#[tokio::test(start_paused = true)]
async fn the_state_as_of_then_comes_with_the_response() {
    let first = |ctx: NodeContext| async move {
        ctx.workflow_state("count", 0).set(&5)?;
        Ok(NodeOutput::new().data("draft", &"text"))
    };
    let second = |ctx: NodeContext| async move {
        ctx.workflow_state("count", 0).set(&6)?;
        ctx.complete_response("Thanks.").await?;
        Ok(NodeOutput::new().data("draft", &"later"))
    };
    let flow = Workflow::builder("flow").node("one", first).node("two", second).edge("one", "two").build().unwrap();
    let world = World::new(&[&flow]);
    let mut execution = world.start_tracked(&flow);
    assert_eq!(completed(world.drive(&mut execution).await), json!({"draft": "later"}));
    assert!(execution.handle().turn().is_none(), "what comes after the response is the run's own");
    let stored = world.stored.lock().unwrap();
    let response = &stored.responses[0].0;
    assert_eq!((&*response.node, &*response.workflow.id), ("two", "flow"));
    let turn = response.turn.as_ref().unwrap();
    assert_eq!(
        json!([turn.data, turn.workflow_state, turn.nodes]),
        json!([{"draft": "text"}, {"count": 5}, ["one", "two"]])
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_drops_the_call_has_completed_the_response_or_never_does() {
    let dropped = |ctx: NodeContext| async move {
        tokio::select! {
            biased;
            done = ctx.complete_response("Thanks.") => done?,
            () = std::future::ready(()) => {}
        }
        ctx.interrupt("q", yes_no("?")).await?;
        Ok(NodeOutput::new())
    };
    // The run is not open at the first poll, and is at the second.
    let opened = move |ctx: NodeContext| async move {
        ctx.step("open", || slept(Duration::from_millis(1))).await?;
        dropped(ctx).await
    };
    for (flow, told) in [(one_node(dropped), 0), (one_node(opened), 1)] {
        let world = World::new(&[&flow]);
        assert!(matches!(world.run(&flow, json!({})).await, Drive::Waiting));
        assert_eq!(responses(&world), told);
        assert!(matches!(world.resume().await, Drive::Waiting));
        completed(world.answer("q", select(&["yes"])).await);
        assert_eq!(responses(&world), told);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_with_its_response_tells_of_it_first() {
    let node = |ctx: NodeContext| async move {
        ctx.step("open", || slept(Duration::from_millis(1))).await?;
        tokio::select! {
            biased;
            done = ctx.complete_response("Thanks.") => done?,
            () = std::future::ready(()) => {}
        }
        Ok(NodeOutput::new())
    };
    let world = World::new(&[&one_node(node)]);
    completed(world.run(&one_node(node), json!({})).await);
    assert_eq!(responses(&world), 1);
}

#[tokio::test(start_paused = true)]
async fn a_child_is_refused_with_its_name_and_its_node() {
    let child = named("child", |ctx: NodeContext| async move {
        ctx.complete_response("Thanks.").await?;
        Ok(NodeOutput::new())
    });
    let inner = child.clone();
    let flow = one_node(move |ctx: NodeContext| {
        let child = inner.clone();
        async move { NodeResult::Ok(NodeOutput::new().data("child", &ctx.call("child", &child, json!({})).await?)) }
    });
    let world = World::new(&[&flow, &child]);
    let failure = failed(world.run(&flow, json!({})).await);
    assert_eq!(failure.code, FailureCode::ExecutionFailed);
    for part in ["`node`", "`child`", "complete it in the node that calls the child"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert_eq!(responses(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn questions_of_a_child_after_the_response_are_marked() {
    let child = named("child", asks("inner"));
    let inner = child.clone();
    let flow = one_node(move |ctx: NodeContext| {
        let child = inner.clone();
        async move {
            ctx.complete_response("Thanks.").await?;
            NodeResult::Ok(NodeOutput::new().data("child", &ctx.call("child", &child, json!({})).await?))
        }
    });
    let world = World::new(&[&flow, &child]);
    assert!(matches!(world.run(&flow, json!({})).await, Drive::Waiting));
    assert_eq!(world.stored.lock().unwrap().after_response, ["inner"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_cannot_complete_the_response() {
    let node = |ctx: NodeContext| async move {
        ctx.step("work", || async { ctx.complete_response("Thanks.").await }).await?;
        Ok(NodeOutput::new())
    };
    let world = World::new(&[&one_node(node)]);
    let failure = failed(world.run(&one_node(node), json!({})).await);
    assert!(failure.message.contains("within a step"), "{}", failure.message);
    assert_eq!(responses(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn data_that_is_not_json_is_refused_with_its_path() {
    let node = |ctx: NodeContext| async move {
        ctx.complete_response(FinalResponse::new().data("a/b", &[f64::NAN])).await?;
        Ok(NodeOutput::new())
    };
    let world = World::new(&[&one_node(node)]);
    let failure = failed(world.run(&one_node(node), json!({})).await);
    assert_eq!(failure.code, FailureCode::InvalidOutput);
    assert_eq!(failure.issues.unwrap()[0].path, "/a~1b/0");
    assert_eq!(responses(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_the_code_no_longer_completes_where_it_did_parks_nothing_and_stays_complete() {
    let tally = Counter::default();
    let world = World::new(&[&works_on(&tally)]);
    assert!(matches!(world.run(&works_on(&tally), json!({})).await, Drive::Waiting));
    let without = one_node(|ctx: NodeContext| async move {
        let stock = ctx.interrupt("stock", yes_no("In stock?")).await?;
        ctx.interrupt("more", yes_no("More?")).await?;
        Ok(NodeOutput::new().data("stock", &stock))
    });
    let world = world.redeploy(&[&without]);
    assert!(matches!(world.answer("stock", select(&["yes"])).await, Drive::Waiting));
    assert_eq!(world.stored.lock().unwrap().after_response, ["stock", "more"]);
}
