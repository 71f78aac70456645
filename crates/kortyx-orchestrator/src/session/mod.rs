//! Sessions: what a turn takes over from the one before, and checkpoints that can be listed, gone back to, and forked.

mod branch;
mod head;
mod state;
mod view;

use kortyx_protocol::{CheckpointId, CheckpointSummary, CheckpointView, SessionId};
use kortyx_store::{CheckpointRecord, InterruptQuery, InterruptRecord, Scope};

use self::state::is_in;
pub(crate) use self::{
    head::Head,
    state::{SessionState, value},
};
use crate::{Agent, OrchestratorError, agent::Inner, discover::check};

impl Agent {
    /// A session's checkpoints in turn order; none when the session is unknown or lies outside the scope.
    ///
    /// A session lies in a scope when its id matches and the context of its turns holds the scope's values. Without a scope
    /// every session is the caller's.
    ///
    /// # Errors
    /// `SCOPE_REQUIRED` when there is a scope and it restricts nothing.
    pub async fn list_checkpoints(
        &self,
        session_id: &SessionId,
        scope: Option<&Scope>,
    ) -> Result<Vec<CheckpointSummary>, OrchestratorError> {
        check_scope(scope)?;
        let mut summaries = Vec::new();
        for record in self.0.store.list_checkpoints(session_id).await? {
            if is_in(&record, scope)? {
                summaries.push(view::summary(&record));
            }
        }
        Ok(summaries)
    }

    /// A checkpoint with its public state; `None` when there is none with this id in the scope, or a rollback went behind it.
    ///
    /// Its open questions are those that were open at its end and still are; of the session's newest checkpoint, every one
    /// that is open in the session. They come with their tokens: give them only to those who may answer.
    ///
    /// # Errors
    /// `SCOPE_REQUIRED` when there is a scope and it restricts nothing.
    pub async fn get_checkpoint(
        &self,
        id: &CheckpointId,
        scope: Option<&Scope>,
    ) -> Result<Option<CheckpointView>, OrchestratorError> {
        let Some(record) = self.0.checkpoint_in(id, scope).await? else { return Ok(None) };
        let open = self.0.open_at(&record, scope).await?;
        view::view(&record, open).map(Some)
    }
}

impl Inner {
    /// A checkpoint within a scope.
    async fn checkpoint_in(
        &self,
        id: &CheckpointId,
        scope: Option<&Scope>,
    ) -> Result<Option<CheckpointRecord>, OrchestratorError> {
        check_scope(scope)?;
        let Some(record) = self.store.checkpoint(id).await? else { return Ok(None) };
        Ok(if is_in(&record, scope)? { Some(record) } else { None })
    }

    /// The questions that are open of a checkpoint.
    async fn open_at(
        &self,
        record: &CheckpointRecord,
        scope: Option<&Scope>,
    ) -> Result<Vec<InterruptRecord>, OrchestratorError> {
        let head = self.store.head(&record.session_id).await?;
        let is_head = head.is_some_and(|head| head.checkpoint.id == record.checkpoint.id);
        if !is_head && record.interrupts.is_empty() {
            return Ok(Vec::new());
        }
        let mut within = Scope::session(record.session_id.clone());
        within.context = scope.map(|scope| scope.context.clone()).unwrap_or_default();
        let mut open = self.all_interrupts(InterruptQuery { scope: within, ..InterruptQuery::default() }).await?;
        open.retain(|open| is_head || record.interrupts.iter().any(|then| then.request_id == open.request_id));
        Ok(open)
    }
}

fn check_scope(scope: Option<&Scope>) -> Result<(), OrchestratorError> {
    scope.map_or(Ok(()), check)
}
