//! What is refused, with its place.

use kortyx_protocol::FailureCode;
use kortyx_reason::partial::{Field, Fields, PartialJson, PartialJsonError, Problem, Wrapping};

use crate::check::Reading;

/// What is wrong with a text in which `d` is declared.
fn error(text: &str) -> PartialJsonError {
    let reading = Reading::new([Field::set("d")], Wrapping::Bare);
    reading.check(text.as_bytes(), text.as_bytes().chunks(2)).document.expect_err(text)
}

fn assert_refused(text: &str, problem: &Problem, offset: usize, path: &str) {
    let error = error(text);
    assert_eq!((&error.problem, error.offset, error.path.as_str()), (problem, offset, path), "{text}");
}

#[test]
fn what_does_not_belong_is_refused_with_its_place() {
    for (text, found, expected, offset, path) in [
        ("{a:1}", 'a', "a key in double quotes or `}`", 1, ""),
        ("{'a':1}", '\'', "a key in double quotes or `}`", 1, ""),
        ("{\"a\":1,}", '}', "a key in double quotes", 7, ""),
        ("{\"a\" 1}", '1', "`:`", 5, ""),
        ("{\"a\":}", '}', "a value", 5, "/a"),
        ("{\"a\":,}", ',', "a value", 5, "/a"),
        ("{\"a\":'x'}", '\'', "a value", 5, "/a"),
        ("{\"a\":undefined}", 'u', "a value", 5, "/a"),
        ("{\"a\":NaN}", 'N', "a value", 5, "/a"),
        ("{\"a\":1 \"b\":2}", '"', "`,` or the end of the array or object", 7, ""),
        ("{\"a\":[1 2]}", '2', "`,` or the end of the array or object", 8, "/a"),
        ("{\"a\":[1,]}", ']', "a value", 8, "/a/1"),
        ("{\"a\":[,1]}", ',', "a value or `]`", 6, "/a/0"),
        ("{\"a\":[1}", '}', "`,` or the end of the array or object", 7, "/a"),
        ("[{\"a\":1]", ']', "`,` or the end of the array or object", 7, "/0"),
        ("[0,{\"x/y~z\":[0,{\"é\":truth}]}]", 't', "`true`, `false` or `null`", 24, "/1/x~1y~0z/1/é"),
        ("[01]", '1', "`,` or the end of the array or object", 2, ""),
        ("[1.]", ']', "a digit", 3, "/0"),
        ("[.5]", '.', "a value or `]`", 1, "/0"),
        ("[+1]", '+', "a value or `]`", 1, "/0"),
        ("[-a]", 'a', "a digit", 2, "/0"),
        ("[1e]", ']', "a digit", 3, "/0"),
        ("[1e5.]", '.', "`,` or the end of the array or object", 4, ""),
        ("[0x1]", 'x', "`,` or the end of the array or object", 2, ""),
        ("[1] // one", '/', "the end of the text", 4, ""),
        ("{}}", '}', "the end of the text", 2, ""),
        ("é", 'é', "a value", 0, ""),
        ("]", ']', "a value", 0, ""),
        ("\u{a0}{}", '\u{a0}', "a value", 0, ""),
    ] {
        assert_refused(text, &Problem::Unexpected { found, expected }, offset, path);
    }
}

#[test]
fn a_string_that_is_none_is_refused_with_its_place() {
    assert_refused("{\"d\":\"a\nb\"}", &Problem::ControlCharacter, 7, "/d");
    assert_refused("{\"a\tb\":1}", &Problem::ControlCharacter, 3, "");
    assert_refused(r#"{"d":"\x"}"#, &Problem::Escape, 7, "/d");
    assert_refused(r#"{"d":"\u00g0"}"#, &Problem::Escape, 10, "/d");
    assert_refused(r#"{"d":"\ud83d"}"#, &Problem::Surrogate, 12, "/d");
    assert_refused(r#"{"d":"\ud83d\n"}"#, &Problem::Surrogate, 13, "/d");
    assert_refused(r#"{"d":"\ud83d\u0041"}"#, &Problem::Surrogate, 17, "/d");
    assert_refused(r#"{"d":"\ude00"}"#, &Problem::Surrogate, 11, "/d");
    assert_refused(r#"{"a":[{"\ud83d":1}]}"#, &Problem::Surrogate, 14, "/a/0");
}

#[test]
fn a_number_that_would_be_rounded_is_refused_with_its_place() {
    for number in ["18446744073709551616", "-9223372036854775809", "1e999", "-1.5e400", &"9".repeat(400)] {
        assert_refused(&format!("{{\"a\":[0,{number}]}}"), &Problem::Inexact, 8, "/a/1");
        assert_refused(number, &Problem::Inexact, 0, "");
    }
}

#[test]
fn a_declared_field_may_not_come_twice() {
    assert_refused(r#"{"d":1,"x":2,"d":3}"#, &Problem::Twice, 13, "/d");
    assert_refused(r#"{"d":1,"\u0064":3}"#, &Problem::Twice, 7, "/d");
    let reading = Reading::new([Field::set("a.*.d")], Wrapping::Bare);
    for text in [r#"{"a":[{"d":1},{"d":2}],"d":3,"d":4}"#, r#"{"a":[],"x":{"a":1,"a":2},"x":3}"#] {
        assert!(reading.check(text.as_bytes(), text.as_bytes().chunks(2)).document.is_ok(), "{text}");
    }
    assert!(reading.read([&br#"{"a":1,"a":[]}"#[..]]).document.is_err(), "a key on the way counts too");
}

#[test]
fn a_text_that_ends_early_is_told_from_one_that_is_wrong() {
    for text in ["{", "[", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":1", "[1,", "\"x", "\"\\u12", "-", "1e", "tr"] {
        let error = error(text);
        assert_eq!((error.is_cut_off(), error.offset), (true, text.len()), "{text}");
        assert_eq!(error.code(), FailureCode::InvalidModelJson);
    }
    assert_refused("{\"a\":[1,{\"b\":\"x", &Problem::Ended, 15, "/a/1/b");
    assert_refused("", &Problem::NotFound, 0, "");
    assert_refused(" \n", &Problem::NotFound, 2, "");
}

#[test]
fn bytes_that_are_not_utf8_are_refused_with_their_place() {
    let reading = Reading::new([], Wrapping::Bare);
    let text = b"{\"a\":[\"x\xff\"]}";
    let error = reading.check(text, text.chunks(2)).document.unwrap_err();
    assert_eq!((error.problem, error.offset, error.path.as_str()), (Problem::NotUtf8, 8, "/a/0"));
}

#[test]
fn an_error_says_what_where_and_in_which_value() {
    let said = error(r#"{"items":[{"price":12,5}]}"#).to_string();
    assert_eq!(said, "'5' where a key in double quotes is expected, at byte 22, in /items/0");
    let deep = format!("{{\"{}\":x", "k".repeat(1_000));
    assert!(error(&deep).to_string().len() < 300);
}

#[test]
fn what_was_told_before_an_error_stands() {
    let fields = Fields::new([Field::text_delta("t")]).unwrap();
    let mut changes = Vec::new();
    let outcome = PartialJson::new(fields, Wrapping::Bare).push(b"{\"t\":\"ab\n", &mut changes);
    assert!(outcome.is_err());
    assert_eq!(changes.len(), 1);
}
