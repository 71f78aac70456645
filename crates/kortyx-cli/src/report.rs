//! What a command has to say: for people, and for programs.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
};

use serde::Serialize;

use crate::{
    error::{CliError, Exit},
    show::paint::is_unsafe,
};

/// The version of the JSON that is printed. It grows when a field goes or changes its meaning; fields may be added within one.
pub(crate) const VERSION: u32 = 1;

/// A view that people can read too.
pub(crate) trait Show: Serialize {
    /// What people read, with styles; every line ends with a line feed.
    fn show(&self) -> String;
}

/// What a command has to say.
#[derive(Debug)]
pub(crate) struct Report {
    json: String,
    text: String,
    pub(crate) exit: Exit,
}

#[derive(Serialize)]
struct Envelope<'a, T> {
    v: u32,
    kind: &'static str,
    data: &'a T,
}

/// One line of JSON. What would take over a terminal is escaped in it too: outside of strings JSON has none of it.
pub(crate) fn line(value: &impl Serialize) -> serde_json::Result<String> {
    let json = serde_json::to_string(value)?;
    if !json.contains(is_unsafe) {
        return Ok(json);
    }
    let mut safe = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        if is_unsafe(c) {
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    Ok(safe)
}

/// Prints a line on standard error. A reader that went away is no reason to stop.
pub(crate) fn complain(line: &str) {
    drop(writeln!(anstream::stderr().lock(), "{line}"));
}

impl Report {
    pub(crate) fn new<T: Show>(kind: &'static str, view: &T) -> Result<Self, CliError> {
        let json = line(&Envelope { v: VERSION, kind, data: view });
        let json = json.map_err(|error| CliError::File(format!("the result is not JSON: {error}")))?;
        Ok(Self { json, text: view.show(), exit: Exit::Done })
    }

    pub(crate) fn ending(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Whether both say the same to a program: times that people read as "3 s ago" do not count.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.json == other.json
    }

    /// Prints it. An error means that the reader went away.
    pub(crate) fn print(&self, json: bool) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        let written = if json { writeln!(out, "{}", self.json) } else { out.write_all(self.text.as_bytes()) };
        written.and_then(|()| out.flush())
    }

    /// Prints it in place of what the terminal shows.
    pub(crate) fn repaint(&self) -> io::Result<()> {
        if io::stdout().is_terminal() {
            io::stdout().lock().write_all(b"\x1b[2J\x1b[H")?;
        }
        self.print(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_take_over_the_terminal_and_says_the_same() {
        let text = "\u{9b}31m\u{7f}\u{202e}x\u{1b}[2J Gr\u{fc}\u{df}e";

        let line = line(&text).unwrap();

        assert!(!line.contains(is_unsafe), "{line:?}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
