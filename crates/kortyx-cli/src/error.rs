//! What can go wrong, and the exit code of each.

use std::{error::Error, process::ExitCode};

use kortyx_orchestrator::{BuildError, OrchestratorError, RefusalReason};
use kortyx_protocol::Issue;
use kortyx_store::StoreError;
use serde::Serialize;

use crate::{
    report::{self, VERSION, complain},
    show::paint,
};

/// What the program ends with. Listed in the README and in `kortyx --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Done = 0,
    /// The store, or what it holds, cannot be used.
    Failed = 1,
    /// The command line is not understood. Clap exits with it too.
    Usage = 2,
    /// There is no such run, question, session or checkpoint.
    NotFound = 3,
    /// The store or the question refuses it, and nothing changed.
    Refused = 4,
    /// It would write, and `--write` is not given.
    ReadOnly = 5,
    /// `store check` found something broken.
    Broken = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The command line names something that cannot be used.
    #[error("{0}")]
    Usage(String),
    /// The command writes, and nobody said that it may.
    #[error("`kortyx {0}` changes what is stored: add --write when that is meant")]
    ReadOnly(&'static str),
    /// There is no such thing.
    #[error("there is no {0}")]
    NotFound(String),
    /// Refused, with a stable code.
    #[error("{message}")]
    Refused { code: String, message: String, issues: Vec<Issue> },
    /// The store does not open.
    #[error("the store cannot be opened")]
    Open(#[source] BuildError),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The library refused in another way.
    #[error("{0}")]
    Agent(#[source] OrchestratorError),
    /// A file does not load.
    #[error("{0}")]
    File(String),
}

#[derive(Serialize)]
struct Told<'a> {
    v: u32,
    kind: &'a str,
    error: ToldError<'a>,
}

#[derive(Serialize)]
struct ToldError<'a> {
    code: &'a str,
    message: String,
    #[serde(skip_serializing_if = "<[Issue]>::is_empty")]
    issues: &'a [Issue],
}

impl CliError {
    pub(crate) fn refused(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Refused { code: code.into(), message: message.into(), issues: Vec::new() }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::File(_) => Exit::Usage,
            Self::ReadOnly(_) => Exit::ReadOnly,
            Self::NotFound(_) => Exit::NotFound,
            Self::Refused { .. } => Exit::Refused,
            Self::Open(_) | Self::Store(_) | Self::Agent(_) => Exit::Failed,
        }
    }

    fn code(&self) -> &str {
        match self {
            Self::Usage(_) => "USAGE",
            Self::File(_) => "FILE",
            Self::ReadOnly(_) => "READ_ONLY",
            Self::NotFound(_) => "NOT_FOUND",
            Self::Refused { code, .. } => code,
            Self::Open(_) | Self::Store(_) => "PERSISTENCE_ERROR",
            Self::Agent(error) => error.code().as_str(),
        }
    }

    /// Says it on standard error: as one line of JSON, or for people.
    pub(crate) fn tell(&self, json: bool) {
        let issues: &[Issue] = if let Self::Refused { issues, .. } = self { issues } else { &[] };
        if json {
            let error = ToldError { code: self.code(), message: self.chain(), issues };
            let told = Told { v: VERSION, kind: "error", error };
            return complain(&report::line(&told).unwrap_or_default());
        }
        complain(&format!("{}: {}", paint::bad("error"), paint::clean(&self.chain())));
        for issue in issues {
            let path = if issue.path.is_empty() { "the answer" } else { &issue.path };
            complain(&format!("  {}: {}", paint::clean(path), paint::clean(&issue.message)));
        }
    }

    /// The error with what led to it.
    fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(error) = source {
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        text
    }
}

impl From<OrchestratorError> for CliError {
    fn from(error: OrchestratorError) -> Self {
        let code = error.code().as_str().to_owned();
        match error {
            OrchestratorError::NotFound => Self::NotFound("such thing".to_owned()),
            OrchestratorError::Refused(refused) => {
                let message = OrchestratorError::Refused(refused.clone()).to_string();
                let issues = refused.into_iter().flat_map(|refused| match refused.reason {
                    RefusalReason::Invalid(issues) => issues,
                    _ => Vec::new(),
                });
                Self::Refused { code, message, issues: issues.collect() }
            }
            OrchestratorError::Storage(_) => Self::Agent(error),
            error => Self::Agent(error),
        }
    }
}
