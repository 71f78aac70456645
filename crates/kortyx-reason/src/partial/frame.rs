//! The arrays and objects that a reader is in.

use std::ops::Range;

use super::field::{Fields, NodeId};

/// What is to be told of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing.
    Silent,
    /// All of it, when it is complete.
    Whole,
    /// A string, piece by piece.
    Text,
    /// An array, item by item.
    Items,
    /// An item of such an array.
    Item,
    /// Something of what it contains.
    Inside(NodeId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
}

/// An array or object that has begun.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) role: Role,
    /// Where its text begins.
    pub(super) start: usize,
    /// The key of the current value, with its quotes.
    pub(super) key: Range<usize>,
    /// The number of the current item.
    pub(super) index: usize,
    /// What is declared for the current value.
    pub(super) declared: Option<NodeId>,
    /// Which declared keys came, one bit each.
    pub(super) seen: u64,
    /// Whether the reader is in the current value, rather than before or behind it.
    pub(super) is_within: bool,
    /// Whether something of the current item was told.
    pub(super) is_told: bool,
}

impl Frame {
    pub(super) fn new(kind: Kind, role: Role, start: usize, declared: Option<NodeId>) -> Self {
        Self { kind, role, start, key: 0..0, index: 0, declared, seen: 0, is_within: false, is_told: false }
    }

    /// Whether its items have to be told one after the other, so that each has its place.
    pub(super) fn counts_items(&self) -> bool {
        self.kind == Kind::Array && matches!(self.role, Role::Inside(_))
    }
}

/// The path of the current value, as it is declared, with numbers for `*`.
pub(super) fn declared_path(frames: &[Frame], fields: &Fields) -> String {
    let mut path = String::new();
    for frame in frames {
        if !path.is_empty() {
            path.push('.');
        }
        match (frame.kind, frame.declared) {
            (Kind::Array, _) => path.push_str(&frame.index.to_string()),
            (Kind::Object, declared) => path.push_str(declared.map_or("", |id| fields.name(id))),
        }
    }
    path
}

/// The JSON pointer of the current value, declared or not.
pub(super) fn pointer(frames: &[Frame], text: &str) -> String {
    let mut path = String::new();
    for frame in frames.iter().filter(|frame| frame.is_within) {
        path.push('/');
        match frame.kind {
            Kind::Array => path.push_str(&frame.index.to_string()),
            Kind::Object => {
                let key: Option<String> =
                    text.get(frame.key.clone()).and_then(|written| serde_json::from_str(written).ok());
                path.push_str(&key.unwrap_or_default().replace('~', "~0").replace('/', "~1"));
            }
        }
    }
    path
}
