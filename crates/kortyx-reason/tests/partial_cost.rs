//! What reading costs: no more than in proportion to the text, however it is split.
//!
//! A test program of its own, since it counts allocations of the whole process; and one test, since others would be counted too.

#![expect(clippy::unwrap_used, reason = "what fails in a test panics")]

use std::alloc::System;

use kortyx_protocol::StructuredChange;
use kortyx_reason::partial::{Field, Fields, PartialJson, Wrapping};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MEGABYTE: usize = 1 << 20;

/// How often reading a text allocates, how many bytes, and how many changes it gives.
fn cost(fields: &Fields, text: &str, piece: usize) -> (usize, usize, usize) {
    let region = Region::new(ALLOCATOR);
    let mut json = PartialJson::new(fields.clone(), Wrapping::AroundObject);
    let (mut changes, mut count) = (Vec::<StructuredChange>::new(), 0);
    for piece in text.as_bytes().chunks(piece) {
        json.push(piece, &mut changes).unwrap();
        count += changes.len();
        changes.clear();
    }
    json.finish().unwrap();
    let stats = region.change();
    (stats.allocations, stats.bytes_allocated + usize::try_from(stats.bytes_reallocated.max(0)).unwrap(), count)
}

/// An object of about a length: a head, a part again and again, a tail.
fn text(head: &str, part: &str, tail: &str, bytes: usize) -> String {
    format!("{head}{}{tail}", part.repeat(bytes / part.len()))
}

#[test]
fn reading_allocates_in_proportion_to_the_text() {
    let fields = |fields: &[Field]| Fields::new(fields.to_vec()).unwrap();
    let none = fields(&[]);
    let told = fields(&[Field::text_delta("t"), Field::text_delta("i.*.t"), Field::append("n"), Field::set("s")]);
    for (name, head, part, tail) in [
        ("one text", "{\"t\":\"", "word \\u00e9 ", "\"}"),
        ("items with texts", "{\"i\":[{}", ",{\"t\":\"some words\",\"x\":[1,{\"y\":null}]}", "]}"),
        ("many small items", "{\"n\":[0", ",1", "]}"),
        ("one large value", "{\"s\":[0", ",{\"a\":[true,\"x\"]}", "]}"),
        ("nothing declared", "{\"x\":[0", ",[{\"a\":1.5},\"x\"]", "]}"),
        ("prose", "Of {x} { ", "{ name } and { ", "I say: {\"t\":\"x\"}"),
        ("prose behind", "{\"t\":\"x\"}", " { x", " ."),
    ] {
        for (bytes, piece) in [(MEGABYTE / 8, 1), (MEGABYTE, 100), (MEGABYTE, MEGABYTE)] {
            let (whole, half) = (text(head, part, tail, bytes), text(head, part, tail, bytes / 2));
            let (large, small) = (cost(&told, &whole, piece), cost(&told, &half, piece));
            let (_, allocated, changes) = large;
            assert!(large.0 <= 2 * small.0 + 64, "{name} by {piece}: {large:?} against {small:?}");
            assert!(allocated <= 64 * whole.len() + 512 * changes, "{name} by {piece}: {large:?} of {}", whole.len());
        }
        let (allocations, _, _) = cost(&none, &text(head, part, tail, MEGABYTE), 4096);
        assert!(allocations < 64, "{name}: {allocations} allocations where nothing is declared");
    }
}
