//! Sequences of structured-data chunks, one JSON object on each line: applied or refused without a trace.
#![no_main]

use kortyx_protocol::{StructuredChunk, StructuredData, json};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let mut state: Option<StructuredData> = None;
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(chunk) = json::from_slice::<StructuredChunk>(line) else { continue };
        let state = state.get_or_insert_with(|| StructuredData::new(chunk.stream_id.clone()));
        let before = state.clone();
        match state.apply(&chunk) {
            Err(_) => assert_eq!(*state, before),
            Ok(()) => {
                assert!(!before.is_final());
                let text = json::to_string(state.value().unwrap()).unwrap();
                assert_eq!(json::from_str::<Value>(&text).as_ref(), Ok(state.value().unwrap()));
            }
        }
    }
});
