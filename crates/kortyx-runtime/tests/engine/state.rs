//! State of nodes and of workflows, and the values that it keeps.

use std::{collections::BTreeMap, time::Duration};

use kortyx_protocol::{FailureCode, RawJson};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Outcome, Workflow, workflow::END};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

use crate::{
    sample::{asks, idle, one_node, slept, yes_no},
    support::{Drive, World, completed, failed, select},
};

#[tokio::test(start_paused = true)]
async fn node_state_is_of_one_node_and_workflow_state_of_all() {
    let node = |name: &'static str| {
        move |ctx: NodeContext| async move {
            let (own, all) = (ctx.node_state("n", 0u32), ctx.workflow_state("n", 0u32));
            own.set(&(own.get()? + 1))?;
            all.set(&(all.get()? + 1))?;
            ctx.interrupt("q", yes_no("?")).await?;
            let condition = if all.get()? >= 4 { "done" } else { "on" };
            Ok(NodeOutput::new().data(name, &own.get()?).data("all", &all.get()?).condition(condition))
        }
    };
    let flow = Workflow::builder("flow")
        .node("a", node("a"))
        .node("b", node("b"))
        .edge_if("a", "b", "on")
        .edge_if("b", "a", "on")
        .otherwise("a", END)
        .otherwise("b", END)
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    let mut last = world.run(&flow, json!(null)).await;
    while matches!(last, Drive::Waiting) {
        last = world.answer("q", select(&["yes"])).await;
    }
    assert_eq!(completed(last), json!({"a": 2, "b": 2, "all": 4}));
}

#[tokio::test(start_paused = true)]
async fn a_branch_reads_the_same_workflow_state_in_every_pass() {
    let flow = Workflow::builder("flow")
        .node("start", |ctx: NodeContext| async move {
            ctx.workflow_state("n", 0u32).set(&1)?;
            Ok(NodeOutput::new())
        })
        .node("reads", |ctx: NodeContext| async move {
            let before = ctx.workflow_state("n", 0u32).get()?;
            ctx.interrupt("q", yes_no("?")).await?;
            let after = ctx.workflow_state("n", 0u32).get()?;
            Ok(NodeOutput::new().data("seen", &(before, after)))
        })
        .node("writes", |ctx: NodeContext| async move {
            ctx.step("later", || slept(Duration::from_secs(1))).await?;
            ctx.workflow_state("n", 0u32).set(&2)?;
            Ok(NodeOutput::new())
        })
        .node("join", |ctx: NodeContext| async move {
            Ok(NodeOutput::new().data("joined", &ctx.workflow_state("n", 0u32).get()?))
        })
        .edge("start", "reads")
        .edge("start", "writes")
        .edge("reads", "join")
        .edge("writes", "join")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    let output = completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(output, json!({"seen": [1, 1], "joined": 2}));
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Nested {
    Unit,
    Pair(Box<Nested>, Option<u8>),
    Named { map: BTreeMap<u64, Inner> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Inner {
    Tagged { bytes: Vec<u8>, unit: () },
    Other,
}

/// Puts a value into data, states, a step and a child's input, pauses, and compares it with what comes back.
async fn survives<T>(value: T)
where
    T: Clone + PartialEq + std::fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    let kept = value.clone();
    let flow = Workflow::builder("flow")
        .node("first", move |ctx: NodeContext| {
            let value = kept.clone();
            async move {
                ctx.workflow_state("kept", value.clone()).set(&value)?;
                Ok(NodeOutput::new().data("kept", &value))
            }
        })
        .node("second", move |ctx: NodeContext| {
            let value = value.clone();
            async move {
                let stepped = ctx.step("kept", || async { Ok::<_, NodeError>(value.clone()) }).await?;
                ctx.interrupt("q", yes_no("?")).await?;
                assert_eq!(stepped, value);
                assert_eq!(ctx.data::<T>("kept")?, value);
                let other: T = ctx.step("kept", || async { Ok::<_, NodeError>(value.clone()) }).await?;
                assert_eq!(ctx.workflow_state("kept", other).get()?, value);
                Ok(NodeOutput::new().data("fine", &true))
            }
        })
        .edge("first", "second")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    let snapshot = world.stored.lock().unwrap().snapshot.clone();
    assert!(snapshot.is_some());
    assert!(matches!(world.resume().await, Drive::Waiting));
    world.accept("q", select(&["yes"]));
    let mut execution = world.restore().unwrap();
    assert!(matches!(world.drive(&mut execution).await, Drive::Ended(Outcome::Completed(_))));
}

#[tokio::test(start_paused = true)]
async fn b115_every_shape_of_data_survives_a_pause() {
    let tagged = Inner::Tagged { bytes: vec![0, 255], unit: () };
    survives(Nested::Unit).await;
    survives(Nested::Pair(Box::new(Nested::Unit), None)).await;
    survives(Nested::Named { map: BTreeMap::from([(u64::MAX, tagged), (0, Inner::Other)]) }).await;
    survives(((1u8, 'x'), [Some(1.5), None], ())).await;
    survives("\u{0}\u{7f}\u{d7ff}😀\u{202e}e\u{301}\"\\/\n".to_owned()).await;
    survives(String::new()).await;
    survives("x".repeat(100_000)).await;
}

#[tokio::test(start_paused = true)]
async fn b117_big_integers_survive_a_pause_exactly() {
    survives((i64::MIN, u64::MAX, (1u64 << 53) + 1)).await;
    survives((u128::MAX, i128::MIN, 1u128 << 64)).await;
    survives((-0.0f64, f64::MAX, f64::MIN_POSITIVE, 0.1)).await;
    let forty = "1234567890123456789012345678901234567890";
    assert!(RawJson::parse(forty).is_err(), "a text from outside is refused");
    let raw = RawValue::from_string(forty.to_owned()).unwrap();
    let flow = Workflow::builder("flow")
        .node("first", move |_| {
            let output = NodeOutput::new().data("n", &raw);
            async move { Ok(output) }
        })
        .node("second", asks("q"))
        .edge("first", "second")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    let Drive::Ended(Outcome::Completed(data)) = world.answer("q", select(&["yes"])).await else {
        panic!("unfinished")
    };
    assert_eq!(data.get(), format!(r#"{{"n":{forty},"q":"yes"}}"#));
}

#[derive(Serialize, Deserialize)]
struct Rates {
    rates: Vec<f64>,
}

impl Rates {
    fn with(rate: f64) -> Self {
        Self { rates: vec![1.0, rate] }
    }
}

#[tokio::test(start_paused = true)]
async fn b118_numbers_that_json_does_not_know_are_refused_with_their_path() {
    for rate in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let flow = one_node(move |ctx| async move {
            let state = ctx.workflow_state("x", Value::Null).set(&json!(1));
            state?;
            let states = ctx.workflow_state("x", 0.0).set(&rate).unwrap_err().to_string();
            let step = ctx.step("x", || async move { Ok::<_, NodeError>(Rates::with(rate)) }).await.err().unwrap();
            let stream = ctx.structured("x", "test").set("y", &Rates::with(rate)).await.unwrap_err();
            for (error, path) in [(states, ""), (step.to_string(), "/rates/1"), (stream.to_string(), "/rates/1")] {
                assert!(error.ends_with(path), "{error}");
            }
            Ok(NodeOutput::new().data("a/b", &Rates::with(rate)))
        });
        let failure = failed(World::new(&[&flow]).run(&flow, json!(null)).await);
        assert_eq!(failure.code, FailureCode::InvalidOutput);
        assert_eq!(failure.issues.unwrap()[0].path, "/a~1b/rates/1");
    }
}

#[tokio::test(start_paused = true)]
async fn b116_stored_data_of_another_type_is_an_error_that_names_it() {
    let node = |ctx: NodeContext| async move {
        ctx.interrupt("q", yes_no("?")).await?;
        let error = ctx.data::<Vec<u8>>("field").unwrap_err().to_string();
        let absent = ctx.data::<u8>("absent").unwrap_err().to_string();
        let input = ctx.input::<Vec<u8>>().unwrap_err().to_string();
        Ok(NodeOutput::new().data("errors", &(error, absent, input)))
    };
    let flow = Workflow::builder("flow")
        .node("first", |_| async { Ok(NodeOutput::new().data("field", "text")) })
        .node("second", node)
        .edge("first", "second")
        .build()
        .unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!("text")).await;
    let errors = completed(world.answer("q", select(&["yes"])).await)["errors"].take();
    let named =
        ["the data field `field` does not read as", "no field `absent`", "the input of `flow` does not read as"];
    for (error, part) in errors.as_array().unwrap().iter().zip(named) {
        assert!(error.as_str().unwrap().contains(part), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn data_of_branches_is_seen_by_those_after_them_only() {
    let flow = Workflow::builder("flow")
        .node("start", idle)
        .node("a", |_| async { Ok(NodeOutput::new().data("a", &1)) })
        .node("b", |ctx: NodeContext| async move {
            ctx.step("later", || slept(Duration::from_secs(1))).await?;
            Ok(NodeOutput::new().data("seen", &ctx.optional_data::<u8>("a")?))
        })
        .edge("start", "a")
        .edge("start", "b")
        .build()
        .unwrap();
    let output = completed(World::new(&[&flow]).run(&flow, json!(null)).await);
    assert_eq!(output, json!({"a": 1, "seen": null}));
}
