//! What differs between two checkpoints.

use std::{collections::BTreeSet, fmt::Write as _};

use kortyx_protocol::CheckpointId;
use kortyx_store::CheckpointRecord;
use serde::Serialize;
use serde_json::Value;

use crate::{
    error::CliError,
    report::{Report, Show},
    show::paint::{bad, bold, clean, dim, good, open},
};

/// How many differences are told: two states that have nothing in common are not worth more.
const MOST: usize = 1_000;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DiffView {
    before: CheckpointId,
    after: CheckpointId,
    /// The checkpoints belong to the same session.
    is_same_session: bool,
    changes: Vec<Change>,
    /// There are more than are told.
    is_cut: bool,
}

/// A place in the state where they differ.
#[derive(Debug, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Change {
    /// A JSON Pointer (RFC 6901) into what the checkpoint keeps.
    path: String,
    /// `added`, `removed` or `changed`.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Value>,
}

impl Show for DiffView {
    fn show(&self) -> String {
        let mut text = format!("{} → {}\n", bold(self.before.as_str()), bold(self.after.as_str()));
        if !self.is_same_session {
            let _ = writeln!(text, "{}", dim("of different sessions"));
        }
        for change in &self.changes {
            let sign = match change.kind {
                "added" => good("+"),
                "removed" => bad("-"),
                _ => open("~"),
            };
            let _ = writeln!(text, "{sign} {}", clean(&change.path));
            for (mark, value) in [("-", &change.before), ("+", &change.after)] {
                let Some(value) = value else { continue };
                for line in serde_json::to_string_pretty(value).unwrap_or_default().lines() {
                    let _ = writeln!(text, "    {} {}", dim(mark), clean(line));
                }
            }
        }
        if self.changes.is_empty() {
            let _ = writeln!(text, "{}", dim("the states are equal"));
        }
        if self.is_cut {
            let _ = writeln!(text, "{}", dim("and more"));
        }
        text
    }
}

/// Compares what two checkpoints keep.
pub(super) fn diff(before: &CheckpointRecord, after: &CheckpointRecord, content: bool) -> Result<Report, CliError> {
    let mut changes = Vec::new();
    compare(String::new(), Some(&state(before)?), Some(&state(after)?), &mut changes);
    let is_cut = changes.len() > MOST;
    changes.truncate(MOST);
    if !content {
        for change in &mut changes {
            (change.before, change.after) = (None, None);
        }
    }
    let view = DiffView {
        before: before.checkpoint.id.clone(),
        after: after.checkpoint.id.clone(),
        is_same_session: before.session_id == after.session_id,
        changes,
        is_cut,
    };
    Report::new("checkpoint-diff", &view)
}

fn state(record: &CheckpointRecord) -> Result<Value, CliError> {
    serde_json::from_slice(&record.checkpoint.state).map_err(|error| {
        let id = &record.checkpoint.id;
        CliError::refused("UNREADABLE", format!("the state of {id} is not JSON (encrypted, perhaps): {error}"))
    })
}

fn compare(path: String, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    if changes.len() > MOST || before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let part = key.replace('~', "~0").replace('/', "~1");
                compare(format!("{path}/{part}"), old.get(key), new.get(key), changes);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for at in 0..old.len().max(new.len()) {
                compare(format!("{path}/{at}"), old.get(at), new.get(at), changes);
            }
        }
        (before, after) => {
            let kind = match (before, after) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            };
            changes.push(Change { path, kind, before: before.cloned(), after: after.cloned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_named_by_their_place() {
        let before = json!({"v": 1, "data": {"a": 1, "gone": true, "list": [1, 2], "x/y": 0}});
        let after = json!({"v": 1, "data": {"a": 2, "list": [1, 3, 4], "x/y": {"~": 1}, "new": null}});
        let mut changes = Vec::new();
        compare(String::new(), Some(&before), Some(&after), &mut changes);
        let told: Vec<_> = changes.iter().map(|change| (change.path.as_str(), change.kind)).collect();
        let wanted = [
            ("/data/a", "changed"),
            ("/data/gone", "removed"),
            ("/data/list/1", "changed"),
            ("/data/list/2", "added"),
            ("/data/new", "added"),
            ("/data/x~1y", "changed"),
        ];
        assert_eq!(told, wanted);
        assert_eq!(changes[0].before, Some(json!(1)));
    }

    #[test]
    fn equal_states_differ_nowhere() {
        let mut changes = Vec::new();
        compare(String::new(), Some(&json!({"a": [1]})), Some(&json!({"a": [1]})), &mut changes);
        assert_eq!(changes, []);
    }
}
