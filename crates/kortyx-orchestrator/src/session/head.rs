//! What a turn begins from, and what it leaves behind.

use std::collections::BTreeMap;

use kortyx_protocol::{CheckpointId, SessionId};
use kortyx_runtime::TurnState;
use kortyx_store::{
    CheckpointRecord, InterruptQuery, NewCheckpoint, Scalar, Scope, StoreError, StoreErrorKind, TurnRef, WorkflowPin,
};
use sha2::{Digest, Sha256};

use super::state::{SessionState, is_in};
use crate::{OrchestratorError, agent::Inner, host::random};

/// What the first checkpoint of a session is called.
const START: &str = "session start";
/// What the id of a session's first checkpoint is derived from, before the session's.
const START_DOMAIN: &[u8] = b"kortyx session start\0";

/// How many open questions show whose a session is.
const OWNED: u32 = 50;

/// What a turn begins from.
pub(crate) struct Head {
    /// The workflow in force.
    pub(crate) workflow: String,
    /// The turn that it is the state of.
    pub(crate) turn: TurnRef,
    pub(crate) state: SessionState,
}

impl Inner {
    /// The head of a session; `None` when it has none. A session outside the scope is unknown.
    pub(crate) async fn session_head(
        &self,
        session_id: &SessionId,
        scope: &Scope,
    ) -> Result<Option<Head>, OrchestratorError> {
        if scope.session_id.as_ref().is_some_and(|wanted| wanted != session_id) {
            return Err(OrchestratorError::NotFound);
        }
        let Some(record) = self.store.head(session_id).await? else {
            self.check_owned(session_id, scope).await?;
            return Ok(None);
        };
        if !is_in(&record, Some(scope))? {
            return Err(OrchestratorError::NotFound);
        }
        let state = SessionState::of(&record)?;
        let turn = record.turn();
        Ok(Some(Head { workflow: record.checkpoint.workflow, turn, state }))
    }

    /// Refuses a session without checkpoints in which somebody outside the scope has questions open.
    async fn check_owned(&self, session_id: &SessionId, scope: &Scope) -> Result<(), OrchestratorError> {
        if scope.context.is_empty() {
            return Ok(());
        }
        let query =
            InterruptQuery { scope: Scope::session(session_id.clone()), limit: OWNED, ..InterruptQuery::default() };
        let open = self.store.list_interrupts(query).await?.interrupts;
        let is_owned = open.iter().all(|record| scope.contains(session_id, &record.context));
        if is_owned { Ok(()) } else { Err(OrchestratorError::NotFound) }
    }

    /// Appends the checkpoint that a session starts with. `false`: another first turn was faster.
    pub(crate) async fn start_session(
        &self,
        session_id: &SessionId,
        workflow: &WorkflowPin,
        context: &BTreeMap<String, Scalar>,
    ) -> Result<bool, OrchestratorError> {
        let state = SessionState::new(BTreeMap::new(), BTreeMap::new(), context);
        let mut checkpoint = checkpoint(self.start_id(session_id), workflow, &state)?;
        checkpoint.label = Some(START.to_owned());
        match self.store.append_checkpoint(session_id, checkpoint).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == StoreErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The checkpoint that a turn leaves behind.
    pub(crate) fn turn_checkpoint(
        &self,
        session_id: &SessionId,
        workflow: &WorkflowPin,
        context: &BTreeMap<String, Scalar>,
        turn: TurnState,
    ) -> Result<NewCheckpoint, StoreError> {
        let id = self.mint_checkpoint(session_id)?;
        let mut checkpoint = checkpoint(id, workflow, &SessionState::new(turn.data, turn.workflow_state, context))?;
        checkpoint.nodes = turn.nodes;
        checkpoint.structured_stream_ids = turn.structured_stream_ids;
        Ok(checkpoint)
    }

    /// A fresh id for a checkpoint of a session.
    pub(crate) fn mint_checkpoint(&self, session_id: &SessionId) -> Result<CheckpointId, StoreError> {
        let bytes = random().map_err(|error| {
            StoreError::new(StoreErrorKind::Backend, "checkpoint", "no random bytes").with_source(error)
        })?;
        Ok(self.placed(session_id, bytes))
    }

    /// The id of a session's first checkpoint: the same for all who would append it, so that one of them does.
    fn start_id(&self, session_id: &SessionId) -> CheckpointId {
        let digest = Sha256::new().chain_update(START_DOMAIN).chain_update(session_id.as_str()).finalize();
        let mut bytes = [0; 16];
        for (byte, from) in bytes.iter_mut().zip(digest) {
            *byte = from;
        }
        self.placed(session_id, bytes)
    }

    fn placed(&self, session_id: &SessionId, bytes: [u8; 16]) -> CheckpointId {
        let placement = self.store.placement(session_id);
        CheckpointId::from_random(placement.map_or(bytes, |placement| placement.mark(bytes)))
    }

    /// The newest checkpoint of a session, when it closes a turn of this run, and the run has not gone on since its response.
    pub(crate) async fn head_of_run(
        &self,
        session_id: &SessionId,
        run_id: &kortyx_protocol::RunId,
    ) -> Result<Option<CheckpointRecord>, StoreError> {
        let head = self.store.head(session_id).await?.filter(|head| head.run_id.as_ref() == Some(run_id));
        let Some(head) = head else { return Ok(None) };
        let run = self.store.run(run_id).await?;
        Ok(run.is_none_or(|run| run.response.is_none()).then_some(head))
    }
}

fn checkpoint(id: CheckpointId, workflow: &WorkflowPin, state: &SessionState) -> Result<NewCheckpoint, StoreError> {
    let state = serde_json::to_vec(state).map_err(|error| {
        StoreError::new(StoreErrorKind::InvalidRequest, "checkpoint", "the session's state does not serialize")
            .with_source(error)
    })?;
    Ok(NewCheckpoint {
        id,
        label: None,
        nodes: Vec::new(),
        workflow: workflow.id.to_string(),
        workflow_version: Some(workflow.version.to_string()),
        state: state.into(),
        structured_stream_ids: Vec::new(),
    })
}
