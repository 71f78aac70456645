//! Why a workflow cannot be loaded, and where the reason stands.

use std::{error::Error, fmt, io, sync::Arc};

use super::{
    super::{
        DefinitionError,
        name::{listed, nearest, shown},
    },
    NodeLibrary,
    message::message,
    place::Place,
};

/// A workflow text that cannot be used: which file, where in it, and what to do.
#[derive(Debug)]
pub struct LoadError {
    file: Arc<str>,
    place: Option<Place>,
    problem: LoadProblem,
}

/// What is wrong with a workflow text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadProblem {
    /// The file cannot be read.
    #[error("the file cannot be read: check that it exists, is UTF-8 and may be read")]
    Read(#[source] io::Error),
    /// The extension of the file says nothing.
    #[error("the format of the file is unknown: name it `.yaml`, `.yml` or `.json`")]
    UnknownFormat,
    /// The text is not YAML or JSON, a key is missing or unknown, or a value has the wrong type.
    #[error("{0}")]
    Text(String),
    /// A node uses a function that the library does not have.
    #[error("no node function {} is in the library; {hint}", shown(name))]
    UnknownFunction {
        /// The name.
        name: String,
        /// A name that was probably meant, or the names that exist.
        hint: String,
    },
    /// An edge has both `when` and `otherwise: true`.
    #[error("the edge has both `when` and `otherwise`: keep the one that is meant")]
    ConditionAndOtherwise,
    /// The text is well-formed, the workflow it describes is not.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
}

impl LoadError {
    /// The path of the file, or `<text>`.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, counted from 1. `None` when the error is not about a place in the text.
    pub fn line(&self) -> Option<u64> {
        self.place.map(|place| place.line)
    }

    /// The column, counted from 1 in characters.
    pub fn column(&self) -> Option<u64> {
        self.place.map(|place| place.column)
    }

    /// What is wrong.
    pub fn problem(&self) -> &LoadProblem {
        &self.problem
    }

    /// The stable code of the error.
    pub fn code(&self) -> &'static str {
        match &self.problem {
            LoadProblem::Read(_) => "FILE_UNREADABLE",
            LoadProblem::UnknownFormat => "UNKNOWN_FORMAT",
            LoadProblem::Text(_) => "INVALID_TEXT",
            LoadProblem::UnknownFunction { .. } => "UNKNOWN_FUNCTION",
            LoadProblem::ConditionAndOtherwise => "CONDITION_AND_OTHERWISE",
            LoadProblem::Definition(error) => error.code(),
        }
    }

    pub(super) fn new(file: &Arc<str>, place: Option<Place>, problem: LoadProblem) -> Self {
        Self { file: Arc::clone(file), place, problem }
    }

    pub(super) fn whole(file: &Arc<str>, problem: LoadProblem) -> Self {
        Self::new(file, None, problem)
    }

    pub(super) fn yaml(file: &Arc<str>, error: &serde_saphyr::Error) -> Self {
        Self::new(file, error.location().and_then(Place::of), LoadProblem::Text(message(error)))
    }

    pub(super) fn json(file: &Arc<str>, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text).to_owned();
        let place = (line > 0).then_some(Place { line: line as u64, column: column.max(1) as u64 });
        Self::new(file, place, LoadProblem::Text(message))
    }
}

impl LoadProblem {
    pub(super) fn unknown_function(name: &str, library: &NodeLibrary) -> Self {
        let names = library.names();
        let hint = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean {}?", shown(near)),
            None if names.is_empty() => "register it with `NodeLibrary::register`".to_owned(),
            None => format!("register it with `NodeLibrary::register` or use one of {}", listed(names)),
        };
        Self::UnknownFunction { name: name.to_owned(), hint }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(f, "{}:{place}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl Error for LoadError {
    /// What the problem itself is caused by; the problem is part of the message.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.problem.source()
    }
}
