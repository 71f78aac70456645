//! What a client finds wrong.

use std::fmt::Display;

/// What is wrong, for people.
pub(crate) type Broken = String;

/// Fails with this unless something holds.
pub(crate) fn holds(is_so: bool, why: impl FnOnce() -> String) -> Result<(), Broken> {
    if is_so { Ok(()) } else { Err(why()) }
}

/// Says what was being done when something failed.
pub(crate) trait Doing<T> {
    fn doing(self, what: &str) -> Result<T, Broken>;
}

impl<T, E: Display> Doing<T> for Result<T, E> {
    fn doing(self, what: &str) -> Result<T, Broken> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}

impl<T> Doing<T> for Option<T> {
    fn doing(self, what: &str) -> Result<T, Broken> {
        self.ok_or_else(|| format!("{what}: nothing is there"))
    }
}
