//! What may surround a document, and what may not.

use kortyx_reason::partial::{Field, PartialJsonError, Problem, Wrapping};

use crate::check::Reading;

fn read(wrapping: Wrapping, text: &str) -> Result<String, PartialJsonError> {
    let reading = Reading::new([Field::text_delta("a"), Field::text_delta("*.a")], wrapping);
    let outcome = reading.check(text.as_bytes(), text.as_bytes().chunks(2));
    outcome.document.map(|document| document.get().to_owned())
}

fn problem(wrapping: Wrapping, text: &str) -> (Problem, usize) {
    let error = read(wrapping, text).expect_err(text);
    (error.problem, error.offset)
}

#[test]
fn prose_and_fences_around_an_object_are_tolerated() {
    let object = r#"{"a":"x {y} ```"}"#;
    for (before, after) in [
        ("", ""),
        ("\u{feff} \r\n\t", " \n"),
        ("```json\n", "\n```"),
        ("```\n", "\n```\nAnything else?"),
        ("``` ", " ```"),
        ("Sure! Here it is:\n\n```json\n", "\n```\n\nThe title is {a}, see [1] and {}}."),
        ("For {name} in { b: 1 } of {{x}} I write ", " and nothing { more"),
        ("{ name } ", ""),
    ] {
        let text = format!("{before}{object}{after}");
        let outcome = read(Wrapping::AroundObject, &text);
        // What begins like an object is one: the last prose begins with a brace.
        let is_object_of_its_own = before.starts_with('{');
        let has_second = after.contains("{}");
        match outcome {
            Ok(document) => assert!(document == object && !is_object_of_its_own && !has_second, "{text}"),
            Err(error) => assert!(is_object_of_its_own || has_second, "{text}: {error}"),
        }
    }
}

#[test]
fn prose_around_an_array_is_tolerated() {
    for text in ["[{\"a\":1}]", "The list [of all]:\n```json\n[{\"a\":1}]\n```", "Here: [{\"a\":1}] [sic]"] {
        assert_eq!(read(Wrapping::AroundArray, text).as_deref(), Ok("[{\"a\":1}]"), "{text}");
    }
    assert_eq!(problem(Wrapping::AroundArray, "As [1] says: [2]"), (Problem::Second, 13));
}

#[test]
fn a_second_document_is_refused() {
    let refused = |text: &str| problem(Wrapping::AroundObject, text);
    assert_eq!(refused("{\"a\":1}{\"a\":2}"), (Problem::Second, 7));
    assert_eq!(refused("{\"a\":1}\nWait, that is wrong:\n{\n  \"a\": 2}"), (Problem::Second, 29));
    assert_eq!(refused("{\"a\":1} or {}"), (Problem::Second, 11));
    assert!(read(Wrapping::AroundObject, "{\"a\":1} [2]}").is_ok());
}

#[test]
fn a_fence_is_all_that_may_surround_a_value_of_any_kind() {
    for text in ["5", " \"five\" ", "```\n5\n```", "```json\n\n5 ```\n ", "````\r\n5\n````", "```json\n5"] {
        assert!(read(Wrapping::Fenced, text).is_ok(), "{text}");
    }
    let unexpected = |found, expected| Problem::Unexpected { found, expected };
    for (text, found, expected, offset) in [
        ("five", 'i', "`true`, `false` or `null`", 1),
        ("5 apples", 'a', "the end of the text", 2),
        ("5 ```", '`', "the end of the text", 2),
        ("``5``", '`', "a value", 0),
        ("```\n5\n``x", 'x', "the end of the code fence", 8),
        ("```\n5\n```x", 'x', "the end of the text", 9),
        ("```\n5\n``` ```", '`', "the end of the text", 10),
        ("```\n```\n5", '`', "a value", 4),
    ] {
        assert_eq!(problem(Wrapping::Fenced, text), (unexpected(found, expected), offset), "{text}");
    }
    assert_eq!(problem(Wrapping::Fenced, "```json"), (Problem::Ended, 7));
}

#[test]
fn nothing_may_surround_a_bare_value() {
    assert!(read(Wrapping::Bare, " {} \n").is_ok());
    for text in ["```\n{}\n```", "Here: {}", "{} done", "{}{}"] {
        assert!(matches!(problem(Wrapping::Bare, text).0, Problem::Unexpected { .. }), "{text}");
    }
}

#[test]
fn prose_without_a_document_says_so() {
    assert_eq!(problem(Wrapping::AroundObject, "I cannot do that."), (Problem::NotFound, 17));
    assert_eq!(problem(Wrapping::AroundObject, "Sorry, {name}. [1]"), (Problem::NotFound, 18));
    assert_eq!(problem(Wrapping::AroundObject, "Here you are: {"), (Problem::Ended, 15));
    assert_eq!(problem(Wrapping::AroundObject, "```json\n"), (Problem::NotFound, 8));
}
