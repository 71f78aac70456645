//! Text that is safe to print, styles and times.

use std::{borrow::Cow, fmt, time::Duration};

use anstyle::{AnsiColor, Style};
use kortyx_protocol::Timestamp;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const OPEN: Style = AnsiColor::Yellow.on_default();
const BUSY: Style = AnsiColor::Cyan.on_default();
const ASIDE: Style = AnsiColor::Magenta.on_default();

/// A styled text.
#[derive(Debug, Clone)]
pub(crate) struct Painted<'a>(pub(super) Style, pub(super) Cow<'a, str>);

impl fmt::Display for Painted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(style, text) = self;
        write!(f, "{style}{text}{style:#}")
    }
}

pub(crate) fn plain<'a>(text: impl Into<Cow<'a, str>>) -> Painted<'a> {
    Painted(Style::new(), text.into())
}

pub(crate) fn bold<'a>(text: impl Into<Cow<'a, str>>) -> Painted<'a> {
    Painted(BOLD, text.into())
}

pub(crate) fn dim<'a>(text: impl Into<Cow<'a, str>>) -> Painted<'a> {
    Painted(DIM, text.into())
}

pub(crate) fn good<'a>(text: impl Into<Cow<'a, str>>) -> Painted<'a> {
    Painted(GOOD, text.into())
}

pub(crate) fn bad<'a>(text: impl Into<Cow<'a, str>>) -> Painted<'a> {
    Painted(BAD, text.into())
}

pub(crate) fn open<'a>(text: impl Into<Cow<'a, str>>) -> Painted<'a> {
    Painted(OPEN, text.into())
}

/// The status of a run, a question or a call, in its colour.
pub(crate) fn status(name: &str) -> Painted<'_> {
    let style = match name {
        "completed" | "answered" | "done" => GOOD,
        "failed" | "expired" => BAD,
        "suspended" | "pending" | "waiting" => OPEN,
        "running" | "ready" => BUSY,
        "parked" => ASIDE,
        _ => DIM,
    };
    Painted(style, name.into())
}

/// Whether a character would move the cursor, change colours or turn the direction of writing.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A text of others, with every character escaped that would move the cursor, change colours or turn the direction of writing.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            c if is_unsafe(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe.into()
}

/// A duration in its two largest units: `2d 3h`, `14m 59s`, `3s`.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (size, unit) in units {
        if rest >= size {
            parts.push(format!("{}{unit}", rest / size));
            rest %= size;
        } else if !parts.is_empty() {
            break;
        }
        if parts.len() == 2 {
            break;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// How far a time is from now: `in 14m 59s`, `3s ago`.
pub(crate) fn relative(time: Timestamp, now: Timestamp) -> String {
    if time > now { format!("in {}", span(time.since(now))) } else { format!("{} ago", span(now.since(time))) }
}

/// A time, and how far it is from now.
pub(crate) fn when(time: Timestamp, now: Timestamp) -> String {
    format!("{time} ({})", relative(time, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_over_the_terminal_is_escaped() {
        assert_eq!(clean("a\u{1b}[2Jb\r\n"), "a\\u{1b}[2Jb\\u{d}\\n");
        assert_eq!(clean("\u{9b}31m\u{202e}x\u{200b}"), "\\u{9b}31m\\u{202e}x\\u{200b}");
        assert_eq!(clean("Grüße, 世界 👍"), "Grüße, 世界 👍");
    }

    #[test]
    fn a_duration_shows_its_two_largest_units() {
        let shown = |seconds| span(Duration::from_secs(seconds));
        assert_eq!([shown(0), shown(59), shown(60), shown(899)], ["0s", "59s", "1m", "14m 59s"]);
        assert_eq!([shown(3_600), shown(3_605), shown(183_600)], ["1h", "1h", "2d 3h"]);
    }

    #[test]
    fn a_time_says_whether_it_is_to_come() {
        let at = Timestamp::from_millis;
        assert_eq!(relative(at(5_000), at(2_000)), "in 3s");
        assert_eq!(relative(at(2_000), at(5_000)), "3s ago");
    }
}
