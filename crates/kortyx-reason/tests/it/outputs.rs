//! The final object.

use kortyx_protocol::FailureCode;
use kortyx_reason::{Capabilities, FinishReason, Message, Reason, ReasonExt as _, Script, ScriptedModel};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::world::{agent, data, failure, run};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Card {
    title: String,
    #[schemars(range(max = 5))]
    stars: u8,
}

async fn card(model: &ScriptedModel) -> kortyx_protocol::ExecutionResult {
    let model = model.clone();
    let node = move |ctx: NodeContext| {
        let reason = Reason::new(model.clone()).input("Rate it.").output::<Card>();
        async move {
            let reasoned = ctx.reason("card", reason).await?;
            Ok(NodeOutput::new().data("card", &reasoned.output).data("steps", &reasoned.steps))
        }
    };
    let workflow = Workflow::builder("card").node("card", node).build().unwrap();
    run(&agent(&workflow).await, &workflow).await
}

#[tokio::test]
async fn the_final_answer_is_read_as_its_type() {
    let model = ScriptedModel::new([Script::new().text("```json\n{\"title\": \"Tea\", \"stars\": 4}\n```")]);
    assert_eq!(data(card(&model).await), json!({"card": {"title": "Tea", "stars": 4}, "steps": 1}));
    assert!(model.played()[0].json);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_corrected_once() {
    let wrong = Script::new().text(r#"{"title": "Tea", "stars": 6}"#);
    let right = Script::new().text(r#"{"title": "Tea", "stars": 5}"#);
    let model = ScriptedModel::new([wrong.clone(), right]);
    assert_eq!(data(card(&model).await)["card"]["stars"], 5);
    let Some(Message::System { content }) = model.played()[1].messages.last().cloned() else {
        panic!("it is not told")
    };
    assert!(content.contains("/stars"), "{content}");

    let failed = failure(card(&ScriptedModel::new([wrong.clone(), wrong.clone()])).await);
    assert_eq!((failed.code, failed.issues.unwrap()[0].path.as_str()), (FailureCode::ModelOutputSchema, "/stars"));
    let failed = failure(card(&ScriptedModel::new([wrong, Script::new().text("Sorry?")])).await);
    assert_eq!(failed.code, FailureCode::InvalidModelJson);
}

#[tokio::test]
async fn an_object_that_was_cut_is_a_failure_of_its_own() {
    let model = ScriptedModel::new([Script::new().text(r#"{"title": "T"#).finish(FinishReason::Length)]);
    assert_eq!(failure(card(&model).await).code, FailureCode::OutputTruncated);
}

#[tokio::test]
async fn a_model_that_cannot_be_held_to_a_schema_is_told_it() {
    let model = ScriptedModel::new([Script::new().text(r#"{"title": "Tea", "stars": 1}"#)])
        .with_capabilities(Capabilities::default().with_json_schema(false));
    assert_eq!(data(card(&model).await)["card"]["title"], "Tea");
    let played = &model.played()[0];
    let told = played
        .messages
        .iter()
        .any(|message| matches!(message, Message::System { content } if content.contains("stars")));
    assert!(told && !played.json);
}
