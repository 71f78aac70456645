//! Programs that the compiler must refuse: see `tests/refused.rs`.
//!
//! They share a package that depends on little more than what they are about, because all of its dependencies are checked once more to
//! try them.
