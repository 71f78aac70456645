//! Tests of the writer and the reader.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{StructuredChange, StructuredChunk, arbitrary::json_value};

/// What a reader made of a stream, comparable.
fn read_in(pieces: impl IntoIterator<Item = Vec<u8>>, limit: usize) -> Vec<String> {
    let mut reader = SseReader::with_limit(limit);
    let mut events: Vec<_> = pieces.into_iter().flat_map(|piece| reader.push(&piece)).map(show).collect();
    events.extend(reader.finish().err().map(|error| show(Err(error))));
    events
}

fn show(event: Result<SseEvent, SseError>) -> String {
    match event {
        Ok(SseEvent::Chunk(chunk)) => crate::json::to_string(&chunk).unwrap(),
        Ok(SseEvent::KeepAlive) => ":".to_owned(),
        Ok(SseEvent::Done) => "[DONE]".to_owned(),
        Err(SseError::TooLarge { .. }) => "too large".to_owned(),
        Err(SseError::Malformed(_)) => "malformed".to_owned(),
        Err(SseError::Truncated) => "truncated".to_owned(),
    }
}

fn read(stream: &str) -> Vec<String> {
    read_in([stream.as_bytes().to_vec()], 1000)
}

const DONE: &str = r#"{"type":"done"}"#;

#[test]
fn what_was_written_is_read() {
    let chunks = [
        StreamChunk::status("line\nbreaks\r\n\u{2028}"),
        StreamChunk::text_delta("data: [DONE]\n\n"),
        StructuredChunk::new("s", "d", StructuredChange::Final { data: json!([u64::MAX, i64::MIN, null]) }).into(),
        StreamChunk::done(None),
    ];
    let mut stream = Vec::new();
    for chunk in &chunks {
        SseWriter::append(&mut stream, chunk).unwrap();
        stream.extend_from_slice(SseWriter::KEEP_ALIVE);
    }
    stream.extend_from_slice(SseWriter::DONE);
    let mut expected: Vec<_> =
        chunks.iter().flat_map(|chunk| [crate::json::to_string(chunk).unwrap(), ":".to_owned()]).collect();
    expected.push("[DONE]".to_owned());
    assert_eq!(read_in([stream], 1000), expected);
}

#[test]
fn a_frame_has_its_prefix_first_and_no_line_break_inside() {
    let frame = String::from_utf8(SseWriter::chunk(&StreamChunk::message("a\nb\r")).unwrap()).unwrap();
    assert_eq!(frame, "data: {\"type\":\"message\",\"content\":\"a\\nb\\r\"}\n\n");
    assert_eq!(SseWriter::DONE, b"data: [DONE]\n\n");
    assert_eq!(SseWriter::KEEP_ALIVE, b": \n\n");
}

#[test]
fn every_form_of_line_is_read() {
    for stream in [
        format!("data: {DONE}\n\ndata: [DONE]\n\n"),
        format!("data: {DONE}\r\n\r\ndata: [DONE]\r\n\r\n"),
        format!("data: {DONE}\r\rdata: [DONE]\r\r"),
        format!("data:{DONE}\n\ndata:[DONE]\n\n"),
        format!("\u{feff}data: {DONE}\n\ndata: [DONE]\n\n"),
        format!("\u{feff}\n\n\ndata: {DONE}\n\n\n\ndata: [DONE] \n\n"),
        format!("event: x\nid: 1\nretry: 5\ndatabase: 1\n: note\ndata: {DONE}\n\ndata: [DONE]\n\ndata: {DONE}\n\n"),
        "data: {\"type\":\ndata:  \"done\"}\n\ndata\ndata: [DONE]\ndata\n\n".to_owned(),
    ] {
        assert_eq!(read(&stream), [DONE, "[DONE]"], "{stream:?}");
    }
}

#[test]
fn a_frame_that_does_not_read_costs_only_itself() {
    let stream = "data: {\"type\":\"unknown\"}\n\ndata: {\n\ndata\n\ndata: {\"type\":\"done\"}\n\ndata: [DONE]\n\n";
    assert_eq!(read(stream), ["malformed", "malformed", "malformed", DONE, "[DONE]"]);
    let rounded = r#"data: {"type":"transition","transitionTo":"w","payload":[18446744073709551616]}"#;
    let error = SseReader::new().push(format!("{rounded}\n\n").as_bytes()).remove(0).unwrap_err();
    assert!(matches!(error, SseError::Malformed(JsonError { path, .. }) if path == "/payload/0"));
    let mut invalid = b"data: \"\xff\"\n\n".to_vec();
    invalid.extend_from_slice(SseWriter::DONE);
    assert_eq!(read_in([invalid], 1000), ["malformed", "[DONE]"]);
}

#[test]
fn a_frame_over_the_limit_costs_only_itself() {
    let frame = format!("data: {DONE}");
    let long = format!("{frame}{}", " ".repeat(10));
    let stream = format!("{long}\n\n{frame}\n\n:{long}\n\ndata: 1\n{frame}\n\ndata: [DONE]\n\n");
    let events = read_in([stream.into_bytes()], frame.len());
    assert_eq!(events, ["too large", DONE, "too large", "too large", "[DONE]"]);
}

#[test]
fn a_reader_holds_no_more_than_its_limit() {
    let mut reader = SseReader::with_limit(1000);
    for _ in 0..1000 {
        assert!(reader.push(&[b'x'; 100]).is_empty());
        assert!(reader.push(b"\ndata: y\n").is_empty());
    }
    assert_eq!(read_in([b"data: x".to_vec()], 3), ["truncated"]);
    let held = format!("{reader:?}").len();
    assert!(held < 10_000, "{held}");
}

#[test]
fn a_stream_that_ends_early_says_so() {
    assert_eq!(read(""), ["truncated"]);
    assert_eq!(read(&format!("data: {DONE}\n\ndata: [DONE]")), [DONE, "truncated"]);
}

/// Bytes that are nearly a stream.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let whole = json_value().prop_map(|value| {
        SseWriter::chunk(&StreamChunk::Transition { transition_to: "w".into(), payload: value }).unwrap()
    });
    let part = prop::sample::select(vec![
        "data: ",
        "data",
        ":",
        " ",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "{\"type\":\"done\"}",
        "[DONE]",
        "\u{feff}",
        "é",
        "id: 1",
        "data: [DONE]\n\n",
    ]);
    let part = prop_oneof![
        2 => whole,
        8 => part.prop_map(|part| part.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_events(stream in stream(), cuts: Vec<prop::sample::Index>, limit in 0_usize..80) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| stream[cut[0]..cut[1]].to_vec());
        let whole = read_in([stream.clone()], limit);
        prop_assert_eq!(read_in(pieces, limit), whole.clone());
        prop_assert_eq!(read_in(stream.iter().map(|byte| vec![*byte]), limit), whole);
    }
}
