//! Tests of the reducer.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{StreamChunk, arbitrary::json_value};

fn set(path: &str, value: Value) -> StructuredChange {
    StructuredChange::Set { path: path.to_owned(), value }
}

fn append(path: &str, items: &[Value]) -> StructuredChange {
    StructuredChange::Append { path: path.to_owned(), items: items.to_vec() }
}

fn text(path: &str, delta: &str) -> StructuredChange {
    StructuredChange::TextDelta { path: path.to_owned(), delta: delta.to_owned() }
}

fn last(data: Value) -> StructuredChange {
    StructuredChange::Final { data }
}

fn chunk(change: StructuredChange) -> StructuredChunk {
    StructuredChunk::new("s", "demo", change)
}

/// A stream with these changes applied.
fn after(changes: impl IntoIterator<Item = StructuredChange>) -> StructuredData {
    let mut data = StructuredData::new("s");
    for change in changes {
        data.apply(&chunk(change)).unwrap();
    }
    data
}

/// The error of a change, which must leave everything as it was.
fn refusal(mut data: StructuredData, change: StructuredChange) -> ReduceError {
    let before = data.clone();
    let error = data.apply(&chunk(change)).unwrap_err();
    assert_eq!(data, before, "{error}");
    error
}

#[test]
fn changes_add_up() {
    let data = after([
        set("draft.body", json!("Hello")),
        set("items.0.title", json!("First")),
        append("tags", &[json!("a")]),
        append("tags", &[json!("b"), json!(null)]),
        text("body", "Hel"),
        text("body", "lo"),
        set("items.1.title", json!("Second")),
        set("tags.0", json!({"deep": []})),
        append("tags.0.deep", &[json!(1)]),
        text("items.2", "third"),
    ]);
    assert_eq!(
        data.value().unwrap(),
        &json!({
            "draft": {"body": "Hello"}, "body": "Hello",
            "items": [{"title": "First"}, {"title": "Second"}, "third"],
            "tags": [{"deep": [1]}, "b", null],
        })
    );
    assert!(!data.is_final());
}

#[test]
fn a_final_replaces_everything_and_ends_the_stream() {
    let data = after([set("a", json!(1)), last(json!(null))]);
    assert_eq!(data.value(), Some(&json!(null)));
    assert!(data.is_final());
    for change in [set("a", json!(1)), append("a", &[]), text("a", ""), last(json!({}))] {
        assert_eq!(refusal(data.clone(), change), ReduceError::AfterFinal { stream_id: "s".to_owned() });
    }
}

#[test]
fn a_malformed_path_is_refused() {
    for path in [".", "a.", ".a", "a..b", "a.01", "00", &vec!["a"; MAX_DEPTH].join(".")] {
        assert!(matches!(refusal(after([]), set(path, json!(1))), ReduceError::MalformedPath { .. }), "{path}");
    }
    assert_eq!(refusal(after([]), text("", "x")), ReduceError::EmptyPath);
    assert_eq!(refusal(after([]), append("", &[])), ReduceError::EmptyPath);
}

#[test]
fn a_path_through_what_has_no_such_inside_is_refused() {
    let start = || after([set("o.k", json!(1)), set("a.0", json!("x")), set("n", json!(null)), set("b", json!(true))]);
    for (path, depth, expected, found) in [
        ("n.x", 1, "object", "null"),
        ("n.0", 1, "array", "null"),
        ("b.x", 1, "object", "a boolean"),
        ("o.k.x", 2, "object", "a number"),
        ("a.0.0.x", 2, "array", "a text"),
        ("a.x", 1, "object", "an array"),
        ("o.0", 1, "array", "an object"),
        ("0", 0, "array", "an object"),
    ] {
        let error = ReduceError::PathConflict { path: path.to_owned(), depth, expected, found };
        assert_eq!(refusal(start(), set(path, json!(1))), error);
        assert_eq!(refusal(start(), append(path, &[json!(1)])), error);
        assert_eq!(refusal(start(), text(path, "x")), error);
    }
}

#[test]
fn an_index_leaves_no_gap() {
    let start = || after([append("items", &[json!(0), json!(1)])]);
    for (path, length) in [
        ("items.3", 2),
        ("items.1000000000", 2),
        ("items.99999999999999999999999999", 2),
        ("items.2.1", 0),
        ("new.1", 0),
        ("new.0.a.1", 0),
    ] {
        assert_eq!(refusal(start(), set(path, json!(1))), ReduceError::Gap { path: path.to_owned(), length });
    }
    assert_eq!(refusal(after([]), set("1", json!(1))), ReduceError::Gap { path: "1".to_owned(), length: 0 });
    assert_eq!(after([set("0.0.a", json!(1))]).value(), Some(&json!([[{"a": 1}]])));
}

#[test]
fn append_needs_an_array_and_text_delta_a_text() {
    let start = || after([set("t", json!("x")), set("a", json!([])), set("o", json!({})), set("n", json!(null))]);
    for path in ["t", "o", "n"] {
        let error = ReduceError::NotAnArray { path: path.to_owned() };
        assert_eq!(refusal(start(), append(path, &[json!(1)])), error);
    }
    for path in ["a", "o", "n"] {
        assert_eq!(refusal(start(), text(path, "x")), ReduceError::NotAText { path: path.to_owned() });
    }
}

#[test]
fn a_chunk_of_another_stream_is_refused() {
    let mut data = StructuredData::new("other");
    let error = ReduceError::OtherStream { expected: "other".to_owned(), found: "s".to_owned() };
    assert_eq!(data.apply(&chunk(last(json!(1)))), Err(error));
}

#[test]
fn data_that_could_not_be_sent_is_refused() {
    let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    assert!(matches!(refusal(after([]), last(deep(MAX_DEPTH + 1))), ReduceError::TooDeep { .. }));
    assert!(matches!(refusal(after([]), set("a.b", deep(MAX_DEPTH - 1))), ReduceError::TooDeep { .. }));
    assert!(matches!(refusal(after([]), append("a", &[deep(MAX_DEPTH - 1)])), ReduceError::TooDeep { .. }));
    let data = after([set("a.b", deep(MAX_DEPTH - 2)), append("c", &[deep(MAX_DEPTH - 2)])]);
    assert!(serde_json::from_str::<Value>(&data.value().unwrap().to_string()).is_ok());
}

#[test]
fn an_error_does_not_repeat_a_huge_path() {
    let error = refusal(after([]), set(&"a..".repeat(100_000), json!(1)));
    assert!(error.to_string().len() < 300, "{error}");
}

#[test]
fn streams_are_kept_apart_and_forgotten_when_invalidated() {
    let mut streams = StructuredStreams::default();
    let mut apply = |stream: &str, change| streams.apply(&StructuredChunk::new(stream, "d", change).into());
    apply("b", set("x", json!(1))).unwrap();
    apply("a", text("x", "1")).unwrap();
    apply("b", last(json!(2))).unwrap();
    assert!(apply("c", set("", json!(1))).is_err());
    assert_eq!(streams.iter().map(StructuredData::stream_id).collect::<Vec<_>>(), ["b", "a"]);
    streams.apply(&StreamChunk::StructuredDataInvalidated { stream_id: "b".into(), checkpoint_id: None }).unwrap();
    assert!(streams.get("b").is_none());
    assert_eq!(streams.into_vec().len(), 1);
}

fn path() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec!["a", "b", "0", "1", "2", "", "00", "é", "99999999999999999999"]);
    prop::collection::vec(segment, 0..4).prop_map(|segments| segments.join("."))
}

fn change() -> impl Strategy<Value = StructuredChange> {
    prop_oneof![
        6 => (path(), json_value()).prop_map(|(path, value)| StructuredChange::Set { path, value }),
        4 => (path(), prop::collection::vec(json_value(), 0..3))
            .prop_map(|(path, items)| StructuredChange::Append { path, items }),
        4 => (path(), ".{0,4}").prop_map(|(path, delta)| StructuredChange::TextDelta { path, delta }),
        1 => json_value().prop_map(last),
    ]
}

/// What is at a path, by the JSON pointer that means the same.
fn at<'a>(data: &'a StructuredData, path: &str) -> Option<&'a Value> {
    data.value()?.pointer(&format!("/{}", path.replace('.', "/")))
}

proptest! {
    #[test]
    fn a_change_has_its_effect_or_none(changes in prop::collection::vec(change(), 0..12)) {
        let mut data = StructuredData::new("s");
        for change in changes {
            let before = data.clone();
            let outcome = data.apply(&chunk(change.clone()));
            if outcome.is_err() {
                prop_assert_eq!(&data, &before);
                continue;
            }
            prop_assert!(!before.is_final());
            prop_assert_eq!(data.is_final(), matches!(change, StructuredChange::Final { .. }));
            match change {
                StructuredChange::Set { path, value } => prop_assert_eq!(at(&data, &path), Some(&value)),
                StructuredChange::Append { path, items } => {
                    let there = at(&before, &path).and_then(Value::as_array).cloned().unwrap_or_default();
                    prop_assert_eq!(at(&data, &path), Some(&Value::from([there, items].concat())));
                }
                StructuredChange::TextDelta { path, delta } => {
                    let there = at(&before, &path).and_then(Value::as_str).unwrap_or_default();
                    prop_assert_eq!(at(&data, &path), Some(&Value::from(format!("{there}{delta}"))));
                }
                StructuredChange::Final { data: all } => prop_assert_eq!(data.value(), Some(&all)),
            }
        }
    }

    #[test]
    fn a_text_in_pieces_is_the_whole(pieces in prop::collection::vec(".{0,8}", 1..8)) {
        let data = after(pieces.iter().map(|piece| text("a.0.b", piece)));
        prop_assert_eq!(at(&data, "a.0.b"), Some(&Value::from(pieces.concat())));
    }
}
