//! Bytes of an event stream: the same events on any split, and what is read can be written.
#![no_main]

use kortyx_protocol::{SseError, SseEvent, SseReader, SseWriter, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[limit, piece], stream)) = data.split_first_chunk::<2>() else { return };
    let limit = if limit == 0 { usize::MAX } else { usize::from(limit) };
    let whole = read([stream], limit);
    assert_eq!(read(stream.chunks(usize::from(piece).max(1)), limit), whole);
    assert_eq!(read(stream.chunks(1), limit), whole);
});

/// What a reader made of the pieces, comparable.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Vec<String> {
    let mut reader = SseReader::with_limit(limit);
    let events: Vec<_> = pieces.into_iter().flat_map(|piece| reader.push(piece)).map(show).collect();
    assert_eq!(reader.is_done(), events.last().is_some_and(|event| event == "done"));
    assert_eq!(reader.is_done(), reader.finish().is_ok());
    events
}

fn show(event: Result<SseEvent, SseError>) -> String {
    match event {
        Ok(SseEvent::Chunk(chunk)) => {
            let frame = SseWriter::chunk(&chunk).unwrap();
            let again = SseReader::new().push(&frame).remove(0).unwrap();
            let SseEvent::Chunk(again) = again else { panic!("{again:?}") };
            let text = json::to_string(&chunk).unwrap();
            assert_eq!(json::to_string(&again).unwrap(), text);
            text
        }
        Ok(SseEvent::Done) => "done".to_owned(),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{error:?}"),
    }
}
