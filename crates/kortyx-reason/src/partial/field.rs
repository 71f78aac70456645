//! Declared fields: what of a document is told while it grows.

use std::sync::Arc;

/// The most fields of one document.
const MAX_FIELDS: usize = 64;

/// The most segments of a path.
const MAX_SEGMENTS: usize = 32;

/// A field that is told while its document grows.
///
/// Paths are dot-separated; `*` stands for every item of an array: `title`, `author.name`, `items.*.text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    path: String,
    mode: Mode,
}

/// How a field is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Set,
    TextDelta,
    Append,
}

impl Field {
    /// A field that is told when it is complete.
    pub fn set(path: impl Into<String>) -> Self {
        Self { path: path.into(), mode: Mode::Set }
    }

    /// A string that is told piece by piece.
    pub fn text_delta(path: impl Into<String>) -> Self {
        Self { path: path.into(), mode: Mode::TextDelta }
    }

    /// An array that is told item by item.
    pub fn append(path: impl Into<String>) -> Self {
        Self { path: path.into(), mode: Mode::Append }
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    fn check(&self) -> Result<(), FieldError> {
        let path = || self.path.clone();
        if self.path.split('.').any(str::is_empty) {
            return Err(FieldError::Malformed { path: path() });
        }
        if self.path.split('.').any(|segment| segment.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(FieldError::Index { path: path() });
        }
        if self.path.split('.').count() > MAX_SEGMENTS {
            return Err(FieldError::TooLong { path: path() });
        }
        Ok(())
    }

    /// Whether it is the other, or lies within it.
    fn is_within(&self, other: &Self) -> bool {
        self.path.strip_prefix(&other.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// Why fields cannot be declared. Every variant is a mistake in the code that declares.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// A path that is empty, or has an empty segment.
    #[error("field path `{path}` has an empty segment")]
    Malformed {
        /// The path.
        path: String,
    },
    /// A number in a path: items are told in order, so one of them cannot be told alone.
    #[error("field path `{path}` has an index: write `*` for every item")]
    Index {
        /// The path.
        path: String,
    },
    /// A path of too many segments.
    #[error("field path `{path}` has more than {MAX_SEGMENTS} segments")]
    TooLong {
        /// The path.
        path: String,
    },
    /// Two fields of which one contains the other: what they share would be told twice.
    #[error("field `{path}` lies within field `{other}`")]
    Overlap {
        /// The inner one.
        path: String,
        /// The outer one.
        other: String,
    },
    /// A path that no value of the schema has.
    #[error("field path `{path}` is not in the schema, which has no `{at}`")]
    Unknown {
        /// The path.
        path: String,
        /// As much of it as leads out of the schema.
        at: String,
    },
    /// A field that is told as a kind of value that it never is.
    #[error("field `{path}` cannot be told so: by the schema it is never {expected}")]
    Kind {
        /// The path.
        path: String,
        /// The kind.
        expected: &'static str,
    },
    /// There are too many.
    #[error("{count} fields are declared, more than {MAX_FIELDS}")]
    TooMany {
        /// How many.
        count: usize,
    },
}

/// The declared fields of a document. Cheap to clone; none by default.
#[derive(Debug, Clone)]
pub struct Fields(Arc<[Node]>);

/// A place on the way to declared fields, or one of them.
#[derive(Debug, Default)]
struct Node {
    /// Its key, when it is in an object.
    name: Box<str>,
    /// What is declared in it as an object.
    keys: Vec<NodeId>,
    /// What is declared in each of its items.
    items: Option<NodeId>,
    /// How it is told, when it is a field itself.
    mode: Option<Mode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(usize);

impl Fields {
    /// Declares fields.
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Result<Self, FieldError> {
        let fields: Vec<Field> = fields.into_iter().collect();
        if fields.len() > MAX_FIELDS {
            return Err(FieldError::TooMany { count: fields.len() });
        }
        fields.iter().try_for_each(Field::check)?;
        if let Some((inner, outer)) = overlap(&fields) {
            return Err(FieldError::Overlap { path: inner.path.clone(), other: outer.path.clone() });
        }
        let mut nodes = vec![Node::default()];
        for field in &fields {
            declare(&mut nodes, field);
        }
        Ok(Self(nodes.into()))
    }

    pub(super) const ROOT: NodeId = NodeId(0);

    /// What is declared at a key, and its number among the declared keys of its object, below 64.
    pub(super) fn key(&self, object: NodeId, key: &str) -> Option<(NodeId, u32)> {
        let mut keys = self.0.get(object.0)?.keys.iter().zip(0..);
        keys.find(|(id, _)| self.name(**id) == key).map(|(id, number)| (*id, number))
    }

    /// What is declared in each item of an array.
    pub(super) fn items(&self, array: NodeId) -> Option<NodeId> {
        self.0.get(array.0)?.items
    }

    /// Whether anything is declared by key.
    pub(super) fn has_keys(&self, id: NodeId) -> bool {
        self.0.get(id.0).is_some_and(|node| !node.keys.is_empty())
    }

    pub(super) fn mode(&self, id: NodeId) -> Option<Mode> {
        self.0.get(id.0)?.mode
    }

    pub(super) fn name(&self, id: NodeId) -> &str {
        self.0.get(id.0).map_or("", |node| &node.name)
    }
}

impl Default for Fields {
    fn default() -> Self {
        Self(Arc::from([Node::default()]))
    }
}

/// A field that lies within another one.
fn overlap(fields: &[Field]) -> Option<(&Field, &Field)> {
    let mut pairs = fields.iter().enumerate().flat_map(|(at, inner)| {
        let others = fields.iter().enumerate().filter(move |(other, _)| *other != at);
        others.map(move |(_, outer)| (inner, outer))
    });
    pairs.find(|(inner, outer)| inner.is_within(outer))
}

fn declare(nodes: &mut Vec<Node>, field: &Field) {
    let mut at = Fields::ROOT;
    for segment in field.path.split('.') {
        at = step(nodes, at, segment);
    }
    if let Some(node) = nodes.get_mut(at.0) {
        node.mode = Some(field.mode);
    }
}

/// The place that a segment leads to, made when missing.
fn step(nodes: &mut Vec<Node>, from: NodeId, segment: &str) -> NodeId {
    let new = NodeId(nodes.len());
    let known = nodes.get(from.0).and_then(|node| {
        let is_named = |id: &&NodeId| nodes.get(id.0).is_some_and(|key| *key.name == *segment);
        if segment == "*" { node.items } else { node.keys.iter().find(is_named).copied() }
    });
    if let Some(known) = known {
        return known;
    }
    if let Some(node) = nodes.get_mut(from.0) {
        if segment == "*" { node.items = Some(new) } else { node.keys.push(new) }
    }
    nodes.push(Node { name: segment.into(), ..Node::default() });
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(fields: &[&str]) -> FieldError {
        Fields::new(fields.iter().map(|path| Field::set(*path))).unwrap_err()
    }

    #[test]
    fn a_path_that_leads_nowhere_is_refused() {
        for path in ["", ".", "a.", ".a", "a..b"] {
            assert_eq!(refused(&[path]), FieldError::Malformed { path: path.into() });
        }
        assert_eq!(refused(&["a.0.b"]), FieldError::Index { path: "a.0.b".into() });
        assert!(matches!(refused(&[&vec!["a"; 33].join(".")]), FieldError::TooLong { .. }));
        assert!(Fields::new([Field::set(vec!["a"; 32].join("."))]).is_ok());
    }

    #[test]
    fn fields_that_share_something_are_refused() {
        for (outer, inner) in [("a", "a"), ("a", "a.b"), ("a", "a.*"), ("a.*", "a.*.b.c")] {
            let error = FieldError::Overlap { path: inner.into(), other: outer.into() };
            assert_eq!(refused(&[outer, inner]), error);
            assert_eq!(refused(&[inner, outer]), error);
        }
        let apart = ["a.b", "a.c", "ab", "a.*", "d.*.e"];
        assert!(Fields::new(apart.map(Field::set)).is_ok());
    }

    #[test]
    fn fields_are_few() {
        let fields = |count: usize| Fields::new((0..count).map(|number| Field::set(format!("f{number}"))));
        assert!(fields(64).is_ok());
        assert_eq!(fields(65).unwrap_err(), FieldError::TooMany { count: 65 });
    }
}
