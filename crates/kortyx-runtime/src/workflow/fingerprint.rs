//! The fingerprint of a definition: a hash of everything that decides how a paused run goes on.

use std::fmt::Write;

use kortyx_protocol::{JsonError, json};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Edge, When};

/// The version of the hashed form. A change of the form parks paused runs, so it comes with a new number on purpose.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Form<'a> {
    format: u32,
    id: &'a str,
    version: &'a str,
    start: &'a str,
    nodes: Vec<&'a str>,
    edges: Vec<EdgeForm<'a>>,
}

#[derive(Serialize)]
struct EdgeForm<'a> {
    from: &'a str,
    to: &'a str,
    /// `["always"]`, `["condition", "<condition>"]` or `["otherwise"]`.
    when: Vec<&'a str>,
}

/// The SHA-256 (64 lower-case hex digits) of the canonical JSON of id, version, start, node names and edges.
///
/// The order of `nodes` does not matter, `edges` come in the order of their numbers.
pub(super) fn fingerprint<'a>(
    (id, version, start): (&'a str, &'a str, &'a str),
    nodes: impl Iterator<Item = &'a str>,
    edges: &'a [Edge],
) -> Result<String, JsonError> {
    let mut nodes: Vec<&str> = nodes.collect();
    nodes.sort_unstable();
    let edges = edges.iter().map(EdgeForm::of).collect();
    let text = json::canonical(&Form { format: FORMAT, id, version, start, nodes, edges })?;
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text) {
        // Writing to a `String` cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex)
}

impl<'a> EdgeForm<'a> {
    fn of(edge: &'a Edge) -> Self {
        let when = match &edge.when {
            When::Always => vec!["always"],
            When::Condition(condition) => vec!["condition", condition],
            When::Otherwise => vec!["otherwise"],
        };
        Self { from: &edge.from, to: edge.to.as_str(), when }
    }
}
