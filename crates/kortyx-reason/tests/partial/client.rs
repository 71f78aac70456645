//! A client that applies what it is told has the declared fields.

use std::fmt::Write;

use kortyx_protocol::StructuredChange;
use kortyx_reason::partial::{Field, Fields, Wrapping};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::check::{Reading, reduced};

/// What a client has of a document before its end.
fn client(fields: &[Field], document: &Value) -> Value {
    let reading = Reading::new(fields.to_vec(), Wrapping::Bare);
    let text = document.to_string();
    let outcome = reading.check(text.as_bytes(), text.as_bytes().chunks(3));
    reduced(&outcome.changes).value().cloned().unwrap_or_default()
}

#[test]
fn items_keep_their_places_when_nothing_is_declared_in_one() {
    let fields = [Field::text_delta("items.*.text"), Field::append("items.*.tags")];
    let document =
        json!({"items": [{"id": 1}, {"text": "two"}, [3], "four", {"tags": [5]}, {"text": null}], "rest": 1});
    let told = json!({"items": [{}, {"text": "two"}, [], null, {"tags": [5]}, {"text": null}]});
    assert_eq!(client(&fields, &document), told);
}

#[test]
fn items_within_items_keep_their_places() {
    let document = json!({"a": [{"b": []}, {}, {"b": [1, {}, {"c": "x", "d": 0}]}, {"b": 5}]});
    let told = json!({"a": [{"b": []}, {}, {"b": [null, {}, {"c": "x"}]}, {}]});
    assert_eq!(client(&[Field::text_delta("a.*.b.*.c")], &document), told);
}

#[test]
fn a_value_of_another_kind_is_told_whole() {
    let fields = [Field::text_delta("t"), Field::append("i"), Field::text_delta("a.b")];
    assert_eq!(
        client(&fields, &json!({"t": ["x"], "i": {"0": 1}, "a": {"b": 7, "c": 8}})),
        json!({"t": ["x"], "i": {"0": 1}, "a": {"b": 7}})
    );
    assert_eq!(client(&fields, &json!({"t": null, "i": "x", "a": [{"b": "c"}]})), json!({"t": null, "i": "x"}));
}

#[test]
fn a_document_that_is_an_array_is_told_by_number() {
    let document = json!([{"a": "x", "b": 1}, {"b": 2}, {"a": "y"}]);
    assert_eq!(client(&[Field::text_delta("*.a")], &document), json!([{"a": "x"}, {}, {"a": "y"}]));
    assert_eq!(client(&[Field::set("*")], &document), document);
    assert_eq!(client(&[Field::set("a")], &document), Value::Null);
}

#[test]
fn a_key_is_known_however_it_is_written() {
    let reading = Reading::new([Field::text_delta("títle.x")], Wrapping::Bare);
    let text = r#"{"t\u00edtle":{"\u0078":"a"}}"#.as_bytes();
    let told = StructuredChange::TextDelta { path: "títle.x".to_owned(), delta: "a".to_owned() };
    assert_eq!(reading.check(text, text.chunks(2)).changes, [told]);
}

/// Values over a small alphabet, so that paths often lead somewhere.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        "\\PC{0,6}|[\"\\\\/\u{8}\n\u{1}é😀]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..5).prop_map(|fields| json!(fields)),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "0", "", "a.b", "*", "é\n"]).prop_map(str::to_owned)
}

/// Fields of which none lies within another.
fn fields() -> impl Strategy<Value = Vec<Field>> {
    let segment = prop::sample::select(vec!["a", "b", "c", "*", "é\n"]);
    let path = prop::collection::vec(segment, 1..5).prop_map(|segments| segments.join("."));
    let field = (path, 0..3).prop_map(|(path, mode)| match mode {
        0 => Field::set(path),
        1 => Field::text_delta(path),
        _ => Field::append(path),
    });
    prop::collection::vec(field, 0..6).prop_map(|fields| {
        let mut apart: Vec<Field> = Vec::new();
        for field in fields {
            let more = apart.iter().cloned().chain([field.clone()]);
            if Fields::new(more).is_ok() {
                apart.push(field);
            }
        }
        apart
    })
}

/// A document as text, with white space and with its characters as escapes, or without.
fn written(document: &Value, is_pretty: bool, is_escaped: bool) -> String {
    let text = if is_pretty { format!("{document:#}") } else { document.to_string() };
    if !is_escaped {
        return text;
    }
    let mut escaped = String::new();
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => escaped.push(char::from(byte)),
            _ => write!(escaped, "\\u{unit:04x}").unwrap(),
        }
    }
    escaped
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_client_has_the_declared_fields_of_any_document(
        document in document(),
        fields in fields(),
        is_pretty in any::<bool>(),
        is_escaped in any::<bool>(),
        piece in 1..9_usize,
    ) {
        let reading = Reading::new(fields, Wrapping::Bare);
        let text = written(&document, is_pretty, is_escaped);
        let outcome = reading.check(text.as_bytes(), text.as_bytes().chunks(piece));
        prop_assert_eq!(outcome.document.unwrap().to_value().unwrap(), document);
    }

    #[test]
    fn any_bytes_are_read_alike(how in any::<u8>(), text in "[\\[\\]{}:,\"\\\\ua-c0-9.eE+\\-truefalsn` \n é😀]{0,40}", piece in 1..5_usize) {
        crate::check::reading(how).check(text.as_bytes(), text.as_bytes().chunks(piece));
    }
}
