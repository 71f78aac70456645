//! Paths into structured data.

use serde_json::{Map, Value};

use super::{MAX_DEPTH, ReduceError};

/// One step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment<'a> {
    /// Into an object.
    Key(&'a str),
    /// Into an array.
    Index(usize),
}

/// The steps of a path: at least one, fewer than [`MAX_DEPTH`].
pub(super) fn segments(path: &str) -> Result<Vec<Segment<'_>>, ReduceError> {
    if path.is_empty() {
        return Err(ReduceError::EmptyPath);
    }
    let segments: Option<Vec<_>> = path.split('.').take(MAX_DEPTH).map(segment).collect();
    segments.filter(|segments| segments.len() < MAX_DEPTH).ok_or_else(|| ReduceError::malformed(path))
}

fn segment(text: &str) -> Option<Segment<'_>> {
    if text.is_empty() {
        return None;
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Segment::Key(text));
    }
    let plain = text == "0" || !text.starts_with('0');
    // A number too large for an index is beyond the end of every array.
    plain.then(|| Segment::Index(text.parse().unwrap_or(usize::MAX)))
}

/// Where a path leads.
pub(super) enum Slot<'a> {
    /// To something.
    Taken(&'a mut Value),
    /// To nothing yet.
    Free(Free<'a>),
}

/// A place where nothing is yet: the last container on the way, and the steps that it lacks.
pub(super) struct Free<'a> {
    container: Container<'a>,
    missing: &'a [Segment<'a>],
}

enum Container<'a> {
    Root(&'a mut Option<Value>),
    Object(&'a mut Map<String, Value>, &'a str),
    Array(&'a mut Vec<Value>),
}

impl Free<'_> {
    /// Puts a value there and makes the containers that are missing.
    pub(super) fn fill(self, value: Value) {
        let value = self.missing.iter().rev().fold(value, |inner, segment| match segment {
            Segment::Key(key) => Value::Object(Map::from_iter([((*key).to_owned(), inner)])),
            Segment::Index(_) => Value::Array(vec![inner]),
        });
        match self.container {
            Container::Root(root) => *root = Some(value),
            Container::Object(fields, key) => drop(fields.insert(key.to_owned(), value)),
            Container::Array(items) => items.push(value),
        }
    }
}

/// Follows a path. Changes nothing; every step that is missing can be made.
pub(super) fn locate<'a>(
    root: &'a mut Option<Value>,
    path: &str,
    segments: &'a [Segment<'a>],
) -> Result<Slot<'a>, ReduceError> {
    if root.is_none() {
        return free(Container::Root(root), path, segments);
    }
    let Some(mut current) = root.as_mut() else { return Err(ReduceError::EmptyPath) };
    let mut rest = segments;
    while let Some((segment, after)) = rest.split_first() {
        let depth = segments.len() - rest.len();
        current = match (current, *segment) {
            (Value::Object(fields), Segment::Key(key)) => {
                if !fields.contains_key(key) {
                    return free(Container::Object(fields, key), path, after);
                }
                fields.get_mut(key).ok_or_else(|| ReduceError::malformed(path))?
            }
            (Value::Array(items), Segment::Index(index)) => {
                let length = items.len();
                if index == length {
                    return free(Container::Array(items), path, after);
                }
                items.get_mut(index).ok_or_else(|| ReduceError::gap(path, length))?
            }
            (found, Segment::Key(_)) => return Err(ReduceError::conflict(path, depth, "object", name(found))),
            (found, Segment::Index(_)) => return Err(ReduceError::conflict(path, depth, "array", name(found))),
        };
        rest = after;
    }
    Ok(Slot::Taken(current))
}

/// A free place, unless a missing array would begin with a gap.
fn free<'a>(container: Container<'a>, path: &str, missing: &'a [Segment<'a>]) -> Result<Slot<'a>, ReduceError> {
    if missing.iter().any(|segment| matches!(segment, Segment::Index(1..))) {
        return Err(ReduceError::gap(path, 0));
    }
    Ok(Slot::Free(Free { container, missing }))
}

fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
