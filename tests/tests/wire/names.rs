//! Ids and tokens by the order in which they first appear, so that files do not change from run to run.

use std::collections::HashMap;

/// The prefixes of ids that are minted.
const PREFIXES: [&str; 4] = ["session", "run", "human", "cp"];
/// The length of a version 4 UUID, of a token, and of the id of a structured stream, which is hexadecimal.
const UUID: usize = 36;
const TOKEN: usize = 64;
const STREAM: usize = 32;

/// What is called what.
#[derive(Default)]
pub(crate) struct Names {
    /// What was minted, with its name, in order.
    known: Vec<(String, String)>,
    counts: HashMap<&'static str, usize>,
}

impl Names {
    /// The text with names in place of what was minted.
    pub(crate) fn hide(&mut self, text: &str) -> String {
        replace(text, |word| self.name(word))
    }

    /// The text with what was minted in place of names.
    pub(crate) fn reveal(&self, text: &str) -> String {
        let minted = |word: &str| self.known.iter().find(|(_, name)| name == word).map(|(minted, _)| minted.clone());
        replace(text, |word| minted(word).unwrap_or_else(|| word.to_owned()))
    }

    fn name(&mut self, word: &str) -> String {
        let Some(kind) = kind(word) else { return word.to_owned() };
        if let Some((_, name)) = self.known.iter().find(|(minted, _)| minted == word) {
            return name.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let name = format!("{kind}-{count}");
        self.known.push((word.to_owned(), name.clone()));
        name
    }
}

/// The text with each of its words replaced, whole and once: what was minted may begin like a name.
fn replace(text: &str, mut word: impl FnMut(&str) -> String) -> String {
    let (mut replaced, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(is_word) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|letter: char| !is_word(letter)).unwrap_or(from.len());
        let (found, after) = from.split_at(end);
        replaced.push_str(before);
        replaced.push_str(&word(found));
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-' || letter == '_'
}

/// What kind of id this is, if any that is minted.
fn kind(word: &str) -> Option<&'static str> {
    if word.len() == TOKEN && word.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some("token");
    }
    if word.len() == STREAM && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some("stream");
    }
    let is_uuid = |id: &str| {
        id.len() == UUID && id.bytes().enumerate().all(|(at, byte)| (byte == b'-') == [8, 13, 18, 23].contains(&at))
    };
    PREFIXES
        .into_iter()
        .find(|prefix| word.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_uuid))
}
