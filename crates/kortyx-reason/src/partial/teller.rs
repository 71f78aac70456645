//! Tells the changes of declared fields.

use std::ops::Range;

use kortyx_protocol::{StructuredChange, json};
use serde_json::{Map, Value};

use super::{
    Fields, Problem,
    error::Fault,
    field::{Mode, NodeId},
    frame::{Frame, Kind, Role, declared_path},
};

/// Knows what is declared, and tells it.
#[derive(Debug)]
pub(super) struct Teller {
    fields: Fields,
    /// What the current text says and was not told yet.
    delta: String,
    /// Whether something of the current text was told.
    is_delta_told: bool,
}

/// A value that is complete.
pub(super) struct Complete {
    pub(super) role: Role,
    pub(super) range: Range<usize>,
    /// `None` for a scalar.
    pub(super) kind: Option<Kind>,
    pub(super) is_empty: bool,
}

impl Teller {
    pub(super) fn new(fields: Fields) -> Self {
        Self { fields, delta: String::new(), is_delta_told: false }
    }

    /// What is to be told of the value in this frame that begins with this byte.
    pub(super) fn role(&self, frame: Option<&Frame>, first: u8) -> Role {
        let node = match frame {
            None => Fields::ROOT,
            Some(Frame { role: Role::Items, .. }) => return Role::Item,
            Some(Frame { declared: Some(node), .. }) => *node,
            Some(_) => return Role::Silent,
        };
        match (self.fields.mode(node), first) {
            (Some(Mode::TextDelta), b'"') => Role::Text,
            (Some(Mode::Append), b'[') => Role::Items,
            (Some(_), _) => Role::Whole,
            (None, b'{') if self.fields.has_keys(node) => Role::Inside(node),
            (None, b'[') if self.fields.items(node).is_some() => Role::Inside(node),
            _ => Role::Silent,
        }
    }

    /// What is declared for every item of an array in this role.
    pub(super) fn declared_items(&self, kind: Kind, role: Role) -> Option<NodeId> {
        match (kind, role) {
            (Kind::Array, Role::Inside(node)) => self.fields.items(node),
            _ => None,
        }
    }

    /// Notes the key of the value that follows in an object.
    pub(super) fn note_key(&self, frame: &mut Frame, key: &str) -> Result<(), Problem> {
        let Role::Inside(object) = frame.role else { return Ok(()) };
        let found = self.fields.key(object, key);
        frame.declared = found.map(|(node, _)| node);
        let bit = found.map_or(0, |(_, number)| 1 << number);
        if frame.seen & bit != 0 {
            frame.is_within = true;
            return Err(Problem::Twice);
        }
        frame.seen |= bit;
        Ok(())
    }

    /// Where the content of a string goes, if it is to be told.
    pub(super) fn content(&mut self, role: Role) -> Option<&mut String> {
        (role == Role::Text).then_some(&mut self.delta)
    }

    /// Tells what is certain of a text that goes on.
    pub(super) fn tell_rest(&mut self, frames: &mut [Frame], changes: &mut Vec<StructuredChange>) {
        if !self.delta.is_empty() {
            self.tell_delta(frames, changes);
            self.is_delta_told = true;
        }
    }

    /// Tells what is to be told of a value that is complete. `frames` are those around it.
    pub(super) fn complete(
        &mut self,
        value: &Complete,
        frames: &mut [Frame],
        text: &str,
        changes: &mut Vec<StructuredChange>,
    ) -> Result<(), Fault> {
        match value.role {
            Role::Whole => {
                let whole = value.read(text)?;
                tell(StructuredChange::Set { path: self.path(frames), value: whole }, frames, changes);
            }
            Role::Item => {
                let (path, items) = (self.path_of_items(frames), vec![value.read(text)?]);
                tell(StructuredChange::Append { path, items }, frames, changes);
            }
            Role::Text => {
                if !self.is_delta_told || !self.delta.is_empty() {
                    self.tell_delta(frames, changes);
                }
                self.is_delta_told = false;
            }
            // The root has no path; a client that was told nothing of it has nothing.
            Role::Items | Role::Inside(_) if value.is_empty_array() && !frames.is_empty() => {
                tell(StructuredChange::Append { path: self.path(frames), items: Vec::new() }, frames, changes);
            }
            _ => {}
        }
        if frames.last().is_some_and(|frame| frame.counts_items() && !frame.is_told) {
            tell(StructuredChange::Set { path: self.path(frames), value: value.placeholder() }, frames, changes);
        }
        if let Some(frame) = frames.last_mut() {
            frame.is_within = false;
            frame.is_told = false;
        }
        Ok(())
    }

    fn tell_delta(&mut self, frames: &mut [Frame], changes: &mut Vec<StructuredChange>) {
        let delta = std::mem::take(&mut self.delta);
        tell(StructuredChange::TextDelta { path: self.path(frames), delta }, frames, changes);
    }

    fn path(&self, frames: &[Frame]) -> String {
        declared_path(frames, &self.fields)
    }

    /// The path of the array that the current item is in.
    fn path_of_items(&self, frames: &[Frame]) -> String {
        self.path(frames.split_last().map_or(&[], |(_, outer)| outer))
    }
}

impl Complete {
    pub(super) fn scalar(role: Role, range: Range<usize>) -> Self {
        Self { role, range, kind: None, is_empty: false }
    }

    fn is_empty_array(&self) -> bool {
        self.is_empty && self.kind == Some(Kind::Array)
    }

    /// What is told of an item of which nothing is declared.
    fn placeholder(&self) -> Value {
        match self.kind {
            None => Value::Null,
            Some(Kind::Array) => Value::Array(Vec::new()),
            Some(Kind::Object) => Value::Object(Map::new()),
        }
    }

    fn read(&self, text: &str) -> Result<Value, Fault> {
        json::from_str(text.get(self.range.clone()).unwrap_or_default())
            .map_err(|error| Problem::Other { reason: error.to_string() }.at(self.range.start))
    }
}

fn tell(change: StructuredChange, frames: &mut [Frame], changes: &mut Vec<StructuredChange>) {
    for frame in frames {
        frame.is_told = true;
    }
    changes.push(change);
}
