//! Following a run: what it said from some place on, and what it says, wherever it is driven.

mod stream;
mod watch;

use kortyx_protocol::{JsonError, RawJson, RunId, SessionId, StreamChunk};
use kortyx_store::Scope;

pub use self::stream::RunStream;
pub(crate) use self::watch::Followers;
use crate::{Agent, OrchestratorError, discover::check};

/// A piece of a [`RunStream`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunChunk {
    /// Its place in what the run said, from 1: where to go on after the connection was lost. `None` for what says how the run
    /// stands: that is said anew to everybody who follows.
    pub number: Option<u64>,
    /// The chunk, as it is sent.
    pub json: RawJson,
}

impl RunChunk {
    /// The chunk. Fails for one of a newer release that this one does not know.
    pub fn chunk(&self) -> Result<StreamChunk, JsonError> {
        self.json.decode()
    }
}

impl Agent {
    /// Follows a run within a scope: first what it said above a number (0: everything), then what it says as it goes on, across
    /// its pauses and wherever it is driven, until it has ended.
    ///
    /// The stream is `session`, the run's chunks with their numbers, an `interrupt` for every question that is open whenever the
    /// run waits (once each), and, when the run has ended, `error` or `cancelled` where it ended so, and `done`. The stream of a run
    /// that completes its response ends as its turn does, also when it is followed later: those questions that were open then and
    /// still are, the `checkpoint`, `done`. Nothing runs for a stream that is not read. Whoever may follow a run may answer it: its
    /// questions come with their tokens.
    ///
    /// # Errors
    /// `SCOPE_REQUIRED` when the scope restricts nothing, `NOT_FOUND` when there is no such run in it.
    pub async fn follow(&self, run_id: &RunId, scope: &Scope, after: u64) -> Result<RunStream, OrchestratorError> {
        check(scope)?;
        let session_id = self.session_of(run_id, scope).await?.ok_or(OrchestratorError::NotFound)?;
        Ok(RunStream::new(self.0.clone(), run_id.clone(), session_id, after))
    }

    async fn session_of(&self, run_id: &RunId, scope: &Scope) -> Result<Option<SessionId>, OrchestratorError> {
        // A run of this process is told of before storage knows it.
        if let Some(live) = self.0.drivers.get(run_id).filter(|live| live.is_new_in(Some(scope))) {
            return Ok(Some(live.run.session_id.clone()));
        }
        let run = self.0.store.run(run_id).await?;
        Ok(run.filter(|run| scope.contains(&run.session_id, &run.context)).map(|run| run.session_id))
    }
}
