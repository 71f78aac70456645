//! Documents that are too large are refused where they go over.

use kortyx_protocol::FailureCode;
use kortyx_reason::partial::{Field, PartialLimits, Problem, Wrapping};
use serde_json::Value;

use crate::check::{Outcome, Reading};

fn read(limits: PartialLimits, text: &str) -> Outcome {
    let mut reading = Reading::new([Field::text_delta("t")], Wrapping::Bare);
    reading.limits = limits;
    reading.check(text.as_bytes(), text.as_bytes().chunks(3))
}

fn assert_refused(limits: PartialLimits, text: &str, problem: Problem, offset: usize) {
    let error = read(limits, text).document.unwrap_err();
    assert_eq!((error.problem.clone(), error.offset), (problem, offset), "{text}");
    assert_eq!(error.code(), FailureCode::PayloadTooLarge);
}

#[test]
fn a_text_may_be_as_long_as_its_limit() {
    let limits = || PartialLimits { bytes: 12, ..PartialLimits::default() };
    assert!(read(limits(), "{\"t\":\"abcd\"}").document.is_ok());
    assert_refused(limits(), "{\"t\":\"abcde\"}", Problem::TooLong { limit: 12 }, 12);
    assert_refused(limits(), "{\"t\":\"abcd\"} ", Problem::TooLong { limit: 12 }, 12);
    assert_eq!(read(limits(), "{\"t\":\"abcdefg").changes.len(), 1, "what fits is told");
}

#[test]
fn nesting_ends_at_its_limit() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let limits = |depth| PartialLimits { depth, ..PartialLimits::default() };
    assert!(read(limits(3), &nested(3)).document.is_ok());
    assert_refused(limits(3), &nested(4), Problem::TooDeep { limit: 3 }, 3);
    assert!(read(limits(usize::MAX), &nested(96)).document.is_ok());
    assert_refused(limits(usize::MAX), &nested(97), Problem::TooDeep { limit: 96 }, 96);
    assert_refused(limits(usize::MAX), &"[".repeat(1_000_000), Problem::TooDeep { limit: 96 }, 96);
    assert_refused(limits(2), "{\"a\":[{}]}", Problem::TooDeep { limit: 2 }, 6);
}

#[test]
fn keys_are_counted_over_all_objects() {
    let limits = || PartialLimits { keys: 3, ..PartialLimits::default() };
    assert!(read(limits(), r#"[{"a":1},{"a":{"b":2}}]"#).document.is_ok());
    assert_refused(limits(), r#"[{"a":1},{"a":{"b":{"c":2}}}]"#, Problem::TooManyKeys { limit: 3 }, 20);
}

#[test]
fn a_key_may_be_as_long_as_its_limit() {
    let limits = || PartialLimits { key_bytes: 4, ..PartialLimits::default() };
    assert!(read(limits(), r#"{"abcd":1}"#).document.is_ok());
    assert!(read(limits(), r#"{"éé":1}"#).document.is_ok());
    assert_refused(limits(), r#"{"abcde":1}"#, Problem::KeyTooLong { limit: 4 }, 1);
    assert_refused(limits(), r#"{"aéé":1}"#, Problem::KeyTooLong { limit: 4 }, 1);
    assert_refused(limits(), r#"{"abcd\x":1}"#, Problem::KeyTooLong { limit: 4 }, 1);
    assert_refused(limits(), r#"{"a":{"abcdefgh":1}}"#, Problem::KeyTooLong { limit: 4 }, 6);
}

#[test]
fn a_document_at_the_deepest_level_is_taken_by_a_client() {
    let mut document = Value::from("x");
    for _ in 0..95 {
        document = Value::from(vec![document]);
    }
    let text = format!("{{\"t\":{document}}}");
    assert_eq!(read(PartialLimits::default(), &text).changes.len(), 1);
}
