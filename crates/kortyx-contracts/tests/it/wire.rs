//! The exact JSON that clients get and that is stored.

use std::time::Duration;

use insta::{assert_json_snapshot, assert_snapshot};
use kortyx_contracts::{Ask, AskExt, Choice, ChoiceOption, InterruptContract, MultiChoice, Picker, Question, Text};
use kortyx_protocol::InterruptInput;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::world::stored;

fn input(ask: &impl Ask) -> InterruptInput {
    stored(ask).with_id("approval").input()
}

#[test]
fn a_choice_is_sent_exactly_as_the_protocol_shows() {
    let ask = Choice::new("Approve this draft?")
        .option_with(ChoiceOption::new("approve", "Approve").description("Publish it").value(json!({"secret": 1})))
        .option("revise", "Revise");
    let expected = concat!(
        r#"{"kind":"choice","multiple":false,"question":"Approve this draft?","id":"approval","#,
        r#""options":[{"id":"approve","label":"Approve","description":"Publish it"},{"id":"revise","label":"Revise"}]}"#
    );
    assert_eq!(serde_json::to_string(&input(&ask)).unwrap(), expected);
}

#[test]
fn a_multi_choice_is_sent_with_its_bounds_and_meta() {
    let ask = MultiChoice::new("Where to publish?")
        .option("web", "Web")
        .option("mail", "Newsletter")
        .min(1)
        .max(2)
        .schema_id("acme.channels")
        .schema_version("3")
        .meta(json!({"icon": "send"}));
    assert_json_snapshot!(input(&ask));
}

#[test]
fn a_text_is_sent_with_no_options_and_maybe_no_question() {
    assert_json_snapshot!("text", input(&Text::new("What should change?").min_length(3).max_length(200)));
    assert_json_snapshot!("text_without_question", input(&Text::without_question()));
}

#[test]
fn a_picker_is_a_choice_with_a_schema_and_no_options() {
    assert_json_snapshot!("picker", input(&Picker::new("acme.jobs").version("2").with_question("Which job?")));
    assert_json_snapshot!("multi_picker", input(&Picker::new("acme.jobs").multiple().max(3)));
}

#[derive(Serialize, JsonSchema)]
struct Draft {
    title: String,
    words: u32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Release {
    date: String,
    #[schemars(length(min = 1))]
    audience: Vec<String>,
    copies: Option<i32>,
}

const RELEASE: InterruptContract<Draft, Release> = InterruptContract::new("release")
    .description("When and for whom a draft is published")
    .schema_id("acme.release")
    .version("1");

#[test]
fn a_contract_is_sent_with_its_request_and_response_schema() {
    assert_json_snapshot!(input(&RELEASE.ask(Draft { title: "Q3".into(), words: 1200 })));
}

#[test]
fn a_stored_question_holds_what_is_set_and_nothing_else() {
    let choice = Choice::new("Approve?").option_with(ChoiceOption::new("yes", "Yes").value(json!(null)));
    let text = |question: Question| String::from_utf8(question.to_vec().unwrap()).unwrap();
    assert_snapshot!("stored_choice", text(stored(&choice)));
    let full = choice.expires_in(Duration::from_secs(90)).default_on_expiry("yes").meta(json!(null)).optional_cancel();
    assert_snapshot!("stored_choice_with_every_option", text(stored(&full).with_id("ok")));
}

#[test]
fn the_identity_names_the_kind_and_the_schema_and_not_the_texts() {
    assert_eq!(stored(&Choice::new("A?").option("a", "A")).identity(), "choice");
    assert_eq!(stored(&Choice::new("B?").option("b", "B")).identity(), "choice");
    assert_eq!(stored(&Text::without_question()).identity(), "text");
    assert_eq!(stored(&Picker::new("acme.jobs").version("2")).identity(), "choice:@acme.jobs/2");
    assert_eq!(stored(&Picker::new("acme.jobs").multiple()).identity(), "multi-choice:@acme.jobs");
    let ask = RELEASE.ask(Draft { title: String::new(), words: 0 });
    assert_eq!(stored(&ask).identity(), "custom:release@acme.release/1");
}
