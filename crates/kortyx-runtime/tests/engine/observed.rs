//! What an observer is told: in order, once, nothing that replay finds, and content only where it asks.

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex},
};

use futures_util::future::{Either, select as race};
use kortyx_protocol::FailureCode;
use kortyx_runtime::{
    CallName, Captures, End, ExecutionHandle, ModelName, Moment, NodeContext, NodeError, NodeOutput, Observer, Visit,
    Work, Workflow,
    workflow::{NodeOptions, Retry},
};
use serde_json::json;

use crate::{
    sample::{named, one_node, yes_no},
    support::{Drive, World, completed, failed, select},
};

/// Keeps what it is told as one line each, and what its `Debug` shows.
#[derive(Default)]
struct Told {
    lines: Mutex<Vec<String>>,
    shown: Mutex<String>,
    content: Mutex<String>,
    captures: Captures,
}

impl Told {
    fn by(world: &World) -> Arc<Self> {
        Self::capturing(world, Captures::nothing())
    }

    fn capturing(world: &World, captures: Captures) -> Arc<Self> {
        let told = Arc::new(Self { captures, ..Self::default() });
        *world.observer.lock().unwrap() = Some(told.clone());
        told
    }

    /// The lines since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }
}

impl Observer for Told {
    fn observe(&self, moment: &Moment<'_>) {
        writeln!(self.shown.lock().unwrap(), "{moment:?}").unwrap();
        self.lines.lock().unwrap().push(line(moment));
        if let Moment::NodeLeft { output: Some(content), .. }
        | Moment::StepEnded { output: Some(content), .. }
        | Moment::ChildEnded { output: Some(content), .. }
        | Moment::ChildStarted { input: Some(content), .. } = moment
        {
            self.content.lock().unwrap().push_str(content.json().get());
        }
    }

    fn captures(&self) -> Captures {
        self.captures
    }
}

fn line(moment: &Moment<'_>) -> String {
    let at = |visit: &Visit| format!("{}/{}", visit.workflow, visit.node);
    let called = |call: &CallName| format!("{}#{}", call.id, call.occurrence);
    match moment {
        Moment::NodeEntered { visit } => {
            let again = if visit.again { " again" } else { "" };
            format!("enter {}{again}", at(visit))
        }
        Moment::NodeLeft { visit, end, retries, .. } => {
            let retries = if *retries { " retries" } else { "" };
            format!("leave {} {}{retries}", at(visit), end.as_str())
        }
        Moment::StepStarted { call, .. } => format!("step {}", called(call)),
        Moment::StepEnded { call, end, .. } => format!("step {} {}", called(call), end.as_str()),
        Moment::ChildStarted { call, workflow, again, .. } => {
            format!("call {} {workflow}{}", called(call), if *again { " again" } else { "" })
        }
        Moment::ChildEnded { call, end, .. } => format!("call {} {}", called(call), end.as_str()),
        Moment::Transitioned { visit, to, condition } => {
            let to = to.map_or("end", |to| &**to);
            format!("{} -> {to} {}", visit.node, condition.unwrap_or("-"))
        }
        Moment::HandedOff { visit, workflow, .. } => format!("{} => {workflow}", at(visit)),
        Moment::Diverged { failure } => format!("diverged {}", failure.code.as_str()),
        Moment::Work { work: Work::ModelStarted { step, model, .. }, .. } => format!("ask {} in {step}", model.model),
        _ => "other".to_owned(),
    }
}

/// A node that does a step, asks, and does another.
fn asking() -> Workflow {
    Workflow::builder("flow")
        .node("ask", |ctx: NodeContext| async move {
            ctx.step("before", || async { Ok::<_, NodeError>(1) }).await?;
            let answer = ctx.interrupt("q", yes_no("?")).await?;
            ctx.step("after", || async { Ok::<_, NodeError>(2) }).await?;
            Ok(NodeOutput::new().data("answer", &answer).condition(&answer))
        })
        .node("good", |_| async { Ok(NodeOutput::new()) })
        .node("bad", |_| async { Ok(NodeOutput::new()) })
        .edge_if("ask", "good", "yes")
        .otherwise("ask", "bad")
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn moments_come_in_order_and_what_replay_finds_is_not_told_again() {
    let flow = asking();
    let world = World::new(&[&flow]);
    let told = Told::by(&world);
    world.run(&flow, json!(null)).await;
    assert_eq!(told.take(), ["enter flow/ask", "step before#0", "step before#0 completed", "leave flow/ask paused"]);
    completed(world.answer("q", select(&["yes"])).await);
    let wanted = [
        "enter flow/ask again",
        "step after#0",
        "step after#0 completed",
        "leave flow/ask completed",
        "ask -> good yes",
        "enter flow/good",
        "leave flow/good completed",
    ];
    assert_eq!(told.take(), wanted);
}

#[tokio::test(start_paused = true)]
async fn an_edge_that_catches_the_rest_is_told_without_what_the_node_said() {
    let flow = asking();
    let world = World::new(&[&flow]);
    let told = Told::by(&world);
    world.run(&flow, json!(null)).await;
    completed(world.answer("q", select(&["no"])).await);
    assert!(told.take().contains(&"ask -> bad -".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_child_pauses_with_its_caller_and_goes_on_with_it() {
    let child = named("child", |ctx| async move {
        let answer = ctx.interrupt("q", yes_no("?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let called = child.clone();
    let parent = named("parent", move |ctx| {
        let child = called.clone();
        async move { Ok(NodeOutput::new().data("child", &ctx.call("c", &child, json!({})).await?)) }
    });
    let world = World::new(&[&parent, &child]);
    let told = Told::by(&world);
    world.run(&parent, json!(null)).await;
    let wanted = [
        "enter parent/node",
        "call c#0 child",
        "enter child/node",
        "leave child/node paused",
        "leave parent/node paused",
        "call c#0 paused",
    ];
    assert_eq!(sorted(told.take()), sorted(wanted.map(str::to_owned).to_vec()));
    completed(world.answer("q", select(&["yes"])).await);
    let wanted = [
        "enter parent/node again",
        "call c#0 child again",
        "enter child/node again",
        "leave child/node completed",
        "call c#0 completed",
        "leave parent/node completed",
    ];
    assert_eq!(told.take(), wanted);
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_fails_is_told_with_its_code_and_whether_another_follows() {
    let options = NodeOptions::new().retry(Retry::attempts(2));
    let flow = Workflow::builder("flow")
        .node_with("node", options, |ctx: NodeContext| async move {
            ctx.step("s", || async { Err::<(), _>(NodeError::message("secret")) }).await?;
            Ok(NodeOutput::new())
        })
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    let told = Told::by(&world);
    failed(world.run(&flow, json!(null)).await);
    let once = ["enter flow/node", "step s#0", "step s#0 failed"];
    let wanted = [once.as_slice(), &["leave flow/node failed retries"], &once, &["leave flow/node failed"]].concat();
    assert_eq!(told.take(), wanted);
    assert!(told.shown.lock().unwrap().contains("Failed(ExecutionFailed)"));
    assert!(!told.shown.lock().unwrap().contains("secret"));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_the_node_drops_is_told_as_dropped() {
    let flow = one_node(|ctx| async move {
        let slow = Box::pin(ctx.step("slow", || async {
            std::future::pending::<()>().await;
            Ok::<_, NodeError>(())
        }));
        let quick = Box::pin(ctx.step("quick", || async { Ok::<_, NodeError>(1) }));
        let Either::Right(_) = race(slow, quick).await else { panic!("the slow one never ends") };
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&flow]);
    let told = Told::by(&world);
    completed(world.run(&flow, json!(null)).await);
    let lines = told.take();
    assert!(lines.contains(&"step slow#0 dropped".to_owned()), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("step slow#0")).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_handoff_and_a_divergence_are_told() {
    let to = named("target", |ctx| async move {
        let answer = ctx.interrupt("q", yes_no("?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let from = named("source", |_| async { Ok(NodeOutput::new().transition_to("target")) });
    let world = World::new(&[&from, &to]);
    let told = Told::by(&world);
    world.run(&from, json!(null)).await;
    assert!(told.take().contains(&"source/node => target".to_owned()));
    world.accept("q", select(&["yes"]));

    let changed = named("target", |_| async { Ok(NodeOutput::new()) });
    let elsewhere = world.redeploy(&[&from, &changed]);
    let told = Told::by(&elsewhere);
    assert!(matches!(elsewhere.resume().await, Drive::Parked(_)));
    assert_eq!(told.take(), ["enter target/node again", "leave target/node dropped", "diverged REPLAY_DIVERGED"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_library_tells_of_a_step_is_told_when_it_runs_and_not_in_replay() {
    let flow = one_node(|ctx| async move {
        let inner = ctx.clone();
        ctx.step("pass", || async move {
            let model = ModelName::new("m").of("p");
            inner.tell(|| Work::ModelStarted { step: "pass", model: &model, input: None });
            Ok::<_, NodeError>(1)
        })
        .await?;
        ctx.interrupt("q", yes_no("?")).await?;
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&flow]);
    let told = Told::by(&world);
    world.run(&flow, json!(null)).await;
    completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(told.take().iter().filter(|line| *line == "ask m in pass").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn content_is_told_only_where_it_is_asked_for_and_never_shown() {
    let child = named("child", |_| async { Ok(NodeOutput::new().data("out", "planted-child")) });
    let called = child.clone();
    let flow = named("parent", move |ctx| {
        let child = called.clone();
        async move {
            ctx.step("s", || async { Ok::<_, NodeError>("planted-step".to_owned()) }).await?;
            ctx.call("c", &child, json!({"in": "planted-input"})).await?;
            Ok(NodeOutput::new().data("out", "planted-node"))
        }
    });
    let all = ["planted-step", "planted-child", "planted-node", "planted-input"];
    for (captures, wanted) in [
        (Captures::nothing(), &[][..]),
        (Captures::nothing().with_output(true), &all[..3]),
        (Captures::nothing().with_input(true), &all[3..]),
    ] {
        let world = World::new(&[&flow, &child]);
        let told = Told::capturing(&world, captures);
        completed(world.run(&flow, json!(null)).await);
        let content = told.content.lock().unwrap();
        for planted in all {
            assert_eq!(content.contains(planted), wanted.contains(&planted), "{captures:?}: {planted}");
        }
        assert!(!told.shown.lock().unwrap().contains("planted"));
    }
}

struct Broken;

impl Observer for Broken {
    fn observe(&self, _: &Moment<'_>) {
        panic!("broken observer");
    }
}

/// Looks at the run whenever it is told something.
#[derive(Default)]
struct Curious(Mutex<Option<ExecutionHandle>>, Mutex<u32>);

impl Observer for Curious {
    fn observe(&self, _: &Moment<'_>) {
        if let Some(handle) = &*self.0.lock().unwrap() {
            handle.answers_seen();
            *self.1.lock().unwrap() += 1;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_or_looks_at_the_run_changes_nothing() {
    let flow = asking();
    let world = World::new(&[&flow]);
    *world.observer.lock().unwrap() = Some(Arc::new(Broken));
    world.run(&flow, json!(null)).await;
    completed(world.answer("q", select(&["yes"])).await);

    let world = World::new(&[&flow]);
    let curious = Arc::new(Curious::default());
    *world.observer.lock().unwrap() = Some(curious.clone());
    let mut execution = world.start(&flow, &json!(null));
    *curious.0.lock().unwrap() = Some(execution.handle());
    assert!(matches!(world.drive(&mut execution).await, Drive::Waiting));
    assert_eq!(*curious.1.lock().unwrap(), 4);
    assert_eq!(End::Failed(FailureCode::NoRoute).code(), Some(FailureCode::NoRoute));
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_step_that_is_told_in_its_parts_is_not_told() {
    let flow = one_node(|ctx| async move {
        let inner = ctx.clone();
        ctx.step("model", || async move {
            let model = ModelName::new("m");
            inner.tell(|| Work::ModelStarted { step: "model", model: &model, input: None });
            Ok::<_, NodeError>("hidden".to_owned())
        })
        .await?;
        ctx.step("plain", || async { Ok::<_, NodeError>("shown".to_owned()) }).await?;
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&flow]);
    let told = Told::capturing(&world, Captures::nothing().with_output(true));
    completed(world.run(&flow, json!(null)).await);
    let content = told.content.lock().unwrap().clone();
    assert!(content.contains("shown") && !content.contains("hidden"), "{content}");
}
