//! Rules that hold for any question and any answer.

use std::{collections::BTreeSet, time::Duration};

use kortyx_contracts::{Ask, AskExt, Choice, ChoiceOption, InterruptContract, MultiChoice, Question, Text};
use kortyx_protocol::{ResumeMeta, ResumeResponse};
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Map, Value, json};

use crate::world::{silent_meta, stored};

const ANY: InterruptContract<Value, Value> =
    InterruptContract::new("any").description("anything").schema_id("acme.any").version("1");

/// Few ids, so that they often meet.
fn id() -> impl Strategy<Value = String> {
    prop_oneof!["[a-e]", Just(String::new()), Just("😀".to_owned())]
}

fn any_json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any::<String>(), inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Something like a schema: known keywords with right and wrong values.
fn schema() -> impl Strategy<Value = Value> {
    let keyword = prop::sample::select(vec![
        "type",
        "enum",
        "const",
        "minimum",
        "multipleOf",
        "minLength",
        "pattern",
        "items",
        "prefixItems",
        "minItems",
        "properties",
        "required",
        "additionalProperties",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "$ref",
        "$defs",
        "$id",
        "$anchor",
        "$dynamicRef",
        "$schema",
        "format",
        "unevaluatedProperties",
        "dependentSchemas",
        "contentEncoding",
    ]);
    let word = prop::sample::select(vec![
        json!("string"),
        json!("object"),
        json!("integer"),
        json!("#"),
        json!("#/$defs/a"),
        json!("date-time"),
        json!("("),
        json!(-1),
        json!(0),
        json!(1),
        json!(1e300),
        json!(true),
        json!(["a"]),
        json!(["string", "null"]),
        json!(null),
    ]);
    word.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            vec((keyword.clone(), inner.clone()), 0..4).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
            inner.clone().prop_map(|schema| json!({"a": schema})),
            vec(inner, 0..3).prop_map(Value::from),
        ]
    })
}

proptest! {
    #[test]
    fn builders_refuse_exactly_the_options_that_cannot_be_told_apart(ids in vec(id(), 0..5)) {
        let ask = ids.iter().fold(Choice::new("Which?"), |ask, id| ask.option(id, "x"));
        let distinct: BTreeSet<_> = ids.iter().filter(|id| !id.is_empty()).collect();
        prop_assert_eq!(ask.question().is_ok(), !ids.is_empty() && distinct.len() == ids.len());
    }

    #[test]
    fn a_multi_choice_agrees_with_its_rule(
        options in prop::collection::btree_set("[a-h]", 1..6),
        answer in vec("[a-h]", 0..6),
        min in option::of(0_u32..4),
        max in option::of(0_u32..4),
    ) {
        let mut ask = options.iter().fold(MultiChoice::new("Which?"), |ask, id| ask.option(id, "x"));
        ask = min.into_iter().fold(ask, MultiChoice::min);
        ask = max.into_iter().fold(ask, MultiChoice::max);
        let count = u32::try_from(options.len()).unwrap();
        let possible = max.is_none_or(|max| max > 0 && max <= count && min.is_none_or(|min| min <= max))
            && min.is_none_or(|min| min <= count);
        prop_assert_eq!(ask.question().is_ok(), possible);
        if possible {
            let length = u32::try_from(answer.len()).unwrap();
            let distinct: BTreeSet<_> = answer.iter().collect();
            let fits = length >= min.unwrap_or(1)
                && length <= max.unwrap_or(count)
                && distinct.len() == answer.len()
                && answer.iter().all(|id| options.contains(id));
            let question = stored(&ask);
            prop_assert_eq!(question.validate(&ResumeResponse::Select { ids: answer.clone() }).is_ok(), fits);
            let meta = ResumeMeta { selected: answer.clone(), ..silent_meta() };
            prop_assert_eq!(question.response_from_meta(&meta).ok(), fits.then_some(ResumeResponse::Select { ids: answer }));
        }
    }

    #[test]
    fn a_text_agrees_with_its_rule(answer in ".{0,8}", min in option::of(0_u32..6), max in option::of(1_u32..6)) {
        prop_assume!(min.unwrap_or(0) <= max.unwrap_or(9));
        let mut ask = Text::without_question();
        ask = min.into_iter().fold(ask, Text::min_length);
        ask = max.into_iter().fold(ask, Text::max_length);
        let length = u32::try_from(answer.chars().count()).unwrap();
        let fits = length >= min.unwrap_or(1).max(1) && length <= max.unwrap_or(u32::MAX);
        prop_assert_eq!(stored(&ask).validate(&ResumeResponse::Text { text: answer }).is_ok(), fits);
    }

    #[test]
    fn storing_a_question_loses_nothing(
        question in ".{1,9}", label in ".{0,9}", value in any_json(), meta in any_json(), millis in 1_u64.., cancel: bool,
    ) {
        prop_assume!(!question.trim().is_empty());
        let ask = Choice::new(question)
            .option_with(ChoiceOption::new("a", label).value(&value))
            .meta(&meta)
            .expires_in(Duration::from_millis(millis))
            .default_on_expiry("a");
        let read = if cancel { stored(&ask.optional_cancel()) } else { stored(&ask) };
        prop_assert_eq!(read.meta().unwrap().to_value().unwrap(), meta);
        prop_assert_eq!(read.options()[0].value().unwrap().to_value().unwrap(), value.clone());
        prop_assert_eq!(read.optional_cancel(), cancel);
        let public = serde_json::to_value(read.input()).unwrap();
        prop_assert!(public["options"][0].get("value").is_none(), "option values stay on the server");
    }

    #[test]
    fn any_value_is_an_answer_and_arrives_unchanged(request in any_json(), answer in any_json()) {
        let ask = ANY.ask(&request);
        let question = stored(&ask);
        prop_assert_eq!(question.request().unwrap().to_value().unwrap(), request);
        let response = ResumeResponse::Value { value: answer.clone() };
        prop_assert_eq!(question.validate(&response), Ok(()));
        prop_assert_eq!(ask.decode(&response), Ok(answer));
    }

    #[test]
    fn no_stored_schema_and_no_answer_panics(schema in schema(), answer in any_json()) {
        let stored = json!({"v": 1, "ask": {"kind": "custom", "responseSchema": schema}});
        let question = Question::from_slice(stored.to_string().as_bytes()).unwrap();
        if let Err(issues) = question.validate(&ResumeResponse::Value { value: answer }) {
            prop_assert!(!issues.is_empty());
        }
        let _ = question.input();
    }

    #[test]
    fn no_bytes_panic_as_a_stored_question(bytes in vec(any::<u8>(), 0..64), fields in vec((
        prop::sample::select(vec!["kind", "options", "picker", "min", "max", "minLength", "responseSchema"]), any_json(),
    ), 0..6)) {
        let _ = Question::from_slice(&bytes);
        let ask: Map<String, Value> = fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let _ = Question::from_slice(json!({"v": 1, "ask": ask}).to_string().as_bytes());
    }
}
