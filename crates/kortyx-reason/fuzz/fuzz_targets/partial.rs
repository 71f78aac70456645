//! A text in pieces: the same changes and the same error as in one piece, and a client that applies them has the declared fields.
#![no_main]

#[path = "../../tests/partial/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check::fuzzed(data));
