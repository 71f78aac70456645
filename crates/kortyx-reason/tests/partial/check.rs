//! What must hold for any text, whatever it is split into. The tests and the fuzzer share it.

use kortyx_protocol::{RawJson, StructuredChange, StructuredChunk, StructuredData, json};
use kortyx_reason::partial::{Field, Fields, PartialJson, PartialJsonError, PartialLimits, Problem, Wrapping};
use serde_json::{Map, Value};

/// What became of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// What was told, the deltas of a text joined.
    pub(crate) changes: Vec<StructuredChange>,
    /// The document, or what is wrong with it.
    pub(crate) document: Result<RawJson, PartialJsonError>,
}

/// How a text is read.
pub(crate) struct Reading {
    pub(crate) fields: Vec<Field>,
    pub(crate) wrapping: Wrapping,
    pub(crate) limits: PartialLimits,
}

impl Reading {
    pub(crate) fn new(fields: impl IntoIterator<Item = Field>, wrapping: Wrapping) -> Self {
        Self { fields: fields.into_iter().collect(), wrapping, limits: PartialLimits::default() }
    }

    /// Reads a text in pieces.
    pub(crate) fn read<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        let fields = Fields::new(self.fields.clone()).unwrap();
        let mut json = PartialJson::with_limits(fields, self.wrapping, self.limits.clone());
        let mut changes = Vec::new();
        for piece in pieces {
            let before = changes.len();
            if let Err(error) = json.push(piece, &mut changes) {
                let told = changes.len();
                assert_eq!(json.push(b"{}", &mut changes), Err(error.clone()), "an error stays");
                assert_eq!(changes.len(), told, "nothing is told after an error");
                return Outcome { changes: joined(changes), document: Err(error) };
            }
            assert_eq!(changes[before..].iter().filter(|change| is_delta(change)).count(), deltas(&changes[before..]));
        }
        Outcome { changes: joined(changes), document: json.finish() }
    }

    /// Checks all that must hold for a text in these pieces, byte by byte, and as a whole; gives what became of it.
    pub(crate) fn check<'a>(&self, text: &[u8], pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        let whole = self.read([text]);
        assert_eq!(self.read(text.chunks(1)), whole, "byte by byte");
        assert_eq!(self.read(pieces), whole, "in pieces");
        let told = reduced(&whole.changes);
        if let Ok(document) = &whole.document {
            let value = document.to_value().unwrap();
            assert_eq!(told.value().cloned(), self.declared(&value), "the client has the declared fields");
        }
        self.check_against_another_parser(text, &whole);
        whole
    }

    /// Where nothing may surround the document, another parser must be of the same mind.
    fn check_against_another_parser(&self, text: &[u8], outcome: &Outcome) {
        if self.wrapping != Wrapping::Bare || text.starts_with("\u{feff}".as_bytes()) {
            return;
        }
        let other = json::from_slice::<Value>(text);
        match &outcome.document {
            Ok(document) => assert_eq!(document.to_value().as_ref(), other.as_ref()),
            Err(error) if is_ours(&error.problem) => {}
            Err(error) => assert!(other.is_err(), "{error} in {other:?}"),
        }
    }

    /// What a client has of a document before its end: the declared fields.
    pub(crate) fn declared(&self, document: &Value) -> Option<Value> {
        let paths: Vec<Vec<&str>> = self.fields.iter().map(|field| field.path().split('.').collect()).collect();
        let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
        let is_empty_root = document.as_array().is_some_and(Vec::is_empty);
        declared(document, &paths).filter(|_| !is_empty_root)
    }
}

/// What a client makes of changes.
pub(crate) fn reduced(changes: &[StructuredChange]) -> StructuredData {
    let mut data = StructuredData::new("s");
    for change in changes {
        data.apply(&StructuredChunk::new("s", "d", change.clone())).unwrap();
    }
    data
}

/// A refusal that is a rule of this parser, not of JSON.
fn is_ours(problem: &Problem) -> bool {
    use Problem::{KeyTooLong, TooDeep, TooLong, TooManyKeys, Twice};
    matches!(problem, Twice | TooLong { .. } | TooDeep { .. } | TooManyKeys { .. } | KeyTooLong { .. })
}

fn is_delta(change: &StructuredChange) -> bool {
    matches!(change, StructuredChange::TextDelta { .. })
}

/// How many texts grow by these changes: a push tells each one once.
fn deltas(changes: &[StructuredChange]) -> usize {
    joined(changes.to_vec()).iter().filter(|change| is_delta(change)).count()
}

/// Joins the deltas of one text.
fn joined(changes: Vec<StructuredChange>) -> Vec<StructuredChange> {
    let mut joined: Vec<StructuredChange> = Vec::new();
    for change in changes {
        match (joined.last_mut(), change) {
            (
                Some(StructuredChange::TextDelta { path, delta }),
                StructuredChange::TextDelta { path: at, delta: more },
            ) if *path == at => delta.push_str(&more),
            (_, change) => joined.push(change),
        }
    }
    joined
}

/// What is declared of a value by the rest of the paths that lead through it.
fn declared(value: &Value, paths: &[&[&str]]) -> Option<Value> {
    if paths.iter().any(|path| path.is_empty()) {
        return Some(value.clone());
    }
    let below = |segment: &str| -> Vec<&[&str]> {
        paths.iter().filter(|path| path[0] == segment).map(|path| &path[1..]).collect()
    };
    match value {
        Value::Object(fields) => {
            let told = fields.iter().filter(|(key, _)| *key != "*");
            let told = told.filter_map(|(key, value)| Some((key.clone(), declared(value, &below(key))?)));
            Some(told.collect::<Map<_, _>>()).filter(|told| !told.is_empty()).map(Value::Object)
        }
        Value::Array(items) => {
            let below = below("*");
            let item = |item: &Value| declared(item, &below).unwrap_or_else(|| empty(item));
            (!below.is_empty()).then(|| items.iter().map(item).collect())
        }
        _ => None,
    }
}

/// An empty value of the same kind.
fn empty(value: &Value) -> Value {
    match value {
        Value::Object(_) => Value::Object(Map::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        _ => Value::Null,
    }
}

/// Checks an input of the fuzzer: a byte that picks how it is read, one that says how long the pieces are, the text.
pub(crate) fn fuzzed(data: &[u8]) {
    let Some((&[how, piece], text)) = data.split_first_chunk::<2>() else { return };
    reading(how).check(text, text.chunks(usize::from(piece).max(1)));
}

/// The ways to read that the fuzzer has.
pub(crate) fn reading(how: u8) -> Reading {
    let wrapping =
        [Wrapping::Bare, Wrapping::AroundObject, Wrapping::Fenced, Wrapping::AroundArray][usize::from(how % 4)];
    let fields = match how / 4 % 8 {
        0 => vec![],
        1 => vec![Field::set("a"), Field::text_delta("b"), Field::append("c")],
        2 => vec![Field::text_delta("a.*.b"), Field::set("a.*.c"), Field::append("b")],
        3 => vec![Field::text_delta("a.b"), Field::append("a.c"), Field::set("a.d.e")],
        4 => vec![Field::text_delta("a.*"), Field::append("b.*"), Field::set("c.*")],
        5 => vec![Field::text_delta("*.a"), Field::set("*.b"), Field::append("*.c.*")],
        6 => vec![Field::append("a.*.b.*.c"), Field::text_delta("a.*.b.*.d")],
        _ => vec![Field::text_delta("*"), Field::append("é\"")],
    };
    let mut reading = Reading::new(fields, wrapping);
    if how >= 128 {
        reading.limits = PartialLimits { bytes: 48, depth: 4, keys: 5, key_bytes: 6 };
    }
    reading
}
