//! Lines for the person or the log that watches.

use std::error::Error;
use std::fmt::Display;
use std::io::Write as _;
use std::iter;

/// Prints a line. A reader that went away is no reason to stop.
pub(crate) fn say(line: impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Prints an error with its causes to standard error.
pub(crate) fn complain(error: &(dyn Error + 'static)) {
    let _ = writeln!(std::io::stderr().lock(), "error: {}", describe(error));
}

/// An error and its causes in one line.
pub(crate) fn describe(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
