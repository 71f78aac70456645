//! Tests of the engine against a storage that can be crashed.

mod support;
mod suspension;
