//! Answers of every kind reach the question that they answer, typed and unchanged.

use std::time::Duration;

use kortyx_contracts::{AskExt, Choice, InterruptContract, MultiChoice, Picker, Text};
use kortyx_protocol::{FailureCode, ResumeResponse};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    sample::{ANYTHING, Counter, one_node, yes_no},
    support::{Drive, World, completed, failed, select, text},
};

fn value(value: Value) -> ResumeResponse {
    ResumeResponse::Value { value }
}

#[tokio::test(start_paused = true)]
async fn b020_b121_every_json_value_is_an_answer_falsy_or_not() {
    let asked = Counter::default();
    let counter = asked.clone();
    let flow = one_node(move |ctx| {
        let asked = counter.clone();
        async move {
            let answer = ctx.interrupt("q", ANYTHING.ask(json!("?"))).await?;
            ctx.step("used", || asked.effect()).await?;
            Ok(NodeOutput::new().data("answer", &answer))
        }
    });
    let answers = [
        json!(false),
        json!(0),
        json!(0.0),
        json!(-0.0),
        json!(""),
        json!([]),
        json!({}),
        json!(null),
        json!(true),
        json!("text"),
        json!([1, "two", null]),
        json!({"a": {"b": []}}),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e300),
    ];
    for (used, answer) in answers.into_iter().enumerate() {
        let world = World::new(&[&flow]);
        world.run(&flow, json!(null)).await;
        assert!(world.issues("q", &value(answer.clone())).is_empty());
        let output = completed(world.answer("q", value(answer.clone())).await);
        assert_eq!(output["answer"].to_string(), answer.to_string(), "the same value, of the same type");
        assert_eq!(asked.get(), used + 1);
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Release {
    #[schemars(length(min = 1))]
    audiences: Vec<String>,
    days: u32,
}

const RELEASE: InterruptContract<Value, Release> =
    InterruptContract::new("release").description("When and for whom").schema_id("test.release").version("1");

#[tokio::test(start_paused = true)]
async fn b122_a_text_for_a_typed_question_is_refused_before_the_node_sees_it() {
    let flow = one_node(|ctx| async move {
        let release = ctx.interrupt("release", RELEASE.ask(json!({}))).await?;
        Ok(NodeOutput::new().data("first", &release.audiences[0]).data("days", &release.days))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    for wrong in [text("everyone"), value(json!("everyone")), value(json!({"audiences": "everyone", "days": 1}))] {
        assert!(!world.issues("release", &wrong).is_empty(), "{wrong:?}");
    }
    assert_eq!(world.issues("release", &value(json!({"audiences": [], "days": 1})))[0].path, "/audiences");
    let right = value(json!({"audiences": ["everyone"], "days": 7}));
    assert!(world.issues("release", &right).is_empty());
    assert_eq!(completed(world.answer("release", right).await), json!({"first": "everyone", "days": 7}));
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_question_has_an_answer_of_its_own_type() {
    let flow = one_node(|ctx| async move {
        let asks = (
            ("choice", yes_no("?")),
            ("many", MultiChoice::new("?").option("a", "A").option("b", "B")),
            ("text", Text::new("?")),
            ("picker", Picker::new("test.users")),
            ("pickers", Picker::new("test.users").multiple()),
        );
        let answers: (String, Vec<String>, String, String, Vec<String>) = ctx.interrupt_all(asks).await?;
        Ok(NodeOutput::new().data("all", &answers))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    world.accept("choice", select(&["no"]));
    world.accept("many", select(&["a", "b"]));
    world.accept("text", text("words"));
    world.accept("picker", select(&["u1"]));
    let output = completed(world.answer("pickers", select(&["u1", "u2"])).await);
    assert_eq!(output, json!({"all": ["no", ["a", "b"], "words", "u1", ["u1", "u2"]]}));
}

#[tokio::test(start_paused = true)]
async fn b003_an_answer_that_is_no_option_is_refused() {
    let flow = one_node(|ctx| async move {
        let (a, b) = tokio::join!(ctx.interrupt("a", yes_no("A?")), ctx.interrupt("b", yes_no("B?")));
        Ok(NodeOutput::new().data("both", &(a?, b?)))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    let none: [&str; 0] = [];
    for wrong in [select(&["banana"]), select(&none), select(&["yes", "no"]), value(json!(null)), value(json!(true))] {
        assert!(!world.issues("b", &wrong).is_empty(), "{wrong:?}");
    }
    assert!(matches!(world.answer("a", select(&["yes"])).await, Drive::Waiting));
    assert_eq!(world.open(), ["b"], "the other still waits");
}

#[tokio::test(start_paused = true)]
async fn an_accepted_answer_that_the_code_cannot_read_parks_the_run() {
    let flow = one_node(|ctx| async move {
        ctx.interrupt("q", yes_no("?")).await?;
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    world.accept("q", value(json!({"not": "an option"})));
    let Drive::Parked(failure) = world.resume().await else { panic!("expected a parked run") };
    assert_eq!(failure.code, FailureCode::ContractMismatch);
    assert!(failure.message.contains("`q`"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn another_contract_behind_the_same_id_parks_the_run() {
    let old =
        one_node(|ctx| async move { Ok(NodeOutput::new().data("answer", &ctx.interrupt("q", yes_no("?")).await?)) });
    let new = one_node(|ctx| async move {
        Ok(NodeOutput::new().data("answer", &ctx.interrupt("q", RELEASE.ask(json!({}))).await?))
    });
    let world = World::new(&[&old]);
    world.run(&old, json!(null)).await;
    world.accept("q", select(&["yes"]));
    let Drive::Parked(failure) = world.redeploy(&[&new]).resume().await else { panic!("expected a parked run") };
    assert_eq!(failure.code, FailureCode::ReplayDiverged);
    assert!(failure.message.contains("custom:release@test.release/1"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn the_content_of_a_question_may_change_while_it_waits() {
    let flow = |words: &'static str| {
        one_node(move |ctx| async move {
            let answer = ctx.interrupt("q", yes_no(words)).await?;
            Ok(NodeOutput::new().data("answer", &answer))
        })
    };
    let (old, new) = (flow("Old words?"), flow("New words?"));
    let world = World::new(&[&old]);
    world.run(&old, json!(null)).await;
    world.accept("q", select(&["yes"]));
    assert_eq!(completed(world.redeploy(&[&new]).resume().await), json!({"answer": "yes"}));
}

#[tokio::test(start_paused = true)]
async fn b018_after_one_refusal_the_next_question_is_asked_all_the_same() {
    let acted = Counter::default();
    let counter = acted.clone();
    let flow = one_node(move |ctx| {
        let acted = counter.clone();
        async move {
            for action in ["a", "b"] {
                if ctx.interrupt(action, yes_no(action)).await? == "yes" {
                    ctx.step(action, || acted.effect()).await?;
                }
            }
            Ok(NodeOutput::new())
        }
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert!(matches!(world.answer("a", select(&["no"])).await, Drive::Waiting));
    assert_eq!(world.open(), ["b"]);
    completed(world.answer("b", select(&["yes"])).await);
    assert_eq!(acted.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn b001_a_decision_holds_in_a_process_with_other_configuration() {
    let acted = Counter::default();
    let flow = |approve_everything: bool| {
        let acted = acted.clone();
        one_node(move |ctx| {
            let acted = acted.clone();
            async move {
                let is_asked = ctx.step("policy", || async { Ok::<_, NodeError>(approve_everything) }).await?;
                if is_asked && ctx.interrupt("gate", yes_no("Act?")).await? == "no" {
                    return Ok(NodeOutput::new().data("denied", &true));
                }
                ctx.step("act", || acted.effect()).await?;
                Ok(NodeOutput::new())
            }
        })
    };
    let (strict, lax) = (flow(true), flow(false));
    let world = World::new(&[&strict]);
    world.run(&strict, json!(null)).await;
    world.accept("gate", select(&["no"]));
    assert_eq!(completed(world.redeploy(&[&lax]).resume().await), json!({"denied": true}));
    assert_eq!(acted.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn b126_a_question_may_come_from_anywhere_within_a_node() {
    async fn validator(ctx: &NodeContext, id: &str) -> Result<String, NodeError> {
        ctx.interrupt(id, yes_no("Valid?")).await
    }
    let flow = one_node(|ctx| async move {
        let before = validator(&ctx, "before").await?;
        let body = ctx.step("body", || async { Ok::<_, NodeError>("body".to_owned()) }).await?;
        let after = validator(&ctx, "after").await?;
        let boxed: futures_util::future::BoxFuture<'_, _> = Box::pin(validator(&ctx, "boxed"));
        let boxed = boxed.await?;
        Ok(NodeOutput::new().data("all", &(before, body, after, boxed)))
    });
    let world = World::new(&[&flow]);
    let mut last = world.run(&flow, json!(null)).await;
    for id in ["before", "after", "boxed"] {
        assert!(matches!(last, Drive::Waiting), "{id}");
        last = world.answer(id, select(&["yes"])).await;
    }
    assert_eq!(completed(last), json!({"all": ["yes", "body", "yes", "yes"]}));
}

#[tokio::test(start_paused = true)]
async fn a_question_inside_a_step_does_not_hang_the_run() {
    let flow = one_node(|ctx| async move {
        let answer = ctx.step("outer", || async { ctx.interrupt("q", yes_no("?")).await }).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let world = World::new(&[&flow]);
    let failure = failed(world.run(&flow, json!(null)).await);
    assert_eq!(failure.code, FailureCode::ExecutionFailed);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_question_is_an_error_and_no_pause() {
    let flow = one_node(|ctx| async move {
        let error = ctx.interrupt("q", Choice::new("?").option("a", "A").option("a", "B")).await.unwrap_err();
        Ok(NodeOutput::new().data("error", &error.to_string()))
    });
    let output = completed(World::new(&[&flow]).run(&flow, json!(null)).await);
    assert!(output["error"].as_str().unwrap().contains("`a`"), "{output}");
}

#[tokio::test(start_paused = true)]
async fn the_options_of_a_question_are_stored_with_it() {
    let flow = one_node(|ctx| async move {
        let ask = yes_no("?").expires_in(Duration::from_hours(1)).default_on_expiry("no").meta(json!({"m": 1}));
        Ok(NodeOutput::new().data("answer", &ctx.interrupt("q", ask).await?))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    let question = world.stored.lock().unwrap().open[0].question.clone();
    assert_eq!(question.expires_in(), Some(Duration::from_hours(1)));
    let default = question.default_response().unwrap().clone();
    assert_eq!(completed(world.answer("q", default).await), json!({"answer": "no"}));
}
