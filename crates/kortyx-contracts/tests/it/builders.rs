//! What builders refuse, and that they name it.

use std::time::Duration;

use kortyx_contracts::{Ask, AskError, AskExt, BoxAsk, Choice, ChoiceOption, MultiChoice, Picker, Text, limits};
use serde_json::{Value, json};

use crate::world::{select, stored};

fn refusal(ask: &impl Ask) -> String {
    ask.question().expect_err("it cannot be asked").to_string()
}

fn choice() -> Choice {
    Choice::new("Approve?").option("approve", "Approve").option("revise", "Revise")
}

fn multi() -> MultiChoice {
    MultiChoice::new("Where?").option("a", "A").option("b", "B")
}

#[test]
fn an_empty_question_is_refused_where_one_is_given() {
    for question in ["", " \n"] {
        assert_eq!(Choice::new(question).option("a", "A").question(), Err(AskError::EmptyQuestion));
        assert_eq!(MultiChoice::new(question).option("a", "A").question(), Err(AskError::EmptyQuestion));
        assert_eq!(Text::new(question).question(), Err(AskError::EmptyQuestion));
        assert_eq!(Picker::new("s").with_question(question).question(), Err(AskError::EmptyQuestion));
    }
    assert!(Text::without_question().question().is_ok());
    assert!(Picker::new("s").question().is_ok());
}

#[test]
fn a_choice_without_options_is_refused() {
    assert_eq!(Choice::new("Approve?").question(), Err(AskError::NoOptions));
    assert_eq!(MultiChoice::new("Where?").question(), Err(AskError::NoOptions));
}

#[test]
fn empty_and_duplicate_option_ids_are_refused() {
    assert_eq!(choice().option("", "Nothing").question(), Err(AskError::EmptyOptionId { index: 2 }));
    assert_eq!(choice().option(" ", "Blank").question(), Err(AskError::EmptyOptionId { index: 2 }));
    assert_eq!(
        choice().option("approve", "Again").question(),
        Err(AskError::DuplicateOptionId { id: "approve".into() })
    );
    let many = (0..100).fold(Choice::new("Which?"), |ask, index| ask.option((index % 99).to_string(), "x"));
    assert_eq!(many.question(), Err(AskError::DuplicateOptionId { id: "0".into() }));
    assert!(choice().option("Approve", "Ids differ by case").question().is_ok());
}

#[test]
fn an_empty_schema_id_or_version_is_refused() {
    assert_eq!(refusal(&Picker::new("")), "the schema id is empty");
    assert_eq!(refusal(&Picker::new("jobs").version(" ")), "the schema version is empty");
    assert_eq!(refusal(&choice().schema_id("")), "the schema id is empty");
}

#[test]
fn bounds_that_no_answer_can_meet_are_refused() {
    assert_eq!(refusal(&multi().min(2).max(1)), "min 2 is over max 1");
    assert_eq!(refusal(&multi().max(0)), "max 0 allows no answer");
    assert_eq!(refusal(&multi().min(3)), "min 3 is over 2, the number of options");
    assert_eq!(refusal(&multi().max(3)), "max 3 is over 2, the number of options");
    assert_eq!(refusal(&Picker::new("jobs").multiple().min(2).max(1)), "min 2 is over max 1");
    assert_eq!(refusal(&Text::new("Why?").min_length(3).max_length(2)), "min_length 3 is over max_length 2");
    assert_eq!(refusal(&Text::new("Why?").max_length(0)), "max_length 0 allows no answer");
}

#[test]
fn what_is_over_a_limit_is_refused_with_the_limit() {
    let longest = "x".repeat(limits::MAX_QUESTION_BYTES);
    assert!(Text::new(longest.clone()).question().is_ok());
    assert_eq!(refusal(&Text::new(longest + "x")), "the question has 65537 bytes, more than 65536");
    let many = (0..=limits::MAX_OPTIONS).fold(Choice::new("Which?"), |ask, index| ask.option(index.to_string(), "x"));
    assert_eq!(refusal(&many), "the list of options has 1001 entries, more than 1000");
    assert_eq!(refusal(&choice().option("x".repeat(1025), "x")), "the option id has 1025 bytes, more than 1024");
    assert_eq!(refusal(&choice().option("x", "x".repeat(16385))), "the option label has 16385 bytes, more than 16384");
    assert_eq!(refusal(&Picker::new("x".repeat(513))), "the schema id has 513 bytes, more than 512");
    assert_eq!(refusal(&Picker::new("x").multiple().max(1001)), "the bound of the picker has 1001 ids, more than 1000");
    assert_eq!(
        refusal(&Text::new("Why?").max_length(limits::MAX_TEXT_LENGTH + 1)),
        "the length bound has 1048577 characters, more than 1048576"
    );
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!([value]))
}

#[test]
fn meta_has_a_limit_of_depth_and_size() {
    assert!(choice().meta(nested(32)).question().is_ok());
    assert_eq!(refusal(&choice().meta(nested(33))), "the meta has 33 levels, more than 32");
    let long = "x".repeat(limits::MAX_META_BYTES);
    assert_eq!(refusal(&choice().meta(long)), "the meta has 262146 bytes, more than 262144");
}

#[test]
fn numbers_that_would_be_rounded_are_refused() {
    assert_eq!(refusal(&choice().meta(u128::MAX)), "the meta cannot be written as JSON");
    assert_eq!(refusal(&choice().meta([1.0, f64::NAN])), "the meta cannot be written as JSON");
    let ask = choice().option_with(ChoiceOption::new("x", "X").value(f64::INFINITY));
    assert_eq!(refusal(&ask), "the option value cannot be written as JSON");
    assert!(choice().meta((u64::MAX, i64::MIN)).question().is_ok());
}

#[test]
fn a_time_under_a_millisecond_is_refused() {
    assert_eq!(choice().expires_in(Duration::ZERO).question(), Err(AskError::NoTime));
    assert_eq!(choice().expires_in(Duration::from_micros(999)).question(), Err(AskError::NoTime));
    let ask = choice().expires_in(Duration::MAX);
    assert_eq!(stored(&ask).expires_in(), Some(Duration::from_millis(u64::MAX)));
}

#[test]
fn a_default_must_fit_its_own_question() {
    assert_eq!(
        refusal(&choice().default_on_expiry("aprove")),
        "the default answer does not fit its question: /0: `aprove` is not one of the options"
    );
    assert_eq!(
        refusal(&multi().min(2).default_on_expiry(["a".to_owned()])),
        "the default answer does not fit its question: select at least 2, not 1"
    );
    assert_eq!(
        refusal(&Text::new("Why?").default_on_expiry("")),
        "the default answer does not fit its question: the text is empty"
    );
    assert_eq!(stored(&choice().default_on_expiry("revise")).default_response(), Some(&select(&["revise"])));
}

#[test]
fn options_of_an_ask_go_together_in_any_order() {
    let one =
        choice().optional_cancel().meta("m").expires_in(Duration::from_secs(1)).default_on_expiry("revise".to_owned());
    let other = choice().default_on_expiry("revise").expires_in(Duration::from_secs(1)).meta("m").optional_cancel();
    assert_eq!(stored(&one), stored(&other));
    assert!(stored(&one).optional_cancel());
}

#[test]
fn the_default_of_an_ask_that_may_be_cancelled_may_be_none() {
    let ask = choice().optional_cancel().default_on_expiry(None::<String>);
    assert_eq!(stored(&ask).default_response(), Some(&kortyx_protocol::ResumeResponse::Cancel));
}

#[test]
fn an_option_value_that_is_no_json_is_refused() {
    let keys = std::collections::BTreeMap::from([((1, 2), 3)]);
    let ask = choice().option_with(ChoiceOption::new("x", "X").value(keys));
    assert_eq!(refusal(&ask), "the option value cannot be written as JSON");
}

#[test]
fn asks_with_one_answer_type_can_be_listed() {
    let asks: [BoxAsk<String>; 2] = [choice().boxed(), Text::new("Why?").expires_in(Duration::from_secs(5)).boxed()];
    assert!(asks.iter().all(|ask| ask.question().is_ok()));
    assert_eq!(refusal(&&Choice::new("")), refusal(&Choice::new("")), "a reference to an ask is an ask");
}
