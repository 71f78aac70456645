//! Stored questions and answers that nobody honest made.

use kortyx_contracts::{Question, SchemaError, SchemaValidator};
use kortyx_protocol::RawJson;
use serde_json::{Value, json};

use crate::world::{fault, faults, value};

fn asking_with(schema: &Value) -> Question {
    let stored = json!({"v": 1, "ask": {"kind": "custom", "contract": "x", "responseSchema": schema}});
    Question::from_slice(stored.to_string().as_bytes()).unwrap()
}

#[test]
fn a_stored_schema_that_does_not_compile_refuses_every_answer() {
    for schema in [
        json!(null),
        json!(3),
        json!([1]),
        json!({"type": "strin"}),
        json!({"properties": null}),
        json!({"minLength": -1}),
        json!({"multipleOf": 0}),
        json!({"pattern": "("}),
        json!({"pattern": "(?=a)b"}),
        json!({"pattern": "(\\w{1000}){1000}"}),
        json!({"$ref": "#/$defs/gone"}),
        json!({"$ref": "#/%"}),
        json!({"$ref": 3}),
    ] {
        let issues = asking_with(&schema).validate(&value(json!(1))).unwrap_err();
        assert_eq!(issues[0].code, "schema", "{schema}");
        assert!(issues[0].message.starts_with("the stored schema does not compile: "), "{}", issues[0].message);
        assert!(issues[0].message.chars().count() < 500);
    }
}

#[test]
fn a_stored_schema_reaches_neither_files_nor_the_network() {
    for reference in
        ["http://127.0.0.1:1/schema", "https://example.com/s", "file:///etc/passwd", "other.json", "urn:x:y"]
    {
        let outcome = SchemaValidator::compile(&json!({"$ref": reference}));
        assert!(matches!(outcome, Err(SchemaError::Invalid { .. })), "{reference}");
    }
    let named = json!({"$id": "https://example.com/root", "$schema": "https://example.com/meta", "$ref": "leaf"});
    assert!(SchemaValidator::compile(&named).is_err());
}

#[test]
fn schemas_that_refer_to_themselves_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"$dynamicAnchor": "x", "$dynamicRef": "#x"}),
        json!({"properties": {"a": {"$ref": "#"}}, "unevaluatedProperties": {"$ref": "#"}}),
    ] {
        let _ = asking_with(&schema).validate(&value(json!({"a": {"a": [1]}})));
    }
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!([value]))
}

#[test]
fn an_answer_nested_too_deep_is_refused() {
    let question = asking_with(&json!(true));
    assert_eq!(question.validate(&value(nested(100))), Ok(()));
    assert_eq!(faults(question.validate(&value(nested(101)))), fault("", "depth"));
}

#[test]
fn a_schema_nested_too_deep_or_too_long_is_refused() {
    let deep = (0..200).fold(json!(true), |schema, _| json!({"not": schema}));
    assert_eq!(SchemaValidator::compile(&deep).err(), Some(SchemaError::TooDeep));
    let raw = "{\"not\":".repeat(50_000) + "true" + &"}".repeat(50_000);
    let stored = format!("{{\"v\":1,\"ask\":{{\"kind\":\"custom\",\"responseSchema\":{raw}}}}}");
    if let Ok(question) = Question::from_slice(stored.as_bytes()) {
        assert_eq!(faults(question.validate(&value(json!(1)))), fault("", "schema"));
    }
    let long = json!({"description": "x".repeat(2 * 1024 * 1024)});
    assert_eq!(SchemaValidator::compile(&long).err(), Some(SchemaError::TooLong));
}

#[test]
fn a_slow_pattern_is_fast() {
    let question = asking_with(&json!({"pattern": "^(a+)+$"}));
    let answer = value(json!("a".repeat(50_000) + "!"));
    assert_eq!(faults(question.validate(&answer)), fault("", "pattern"));
}

#[test]
fn messages_repeat_no_huge_value_and_are_not_endless() {
    let question = asking_with(&json!({"items": {"type": "string", "maxLength": 3}, "additionalProperties": false}));
    let secret = "secret".repeat(10_000);
    let issues = question.validate(&value(json!(vec![secret.as_str(); 1000]))).unwrap_err();
    assert_eq!(issues.len(), 32);
    assert!(issues.iter().all(|issue| !issue.message.contains("secret")), "values stay out of messages");
    let mut fields = serde_json::Map::new();
    fields.insert(secret, json!(1));
    let issues = question.validate(&value(Value::Object(fields))).unwrap_err();
    assert!(issues.iter().all(|issue| issue.message.chars().count() <= 301));
}

#[test]
fn what_is_no_stored_question_is_refused() {
    for stored in [
        "",
        "null",
        "[]",
        "{}",
        "{\"v\":1}",
        "{\"v\":1,\"ask\":{\"kind\":\"poll\"}}",
        "{\"v\":1,\"ask\":{\"kind\":\"choice\",\"options\":7}}",
    ] {
        assert!(Question::from_slice(stored.as_bytes()).is_err(), "{stored}");
    }
    assert!(Question::from_slice(&[0xff, 0xfe]).is_err());
}

#[test]
fn a_question_of_a_newer_version_is_refused_by_its_version() {
    for stored in ["{\"v\":2,\"ask\":{\"kind\":\"text\"}}", "{\"v\":2,\"asks\":[]}"] {
        let error = Question::from_slice(stored.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "question format 2 is not known: this version reads format 1 at /v");
    }
}

#[test]
fn a_question_without_what_its_kind_needs_refuses_answers() {
    let custom = Question::from_slice(br#"{"v":1,"ask":{"kind":"custom"}}"#).unwrap();
    assert_eq!(faults(custom.validate(&value(json!(null)))), fault("", "schema"));
    let choice = Question::from_slice(br#"{"v":1,"ask":{"kind":"choice"}}"#).unwrap();
    assert_eq!(faults(choice.validate(&crate::world::select(&["a"]))), fault("/0", "enum"));
}

#[test]
fn one_schema_is_one_validator_however_it_is_written() {
    let raw = RawJson::parse("{\"type\":\"string\"}").unwrap();
    let validators = [SchemaValidator::compile_raw(&raw), SchemaValidator::compile(&json!({"type": "string"}))];
    assert!(
        validators.iter().all(|validator| validator.as_ref().is_ok_and(|validator| validator.is_valid(&json!("x"))))
    );
}
