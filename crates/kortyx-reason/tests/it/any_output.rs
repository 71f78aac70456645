//! Whatever a model emits, and however its text is split: a client that adds up what it is told has the validated value.

use std::collections::BTreeMap;

use kortyx_contracts::OutputContract;
use kortyx_orchestrator::ChatOptions;
use kortyx_protocol::{ChatMessage, StreamChunk, StructuredChange, StructuredStreams};
use kortyx_reason::{Outputs, Script, ScriptedModel, partial::Field};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    deliveries::seeing,
    world::{agent, with},
};

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "its schema counts")]
struct Anything {
    text: String,
    list: Vec<Value>,
    map: BTreeMap<String, Value>,
    rows: Vec<Row>,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "its schema counts")]
struct Row {
    text: String,
    tags: Vec<i64>,
}

const ANYTHING: OutputContract<Anything> =
    OutputContract::new("anything").description("Anything").schema_id("acme.anything").version("1");

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,8}|[\"\\\\/\u{8}\n\u{1}é😀]{0,6}"
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}

fn anything() -> impl Strategy<Value = Value> {
    let row = (text(), prop::collection::vec(any::<i64>(), 0..3));
    let row = row.prop_map(|(text, tags)| json!({"text": text, "tags": tags}));
    let list = prop::collection::vec(any_value(), 0..4);
    let map = prop::collection::btree_map(text(), any_value(), 0..4);
    (text(), list, map, prop::collection::vec(row, 0..4))
        .prop_map(|(text, list, map, rows)| json!({"text": text, "list": list, "map": map, "rows": rows}))
}

/// What a client has before `final` and after it, stream by stream.
fn reduced(chunks: &[StreamChunk]) -> (Vec<Value>, Vec<Value>) {
    let values = |streams: &StructuredStreams| streams.iter().filter_map(|stream| stream.value().cloned()).collect();
    let is_final = |chunk: &&StreamChunk| matches!(chunk, StreamChunk::StructuredData(chunk) if matches!(chunk.change, StructuredChange::Final { .. }));
    let mut client = StructuredStreams::default();
    chunks.iter().filter(|chunk| !is_final(chunk)).for_each(|chunk| client.apply(chunk).unwrap());
    let before = values(&client);
    chunks.iter().filter(is_final).for_each(|chunk| client.apply(chunk).unwrap());
    assert!(client.iter().all(kortyx_protocol::StructuredData::is_final));
    (before, values(&client))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_client_has_what_the_node_gets(emitted in prop::collection::vec(anything(), 1..4), piece in 1..12_usize) {
        let calls = emitted.iter().fold(Script::new(), |script, value| script.call("kortyx_emit__anything", value.clone()));
        let model = ScriptedModel::new([calls.split(piece), Script::new().text("Done.")]);
        let (workflow, seen) = seeing(move || {
            let fields = [
                Field::text_delta("text"),
                Field::append("list"),
                Field::set("map"),
                Field::text_delta("rows.*.text"),
                Field::append("rows.*.tags"),
            ];
            with(&model).outputs(Outputs::new().emit(&ANYTHING).fields(fields))
        });
        let chunks = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            agent(&workflow).await.stream_chat(vec![ChatMessage::user("Go.")], ChatOptions::new()).collect().await
        });
        let done = seen.lock().unwrap().pop().unwrap();
        let got: Vec<Value> = done.emissions.all().iter().map(|emission| emission.data.clone()).collect();
        prop_assert_eq!(&got, &emitted);
        let (before, after) = reduced(&chunks);
        prop_assert_eq!(before, emitted.clone());
        prop_assert_eq!(after, emitted);
    }
}
