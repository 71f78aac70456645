//! Every split of a document gives the same.

use kortyx_protocol::StructuredChange;
use kortyx_reason::partial::{Field, Wrapping};
use proptest::prelude::*;
use serde_json::json;

use crate::check::{Reading, fuzzed, reading};

/// Documents that have something of everything, wrong ones among them.
const DOCUMENTS: &[&str] = &[
    r#"{"a":"plain","b":"caf\u00e9 \ud83d\ude00 \"q\" \\ \n €😀","c":[1,"two",{"three":[3]}]}"#,
    r#"{"a":[{"b":"x","c":1.50},{"d":0},7,[],{"b":null},{"b":"","c":[{}]}],"b":[[],{}]}"#,
    r#"{"a":{"b":"deep\tdown","c":[-0.5e+3,1E2],"d":{"e":{"f":true}}},"\u0061x":false}"#,
    r#"{"a":["x","é",null,{"y":"z"}],"b":[[1,2],[],3],"c":["s",{"t":[]}]}"#,
    r#"[{"a":"one","b":1,"c":[[1],[],"x"]},{"z":{}},[],"s",{"a":"two"}]"#,
    r#"{"a":[{"b":[{"c":[1,2],"d":"t"},{},5]},{"b":[]},{},{"b":[{"c":[]}]}]}"#,
    r#"{"a":18446744073709551615,"b":"x","c":-9223372036854775808}"#,
    " \n\t{ \"a\" : [ 1 , 2 ] , \"b\" : { } , \"c\" : \"\" } \r\n",
    "\u{feff}{\"a\":null,\"b\":null,\"c\":null}",
    r#"{"é\"":[1,2],"\u00e9\u0022":3}"#,
    r#"{"a":"x","b":"y","a":"z"}"#,
    r#"{"a":"half \ud83d a pair"}"#,
    r#"{"b":"half \ude00 a pair"}"#,
    r#"{"b":"an \x escape"}"#,
    "{\"b\":\"a raw\nline\"}",
    r#"{"a":01}"#,
    r#"{"a":[1,]}"#,
    r#"{"a":18446744073709551616}"#,
    r#"{"a":1e999,"b":"x"}"#,
    r#"{"a":tru}"#,
    r#"{"b":"cut off \u00"#,
    r#"{"a":{"b":"cut"#,
    "5e3",
    "-",
    "true",
    "\"only a text\"",
    "[]",
    "{}",
    "",
    "Here is {name}:\n```json\n{\"a\": 1, \"b\": \"x\"}\n```\nThat is all, {name}.",
    "```\n[{\"a\":\"x\"}]\n```\n",
    "Two: {\"a\":1} or { \"a\":2}",
    "See [1]: [{\"a\":\"b\"}]",
];

#[test]
fn every_split_in_two_gives_the_same() {
    for (document, how) in DOCUMENTS.iter().flat_map(|document| (0..32).map(move |how| (document.as_bytes(), how))) {
        let reading = reading(how);
        let whole = reading.check(document, document.chunks(7));
        for at in 0..=document.len() {
            let (left, right) = document.split_at(at);
            assert_eq!(reading.read([left, right]), whole, "{} at {at}", String::from_utf8_lossy(document));
        }
    }
}

#[test]
fn every_split_of_a_text_that_is_not_utf8_gives_the_same() {
    for text in
        [&b"{\"b\":\"x\xff\"}"[..], b"{\"b\":\"x\xe2\x82\"}", b"{\"b\":\"x\xe2\x82", b"{\"b\":1}\xf0", b"\x80{}"]
    {
        for (how, at) in (0..32).flat_map(|how| (0..=text.len()).map(move |at| (how, at))) {
            let (left, right) = text.split_at(at);
            let outcome = reading(how).check(text, [left, right]);
            assert!(outcome.document.is_err(), "{text:?}");
        }
    }
}

#[test]
fn every_input_that_the_fuzzer_starts_with_holds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/partial");
    let inputs: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(inputs.len() > 20, "{}", inputs.len());
    for input in inputs {
        fuzzed(&std::fs::read(input).unwrap());
    }
}

#[test]
fn a_field_is_told_as_soon_as_it_is_certain() {
    let fields = [Field::set("n"), Field::text_delta("t"), Field::append("i"), Field::set("s")];
    let reading = Reading::new(fields, Wrapping::Bare);
    let told = |text: &str| reading.read([text.as_bytes()]).changes;
    let set = |path: &str, value| StructuredChange::Set { path: path.to_owned(), value };
    let text = |delta: &str| StructuredChange::TextDelta { path: "t".to_owned(), delta: delta.to_owned() };
    let append = |items| StructuredChange::Append { path: "i".to_owned(), items };

    assert_eq!(told(r#"{"n":1"#), [], "the number may go on");
    assert_eq!(told(r#"{"n":1,"#), [set("n", json!(1))]);
    assert_eq!(told(r#"{"n":null"#), [set("n", json!(null))]);
    assert_eq!(told(r#"{"s":"abc"#), [], "it is told when it is complete");
    assert_eq!(told(r#"{"s":"abc""#), [set("s", json!("abc"))]);
    assert_eq!(told(r#"{"t":""#), [], "nothing is certain but that it is a text");
    assert_eq!(told(r#"{"t":"""#), [text("")]);
    assert_eq!(told(r#"{"t":"ab"#), [text("ab")]);
    assert_eq!(told(r#"{"t":"ab\u00e"#), [text("ab")]);
    assert_eq!(told(r#"{"t":"ab\u00e9"#), [text("abé")]);
    assert_eq!(told(r#"{"t":"ab\ud83d\ude0"#), [text("ab")]);
    assert_eq!(told(r#"{"t":"ab\ud83d\ude00"#), [text("ab😀")]);
    assert_eq!(told(r#"{"i":["#), []);
    assert_eq!(told(r#"{"i":[]"#), [append(vec![])]);
    assert_eq!(told(r#"{"i":[{"a":1"#), []);
    assert_eq!(told(r#"{"i":[{"a":1}"#), [append(vec![json!({"a": 1})])]);
    assert_eq!(told(r#"{"i":[true,"x"]"#), [append(vec![json!(true)]), append(vec![json!("x")])]);
}

/// A text with cuts in it, as shares of its length.
fn pieces<'a>(text: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect()
}

proptest! {
    #[test]
    fn many_cuts_give_the_same(
        document in prop::sample::select(DOCUMENTS),
        how in any::<u8>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        reading(how).check(document.as_bytes(), pieces(document.as_bytes(), &cuts));
    }

    #[test]
    fn a_damaged_document_is_refused_alike(
        document in prop::sample::select(DOCUMENTS),
        how in any::<u8>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut damaged = document.as_bytes().to_vec();
        match at.index(document.len() + 1) {
            end if end == damaged.len() => damaged.push(byte),
            at => damaged[at] = byte,
        }
        reading(how).check(&damaged, pieces(&damaged, &cuts));
    }
}
