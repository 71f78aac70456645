//! Structured streams: changes, then `final` or the word that they no longer count.

use kortyx_contracts::{OutputContract, OutputError};
use kortyx_protocol::{StreamChunk, StructuredStreams};
use kortyx_reason::partial::{Field, Fields, Finished, PartialJson, Rejected, StructuredOutput, Wrapping};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Card {
    title: String,
    tags: Vec<String>,
}

const CARD: OutputContract<Card> =
    OutputContract::new("card").description("A card").schema_id("acme.card").version("2");

fn output(fields: impl IntoIterator<Item = Field>) -> StructuredOutput {
    let schema = CARD.schema().unwrap().to_value().unwrap();
    let json = PartialJson::new(Fields::new(fields).unwrap(), Wrapping::for_schema(&schema));
    StructuredOutput::new("stream-1", "card", json).node("write").id("draft").schema("acme.card", "2")
}

fn declared() -> [Field; 2] {
    [Field::text_delta("title"), Field::append("tags")]
}

fn written(chunks: &[StreamChunk]) -> Vec<Value> {
    chunks.iter().map(|chunk| serde_json::to_value(chunk).unwrap()).collect()
}

/// A client that follows an output to its end.
fn followed(mut output: StructuredOutput, text: &str) -> (StructuredStreams, Result<Card, Rejected<OutputError>>) {
    let mut client = StructuredStreams::default();
    let mut chunks: Vec<StreamChunk> = text.as_bytes().chunks(5).flat_map(|piece| output.push(piece)).collect();
    let finished = output.finish(|data| CARD.decode(data));
    chunks.extend(finished.chunks);
    for chunk in &chunks {
        client.apply(chunk).unwrap();
    }
    (client, finished.outcome)
}

#[test]
fn a_stream_is_told_as_the_protocol_writes_it() {
    let mut output = output(declared());
    let mut chunks = output.push(b"Here: {\"title\":\"T");
    chunks.extend(output.push(b"ea\",\"tags\":[\"hot\"]}"));
    chunks.extend(output.finish(|data| CARD.decode(data)).chunks);

    let head = |kind: &str, rest: Value| {
        let mut chunk = json!({
            "type": "structured-data", "streamId": "stream-1", "dataType": "card", "kind": kind, "node": "write",
            "schemaId": "acme.card", "schemaVersion": "2", "id": "draft",
        });
        chunk.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        chunk
    };
    let expected = [
        head("text-delta", json!({"path": "title", "delta": "T"})),
        head("text-delta", json!({"path": "title", "delta": "ea"})),
        head("append", json!({"path": "tags", "items": ["hot"]})),
        head("final", json!({"data": {"title": "Tea", "tags": ["hot"]}})),
    ];
    assert_eq!(written(&chunks), expected);
}

#[test]
fn an_accepted_document_ends_its_stream() {
    let text = r#"{"title":"Tea","tags":["hot"],"more":1}"#;
    let (client, outcome) = followed(output(declared()), text);
    assert_eq!(outcome.unwrap(), Card { title: "Tea".to_owned(), tags: vec!["hot".to_owned()] });
    let stream = client.get("stream-1").unwrap();
    assert!(stream.is_final());
    assert_eq!(stream.value(), Some(&json!({"title": "Tea", "tags": ["hot"], "more": 1})));
}

#[test]
fn a_document_without_declared_fields_is_told_at_its_end() {
    let mut output = output([]);
    assert!(output.push(br#"{"title":"Tea","tags":[]}"#).is_empty());
    assert_eq!(output.finish(|data| CARD.decode(data)).chunks.len(), 1);
}

#[test]
fn a_refused_document_no_longer_counts() {
    let (client, outcome) = followed(output(declared()), r#"{"title":"Tea","tags":"hot"}"#);
    let Err(Rejected::Refused(OutputError::Invalid { issues, .. })) = outcome else { panic!("{outcome:?}") };
    assert_eq!(issues[0].path, "/tags");
    assert!(client.get("stream-1").is_none());
}

#[test]
fn a_document_that_breaks_no_longer_counts_at_once() {
    let mut output = output(declared());
    let chunks = output.push(b"{\"title\":\"Te\na\"");
    let invalidated = json!({"type": "structured-data-invalidated", "streamId": "stream-1"});
    assert_eq!(chunks.len(), 2);
    assert_eq!(written(&chunks)[1], invalidated);
    assert_eq!(output.error().unwrap().path, "/title");
    assert!(output.push(b"}").is_empty());
    let Finished { chunks, outcome } = output.finish(|data| CARD.decode(data));
    assert!(chunks.is_empty(), "it is told once");
    assert!(matches!(outcome, Err(Rejected::Json(error)) if error.path == "/title"));
}

#[test]
fn a_document_that_ends_early_no_longer_counts() {
    let (client, outcome) = followed(output(declared()), r#"{"title":"Tea","#);
    assert!(matches!(outcome, Err(Rejected::Json(error)) if error.is_cut_off()));
    assert!(client.get("stream-1").is_none());
}

#[test]
fn a_stream_of_which_nothing_was_told_needs_no_end() {
    for text in ["I cannot.", "{\"tags\":", "{\"tags\":{}x", "{}"] {
        let mut output = output([Field::text_delta("title")]);
        assert!(output.push(text.as_bytes()).is_empty());
        let finished = output.finish(|data| CARD.decode(data));
        assert!(finished.chunks.is_empty() && finished.outcome.is_err(), "{text}");
    }
}

#[test]
fn a_document_that_is_given_up_no_longer_counts() {
    let mut told = output(declared());
    assert_eq!(told.push(b"{\"title\":\"Te").len(), 1);
    assert!(matches!(told.abandon(), Some(StreamChunk::StructuredDataInvalidated { .. })));
    assert!(output(declared()).abandon().is_none());
    let mut broken = output(declared());
    assert_eq!(broken.push(b"{\"title\":\"Te\x01").len(), 2);
    assert!(broken.abandon().is_none(), "it was told before");
}
