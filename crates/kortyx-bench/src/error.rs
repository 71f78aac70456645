//! Why a measurement cannot be made.

use std::{io, process::ExitStatus};

use kortyx_orchestrator::{BuildError, OrchestratorError};
use kortyx_protocol::{Failure, InvalidId, JsonError};
use kortyx_runtime::{EngineError, RestoreError, workflow::DefinitionError};
use kortyx_store::StoreError;

/// A measurement that cannot be made. A target that is missed is none of these.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The agent was not built.
    #[error("the agent cannot be built")]
    Build(#[from] BuildError),
    /// The workflow of the cycle is not sound.
    #[error("the workflow cannot be built")]
    Definition(#[from] DefinitionError),
    /// A run was refused.
    #[error("the agent refused")]
    Agent(#[from] OrchestratorError),
    /// The engine refused to start a run.
    #[error("the engine refused to start")]
    Start(#[from] Failure),
    /// The engine stopped.
    #[error("the engine stopped")]
    Engine(#[from] EngineError),
    /// The engine refused to go on with a run.
    #[error("the engine refused to go on")]
    Restore(#[from] RestoreError),
    /// A store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The raw loop failed.
    #[error("the raw loop failed")]
    Sql(#[from] sqlx::Error),
    /// The raw loop on Redis failed.
    #[error("the raw loop failed")]
    Redis(#[from] fred::error::Error),
    /// A server that is needed is not named.
    #[error("{0} is not set: run `cargo xtask bench`, which starts servers, or `cargo xtask serve {1}`")]
    NoServer(&'static str, &'static str),
    /// An id is not valid.
    #[error("an id is not valid")]
    Id(#[from] InvalidId),
    /// The state is not JSON.
    #[error("the state is not JSON")]
    Json(#[from] JsonError),
    /// A file or a process cannot be used.
    #[error("cannot {0}")]
    Io(&'static str, #[source] io::Error),
    /// The process of a measure ended with a failure.
    #[error("the process of `{0}` failed: {1}")]
    Child(&'static str, ExitStatus),
    /// The process of a measure printed something else than rows.
    #[error("the process of `{0}` printed no rows")]
    Rows(&'static str, #[source] serde_json::Error),
    /// `--only` names nothing.
    #[error("`--only {0}` names no measure; there are: {1}")]
    UnknownMeasure(String, String),
    /// Memory is to be counted, and this program does not.
    #[error("this program does not count what it allocates: `{0}` beside it does")]
    Uncounted(&'static str),
    /// Something did not happen as it must, so that the number would mean nothing.
    #[error("{0}")]
    Unexpected(String),
}

impl Error {
    /// An error of a file or a process.
    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io(action, source)
    }

    /// Something did not happen as it must.
    pub(crate) fn unexpected(what: impl Into<String>) -> Self {
        Self::Unexpected(what.into())
    }
}
