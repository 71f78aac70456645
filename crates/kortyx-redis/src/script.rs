//! The scripts: each is what it needs of the library, with its own part behind it. Those that a run passes through have its
//! ordinary case before all that.

use std::{collections::BTreeMap, sync::LazyLock};

use bytes::Bytes;

use crate::client::sha1;

/// A script and the digest that a server knows it by.
pub(crate) struct Script {
    pub(crate) source: String,
    pub(crate) sha: Bytes,
}

impl Script {
    fn new(source: String) -> Self {
        let sha = sha1(&source).into();
        Self { source, sha }
    }

    /// A script with as much of the library as it needs: to define a function takes its time with every call, which an
    /// ordinary case ends before.
    fn transition(ordinary: &'static str, own: &'static str) -> Self {
        let mut source: String = statements(RECORDS).collect();
        source.push_str(ordinary);
        source.extend(LIBRARY.iter().flat_map(|part| statements(part)));
        for (_, function) in needed(own) {
            source.push_str(function);
        }
        source.push_str(own);
        Self::new(source)
    }
}

/// How records are packed.
const RECORDS: &str = include_str!("scripts/library/records.lua");

/// The library: statements, and functions of its table `K`.
const LIBRARY: [&str; 8] = [
    include_str!("scripts/library/base.lua"),
    include_str!("scripts/library/session.lua"),
    include_str!("scripts/library/question.lua"),
    include_str!("scripts/library/run.lua"),
    include_str!("scripts/library/publish.lua"),
    include_str!("scripts/library/turns.lua"),
    include_str!("scripts/library/reopen.lua"),
    include_str!("scripts/library/reply.lua"),
];

const FUNCTION: &str = "\nfunction K.";
const END: &str = "\nend\n";

/// What stands between functions, without comments.
fn statements(part: &'static str) -> impl Iterator<Item = &'static str> {
    let between = part.split(FUNCTION).enumerate().map(|(place, text)| match (place, text.split_once(END)) {
        (0, _) => text,
        (_, Some((_, behind))) => behind,
        (_, None) => "",
    });
    between.flat_map(|text| text.split_inclusive('\n')).filter(|line| !line.starts_with("--") && *line != "\n")
}

/// Every function of the library by its name, with its text.
fn functions() -> BTreeMap<&'static str, &'static str> {
    let texts = LIBRARY.iter().flat_map(|part| {
        let starts = part.match_indices(FUNCTION).map(|(at, _)| at);
        starts.filter_map(|at| {
            let text = part.get(at..)?;
            let text = text.get(..text.find(END)? + END.len())?;
            let name = text.strip_prefix(FUNCTION)?;
            Some((name.get(..name.find('(')?)?, text))
        })
    });
    texts.collect()
}

/// The functions that a text calls, and those that they call.
fn needed(own: &'static str) -> BTreeMap<&'static str, &'static str> {
    let all = functions();
    let (mut found, mut texts) = (BTreeMap::new(), vec![own]);
    while let Some(text) = texts.pop() {
        for (name, function) in named_in(text).filter_map(|name| all.get_key_value(name)) {
            if found.insert(*name, *function).is_none() {
                texts.push(function);
            }
        }
    }
    found
}

/// Names that follow `K.`, and rows that are named by a letter.
fn named_in(text: &'static str) -> impl Iterator<Item = &'static str> {
    let called = text.split("K.").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    });
    let rows = ROWS.iter().filter(|(name, _)| text.contains(name)).map(|(_, row)| *row);
    called.chain(rows)
}

const ROWS: [(&str, &str); 6] = [
    (r"'\0a'", "row_a"),
    (r"'\0c'", "row_c"),
    (r"'\0k'", "row_k"),
    (r"'\0p'", "row_p"),
    (r"'\0q'", "row_q"),
    (r"'\0r'", "row_r"),
];

macro_rules! transitions {
    ($($name:ident $file:literal $($ordinary:literal)?),* $(,)?) => {
        $(pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::transition(
                concat!($(include_str!(concat!("scripts/", $ordinary)))?),
                include_str!(concat!("scripts/", $file)),
            )
        });)*
        #[cfg(test)]
        const TRANSITIONS: &[(&str, &LazyLock<Script>)] = &[$(($file, &$name)),*];
    };
}

transitions! {
    OPEN "open.lua",
    RECORD "record.lua",
    SUSPEND "suspend.lua" "ordinary/suspend.lua",
    FINISH "finish.lua" "ordinary/finish.lua",
    PARK "park.lua",
    RENEW "renew.lua",
    RELEASE "release.lua",
    ANSWER "answer.lua" "ordinary/answer.lua",
    CLAIM "claim.lua",
    EXPIRE "expire.lua",
    CANCEL "cancel.lua",
    APPEND "append.lua",
    ROLLBACK "rollback.lua",
    FORK "fork.lua",
    PRUNE_RUN "prune_run.lua",
    PRUNE_SESSION "prune_session.lua",
    READ "read.lua",
    PAGE "page.lua",
    REPAIR "repair.lua",
    HISTORY "history.lua",
    COUNT "count.lua",
}

/// Reads one question.
pub(crate) static QUESTION: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/question.lua").to_owned()));

/// Reads what a run said.
pub(crate) static CHUNKS: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/chunks.lua").to_owned()));

/// Reads an index.
pub(crate) static DUE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/due.lua").to_owned()));

/// Writes the version of the schema.
pub(crate) static SETUP: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/setup.lua").to_owned()));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_has_all_that_it_calls() {
        for (file, script) in TRANSITIONS {
            let source: &'static str = script.source.clone().leak();
            for name in named_in(source) {
                let is_there = [
                    format!("K.{name} ="),
                    format!("K.{name}, "),
                    format!(", K.{name} ="),
                    format!("function K.{name}("),
                ];
                assert!(is_there.iter().any(|defined| source.contains(defined)), "{file}: {name}");
            }
        }
    }

    #[test]
    fn a_script_has_nothing_that_it_does_not_call() {
        assert!(!RENEW.source.contains("function K.publish(") && !RENEW.source.contains("function K.say("));
        assert!(!ANSWER.source.contains("function K.append("));
        assert!(SUSPEND.source.contains("function K.publish(") && SUSPEND.source.contains("function K.append("));
    }
}
