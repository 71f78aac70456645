//! Which answers fit which questions, and how they come out of chat messages.

use kortyx_contracts::{
    AnswerError, Ask, AskExt, Choice, InterruptContract, MultiChoice, Picker, Text,
    limits::{MAX_OPTION_ID_BYTES, MAX_OPTIONS, MAX_TEXT_LENGTH},
};
use kortyx_protocol::{ResumeMeta, ResumeResponse};
use serde_json::{Value, json};

use crate::world::{fault, faults, select, silent_meta, stored, text, value};

const ANY: InterruptContract<Value, Value> =
    InterruptContract::new("any").description("anything").schema_id("acme.any").version("1");

fn choice() -> Choice {
    Choice::new("Approve?").option("approve", "Approve").option("revise", "Revise")
}

fn multi() -> MultiChoice {
    MultiChoice::new("Where?").option("a", "A").option("b", "B").option("c", "C")
}

#[test]
fn a_choice_takes_exactly_one_of_its_options() {
    let question = stored(&choice());
    assert_eq!(question.validate(&select(&["revise"])), Ok(()));
    assert_eq!(faults(question.validate(&select(&[]))), fault("", "required"));
    assert_eq!(faults(question.validate(&select(&["approve", "revise"]))), fault("", "maxItems"));
    assert_eq!(faults(question.validate(&select(&["Approve"]))), fault("/0", "enum"));
    assert_eq!(faults(question.validate(&select(&[""]))), fault("/0", "enum"));
}

#[test]
fn a_multi_choice_takes_distinct_options_within_its_bounds() {
    let question = stored(&multi().min(2).max(2));
    assert_eq!(question.validate(&select(&["c", "a"])), Ok(()));
    assert_eq!(faults(question.validate(&select(&["a"]))), fault("", "minItems"));
    assert_eq!(faults(question.validate(&select(&["a", "b", "c"]))), fault("", "maxItems"));
    assert_eq!(faults(question.validate(&select(&["a", "a"]))), fault("/1", "uniqueItems"));
    assert_eq!(
        faults(question.validate(&select(&["x", "y"]))),
        [("/0".to_owned(), "enum".to_owned()), ("/1".to_owned(), "enum".to_owned())]
    );
}

#[test]
fn a_multi_choice_takes_at_least_one_unless_it_says_zero() {
    assert_eq!(faults(stored(&multi()).validate(&select(&[]))), fault("", "required"));
    assert_eq!(stored(&multi().min(0)).validate(&select(&[])), Ok(()));
}

#[test]
fn many_options_and_many_ids_are_judged_like_few() {
    let ids: Vec<String> = (0..MAX_OPTIONS).map(|index| format!("option-{index}")).collect();
    let ask = ids.iter().fold(MultiChoice::new("Which?"), |ask, id| ask.option(id, id));
    let question = stored(&ask);
    assert_eq!(question.validate(&ResumeResponse::Select { ids: ids.clone() }), Ok(()));
    let mut twice = ids.clone();
    twice[999] = "option-3".into();
    assert_eq!(faults(question.validate(&ResumeResponse::Select { ids: twice })), fault("/999", "uniqueItems"));
    let mut unknown = ids;
    unknown[500] = "option-1000".into();
    assert_eq!(faults(question.validate(&ResumeResponse::Select { ids: unknown })), fault("/500", "enum"));
}

#[test]
fn a_picker_takes_any_ids_that_are_not_empty() {
    let one = stored(&Picker::new("acme.jobs"));
    assert_eq!(one.validate(&select(&["job-😀"])), Ok(()));
    assert_eq!(faults(one.validate(&select(&[""]))), fault("/0", "minLength"));
    assert_eq!(faults(one.validate(&select(&["a", "b"]))), fault("", "maxItems"));
    assert_eq!(faults(one.validate(&select(&[&"x".repeat(MAX_OPTION_ID_BYTES + 1)]))), fault("/0", "maxLength"));

    let several = stored(&Picker::new("acme.jobs").multiple());
    assert_eq!(several.validate(&select(&["a", "b"])), Ok(()));
    assert_eq!(faults(several.validate(&select(&["a", "b", "a"]))), fault("/2", "uniqueItems"));
}

#[test]
fn a_text_is_measured_in_characters() {
    let question = stored(&Text::new("Why?").min_length(2).max_length(3));
    assert_eq!(question.validate(&text("😀😀😀")), Ok(()));
    assert_eq!(faults(question.validate(&text("😀"))), fault("", "minLength"));
    assert_eq!(faults(question.validate(&text("😀😀😀😀"))), fault("", "maxLength"));
    assert_eq!(faults(question.validate(&text(""))), fault("", "required"));
}

#[test]
fn a_text_without_bounds_has_the_general_limit() {
    let question = stored(&Text::new("Why?"));
    let longest = "ä".repeat(MAX_TEXT_LENGTH as usize);
    assert_eq!(question.validate(&text(&longest)), Ok(()));
    assert_eq!(faults(question.validate(&text(&(longest + "ä")))), fault("", "maxLength"));
}

/// B121 and B122: an answer of another form is told so, and never read as something else.
#[test]
fn an_answer_of_another_form_is_refused() {
    let questions = [stored(&choice()), stored(&multi()), stored(&Text::new("Why?")), stored(&ANY.ask(json!(null)))];
    let answers = [select(&["approve"]), select(&["a"]), text("a"), value(json!("a"))];
    for (asked, question) in questions.iter().enumerate() {
        for (answered, answer) in answers.iter().enumerate() {
            let judged = question.validate(answer);
            if asked == answered {
                assert_eq!(judged, Ok(()));
            } else if asked > 1 || answered > 1 {
                assert_eq!(faults(judged), fault("", "type"), "{asked} {answered}");
            }
        }
    }
}

#[test]
fn a_cancellation_fits_every_question() {
    for question in [stored(&choice()), stored(&Text::without_question()), stored(&ANY.ask(json!(null)))] {
        assert_eq!(question.validate(&ResumeResponse::Cancel), Ok(()));
    }
}

/// B121: any JSON value is an answer when the schema takes it, and arrives unchanged.
#[test]
fn falsy_and_extreme_values_are_answers_and_arrive_unchanged() {
    let ask = ANY.ask(json!(null));
    let question = stored(&ask);
    for answer in [
        json!(null),
        json!(false),
        json!(0),
        json!(""),
        json!([]),
        json!({}),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(0.1),
        json!(-0.0),
        json!(5.0),
        json!("\u{0}😀"),
        json!([[{"a": [null]}]]),
    ] {
        let response = value(answer.clone());
        assert_eq!(question.validate(&response), Ok(()), "{answer}");
        let decoded = ask.decode(&response).unwrap();
        assert_eq!(decoded.to_string(), answer.to_string());
        let meta = ResumeMeta { value: Some(answer), ..silent_meta() };
        assert_eq!(question.response_from_meta(&meta), Ok(response));
    }
}

#[test]
fn decoding_reads_the_form_and_names_another() {
    assert_eq!(choice().decode(&select(&["gone"])), Ok("gone".into()), "the stored question judged it");
    assert_eq!(multi().decode(&select(&["a", "b"])), Ok(vec!["a".into(), "b".into()]));
    assert_eq!(Text::without_question().decode(&text("x")), Ok("x".into()));
    assert_eq!(choice().decode(&text("x")), Err(AnswerError::Form { expected: "one selected id", found: "a text" }));
    assert_eq!(choice().decode(&ResumeResponse::Cancel), Err(AnswerError::Cancelled));
    let optional = choice().optional_cancel();
    assert_eq!(optional.decode(&ResumeResponse::Cancel), Ok(None));
    assert_eq!(optional.decode(&select(&["approve"])), Ok(Some("approve".into())));
}

#[test]
fn a_message_answers_a_choice_with_what_it_selected() {
    let question = stored(&choice());
    let meta = ResumeMeta { selected: vec!["approve".into()], text: Some("Approve".into()), ..silent_meta() };
    assert_eq!(question.response_from_meta(&meta), Ok(select(&["approve"])));
    let meta = ResumeMeta { selected: vec!["nope".into()], ..silent_meta() };
    assert_eq!(faults(question.response_from_meta(&meta).map(drop)), fault("/0", "enum"));
    assert_eq!(faults(question.response_from_meta(&silent_meta()).map(drop)), fault("", "required"));
    let meta = ResumeMeta { text: Some("approve".into()), ..silent_meta() };
    assert_eq!(faults(question.response_from_meta(&meta).map(drop)), fault("", "type"));
}

#[test]
fn a_message_answers_a_text_with_its_text_else_with_its_first_selection() {
    let question = stored(&Text::new("Why?"));
    let both = ResumeMeta { text: Some("typed".into()), selected: vec!["x".into()], ..silent_meta() };
    assert_eq!(question.response_from_meta(&both), Ok(text("typed")));
    let selected = ResumeMeta { selected: vec!["x".into(), "y".into()], ..silent_meta() };
    assert_eq!(question.response_from_meta(&selected), Ok(text("x")));
    let empty = ResumeMeta { text: Some(String::new()), selected: vec!["x".into()], ..silent_meta() };
    assert_eq!(faults(question.response_from_meta(&empty).map(drop)), fault("", "required"));
    assert_eq!(faults(question.response_from_meta(&silent_meta()).map(drop)), fault("", "required"));
}

#[test]
fn a_message_answers_a_contract_with_its_value_only() {
    let question = stored(&ANY.ask(json!(null)));
    let typed = ResumeMeta { text: Some("x".into()), selected: vec!["x".into()], ..silent_meta() };
    assert_eq!(faults(question.response_from_meta(&typed).map(drop)), fault("", "type"));
}

#[test]
fn a_cancelling_message_cancels_whatever_else_it_holds() {
    let meta = ResumeMeta { cancel: true, selected: vec!["nope".into()], ..silent_meta() };
    assert_eq!(stored(&choice()).response_from_meta(&meta), Ok(ResumeResponse::Cancel));
}

#[test]
fn a_message_that_selects_nothing_answers_a_choice_of_none() {
    let question = stored(&multi().min(0));
    assert_eq!(question.response_from_meta(&silent_meta()), Ok(select(&[])));
    let meta = ResumeMeta { text: Some("nothing".into()), ..silent_meta() };
    assert_eq!(faults(question.response_from_meta(&meta).map(drop)), fault("", "type"));
}
