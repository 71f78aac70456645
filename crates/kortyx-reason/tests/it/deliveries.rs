//! What a model emits and what it returns.

use std::sync::{Arc, Mutex};

use kortyx_contracts::OutputContract;
use kortyx_protocol::FailureCode;
use kortyx_reason::{
    FinishReason, Interrupts, Outputs, Reason, ReasonExt as _, Reasoned, Script, ScriptedModel, ToolStatus,
    WhileWaiting, partial::Field,
};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::world::{ASK, CLARIFY, Effects, agent, answer, data, failure, open, run, told, with};

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Card {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) rows: Vec<Row>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Row {
    pub(crate) text: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Verdict {
    pub(crate) good: bool,
}

pub(crate) const CARD: OutputContract<Card> =
    OutputContract::new("card").description("Shows a card").schema_id("acme.card").version("1");
pub(crate) const VERDICT: OutputContract<Verdict> =
    OutputContract::new("verdict").description("Ends with a verdict").schema_id("acme.verdict").version("2");

pub(crate) const EMIT: &str = "kortyx_emit__card";
pub(crate) const RETURN: &str = "kortyx_return__verdict";

/// A card that is streamed while it is written.
pub(crate) fn cards() -> Outputs {
    let fields = [Field::text_delta("title"), Field::append("tags"), Field::text_delta("rows.*.text")];
    Outputs::new().emit(&CARD).fields(fields)
}

pub(crate) fn both() -> Outputs {
    cards().returns(&VERDICT)
}

/// What a call came to, seen by the node.
pub(crate) type Seen = Arc<Mutex<Vec<Reasoned>>>;

/// A workflow whose node reasons, and what it came to each time.
pub(crate) fn seeing(make: impl Fn() -> Reason + Send + Sync + 'static) -> (Workflow, Seen) {
    let (make, seen) = (Arc::new(make), Seen::default());
    let kept = seen.clone();
    let node = move |ctx: NodeContext| {
        let (make, kept) = (make.clone(), kept.clone());
        async move {
            let reasoned = ctx.reason("brief", make()).await?;
            kept.lock().unwrap().push(reasoned);
            Ok(NodeOutput::new().data("done", &true))
        }
    };
    (Workflow::builder("delivering").node("brief", node).build().unwrap(), seen)
}

/// What a call with these outputs comes to in one go.
async fn reasoned(model: &ScriptedModel, outputs: impl Fn() -> Outputs + Send + Sync + 'static) -> Reasoned {
    let given = model.clone();
    let tool = Effects::default();
    let (workflow, seen) = seeing(move || with(&given).tool(tool.tool("note")).outputs(outputs()));
    data(run(&agent(&workflow).await, &workflow).await);
    seen.lock().unwrap().pop().unwrap()
}

/// How a call with these outputs fails.
async fn failed(
    model: &ScriptedModel,
    outputs: impl Fn() -> Outputs + Send + Sync + 'static,
) -> kortyx_protocol::Failure {
    let given = model.clone();
    let (workflow, _) = seeing(move || with(&given).outputs(outputs()).max_steps(3));
    failure(run(&agent(&workflow).await, &workflow).await)
}

pub(crate) fn card(title: &str) -> Value {
    json!({ "title": title })
}

fn statuses(reasoned: &Reasoned) -> Vec<(&str, ToolStatus)> {
    reasoned.tool_results.iter().map(|result| (result.tool.as_str(), result.status)).collect()
}

#[tokio::test]
async fn a_model_emits_as_often_as_it_likes_and_returns_once() {
    let model = ScriptedModel::new([
        Script::new().call(EMIT, card("a")).call("note", json!({"what": "x"})).call(EMIT, card("b")),
        Script::new().text("So.").call(EMIT, card("c")).call(RETURN, json!({"good": true})),
    ]);
    let done = reasoned(&model, both).await;
    let titles: Vec<String> = done.emissions.of(&CARD).unwrap().into_iter().map(|card| card.title).collect();
    assert_eq!(titles, ["a", "b", "c"]);
    let calls: Vec<&str> = done.emissions.all().iter().map(|emission| emission.call_id.as_str()).collect();
    assert_eq!(calls, ["call_0_0", "call_0_2", "call_1_0"]);
    let returned = done.returned.as_ref().unwrap();
    assert_eq!(returned.decode(&VERDICT).unwrap(), Some(Verdict { good: true }));
    assert_eq!(returned.decode(&CARD).unwrap(), None);
    assert_eq!((returned.schema_id.as_str(), returned.schema_version.as_str()), ("acme.verdict", "2"));
    assert_eq!((done.text.as_str(), done.steps, done.finish_reason), ("So.", 2, FinishReason::ToolCalls));
    assert_eq!((done.tool_calls.len(), statuses(&done)), (5, vec![("note", ToolStatus::Completed)]));
    assert_eq!(model.played()[0].tools, ["note", EMIT, RETURN]);
}

#[tokio::test]
async fn a_model_that_only_emits_ends_in_words() {
    let model = ScriptedModel::new([Script::new().call(EMIT, card("a")), Script::new().text("Shown.")]);
    let done = reasoned(&model, cards).await;
    assert_eq!((done.text.as_str(), done.emissions.len(), done.returned), ("Shown.", 1, None));
    assert_eq!(told(&model), ["Delivered."]);
}

#[tokio::test]
async fn what_does_not_fit_goes_back_to_the_model() {
    let model = ScriptedModel::new([
        Script::new()
            .call(EMIT, json!({"title": 1}))
            .call_text(EMIT, r#"{"title": "#)
            .call("kortyx_emit__map", json!({})),
        Script::new().call(RETURN, json!({"good": "yes"})),
        Script::new().call(EMIT, card("a")).call(RETURN, json!({"good": false})),
    ]);
    let done = reasoned(&model, both).await;
    let told = told(&model);
    assert!(told[0].contains("/title") && told[1].contains("not JSON") && told[3].contains("/good"), "{told:?}");
    assert_eq!(told[2], "there is no tool `kortyx_emit__map`");
    assert!(done.tool_results.iter().all(|result| result.status == ToolStatus::Invalid), "{done:?}");
    assert_eq!((done.emissions.len(), done.steps), (1, 3));
}

#[tokio::test]
async fn a_final_answer_without_a_return_does_not_count() {
    let model = ScriptedModel::new([Script::new().text("Good."), Script::new().call(RETURN, json!({"good": true}))]);
    let done = reasoned(&model, both).await;
    assert_eq!((done.returned.is_some(), done.steps), (true, 2));
    let Some(kortyx_reason::Message::System { content }) = model.played()[1].messages.last().cloned() else { panic!() };
    assert!(content.contains(RETURN), "{content}");

    let stubborn = ScriptedModel::from_fn(|_| Script::new().text("Good."));
    assert_eq!(failed(&stubborn, both).await.code, FailureCode::ReasonStepsExhausted);
}

#[tokio::test]
async fn steps_that_run_out_tell_what_was_emitted() {
    let model = ScriptedModel::from_fn(|_| Script::new().call(EMIT, card("more")));
    let failure = failed(&model, cards).await;
    assert_eq!((failure.code, &failure.details.unwrap()["emissions"]), (FailureCode::ReasonStepsExhausted, &json!(3)));
}

#[tokio::test]
async fn two_returns_in_a_turn_are_both_refused() {
    let turn =
        Script::new().call(RETURN, json!({"good": true})).call(EMIT, card("a")).call(RETURN, json!({"good": false}));
    let model = ScriptedModel::new([turn, Script::new().call(RETURN, json!({"good": false}))]);
    let done = reasoned(&model, both).await;
    assert_eq!(done.returned.as_ref().unwrap().data, json!({"good": false}));
    assert_eq!(statuses(&done), [(RETURN, ToolStatus::Invalid), (RETURN, ToolStatus::Invalid)]);
    let told = told(&model);
    assert!(told[0].contains("Return once") && told[1] == "Delivered." && told[2] == told[0], "{told:?}");
}

#[tokio::test]
async fn calls_behind_a_return_are_not_made() {
    let turn =
        Script::new().call("note", json!({"what": "x"})).call(RETURN, json!({"good": true})).call(EMIT, card("a"));
    let model = ScriptedModel::new([turn.call("note", json!({"what": "y"})).call(ASK, json!({"question": "?"}))]);
    let done = reasoned(&model, both).await;
    assert!(done.returned.is_some() && done.emissions.is_empty());
    assert_eq!(
        statuses(&done),
        [
            ("note", ToolStatus::Completed),
            (EMIT, ToolStatus::Refused),
            ("note", ToolStatus::Refused),
            (ASK, ToolStatus::Invalid)
        ]
    );
}

#[tokio::test]
async fn a_return_behind_a_call_that_went_wrong_does_not_count() {
    let turn =
        Script::new().call(EMIT, json!({})).call(RETURN, json!({"good": true})).call("note", json!({"what": "x"}));
    let model = ScriptedModel::new([turn, Script::new().call(RETURN, json!({"good": false}))]);
    let done = reasoned(&model, both).await;
    assert_eq!(done.returned.as_ref().unwrap().data, json!({"good": false}));
    assert_eq!(
        statuses(&done),
        [(EMIT, ToolStatus::Invalid), (RETURN, ToolStatus::Refused), ("note", ToolStatus::Completed)]
    );
    assert!(told(&model)[1].contains("went wrong"));
}

#[tokio::test]
async fn a_return_beside_a_question_does_not_count_and_what_else_is_asked_for_is_done_in_order() {
    for policy in [WhileWaiting::Hold, WhileWaiting::Proceed] {
        let model = ScriptedModel::new([
            Script::new()
                .call(EMIT, card("before"))
                .call(ASK, json!({"question": "Good?"}))
                .call(RETURN, json!({"good": true}))
                .call(EMIT, card("after")),
            Script::new().call(RETURN, json!({"good": false})),
        ]);
        let given = model.clone();
        let asking = || Interrupts::required().contract(&CLARIFY);
        let (workflow, seen) = seeing(move || with(&given).outputs(both()).interrupts(asking()).while_waiting(policy));
        let agent = agent(&workflow).await;
        let paused = run(&agent, &workflow).await;
        assert_eq!(open(&paused).len(), 1);
        data(answer(&agent, &paused, 0, json!({"text": "No."})).await);
        let done = seen.lock().unwrap().pop().unwrap();
        assert_eq!(done.returned.as_ref().unwrap().data, json!({"good": false}));
        let titles: Vec<Value> = done.emissions.all().iter().map(|emission| emission.data["title"].clone()).collect();
        assert_eq!(titles, [json!("before"), json!("after")]);
        let told = told(&model);
        assert!(told[2].contains("waits for a person"), "{told:?}");
        assert_eq!((&*told[0], &*told[1], &*told[3]), ("Delivered.", r#"{"text":"No."}"#, "Delivered."));
    }
}

#[tokio::test]
async fn a_return_does_not_count_before_a_required_question() {
    let model = ScriptedModel::new([
        Script::new().call(RETURN, json!({"good": true})),
        Script::new().call(ASK, json!({"question": "Good?"})),
        Script::new().call(RETURN, json!({"good": false})),
    ]);
    let given = model.clone();
    let asking = || Interrupts::required().contract(&CLARIFY);
    let (workflow, seen) = seeing(move || with(&given).outputs(both()).interrupts(asking()));
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    data(answer(&agent, &paused, 0, json!({"text": "No."})).await);
    let done = seen.lock().unwrap().pop().unwrap();
    assert_eq!((done.returned.unwrap().data, done.interrupt_history.len()), (json!({"good": false}), 1));
}

#[tokio::test]
async fn a_call_that_cannot_deliver_is_refused_before_anything_happens() {
    type Make = fn() -> Outputs;
    const LIST: OutputContract<Vec<u8>> =
        OutputContract::new("list").description("A list").schema_id("acme.list").version("1");
    let model = ScriptedModel::new([Script::new().text("Never.")]);
    let calls: [(Make, &str); 5] = [
        (|| Outputs::new().emit(&CARD).fields([Field::set("titel")]), "no `titel`"),
        (|| Outputs::new().emit(&CARD).fields([Field::set("rows.*.txt")]), "no `rows.*.txt`"),
        (|| Outputs::new().emit(&CARD).fields([Field::append("title")]), "never an array"),
        (|| Outputs::new().emit(&CARD).emit(&CARD), "named alike"),
        (|| Outputs::new().returns(&LIST), "is to be an object"),
    ];
    for (outputs, why) in calls {
        let given = model.clone();
        let error = Arc::new(Mutex::new(String::new()));
        let kept = error.clone();
        let node = move |ctx: NodeContext| {
            let (reason, kept) = (with(&given).outputs(outputs()), kept.clone());
            async move {
                *kept.lock().unwrap() = ctx.reason("brief", reason).await.unwrap_err().to_string();
                Ok(NodeOutput::new())
            }
        };
        let workflow = Workflow::builder("refused").node("brief", node).build().unwrap();
        data(run(&agent(&workflow).await, &workflow).await);
        assert!(error.lock().unwrap().contains(why), "{error:?}");
    }
    assert!(model.played().is_empty());
}
