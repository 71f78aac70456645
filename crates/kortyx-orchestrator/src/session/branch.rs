//! Going back to a checkpoint, and starting a new session from one.

use kortyx_protocol::{CheckpointId, Forked, RolledBack, RunId, SessionId};
use kortyx_store::{
    CancelTarget, CheckpointRecord, Fork, ForkOutcome, InterruptRecord, Placement, Reissue, Rollback, RollbackOutcome,
    Scope,
};

use super::{check_scope, state::is_in, view};
use crate::{
    Agent, OrchestratorError,
    agent::Inner,
    driver::{corrupt, minted_request},
    execute::new_session,
    host::random,
    telemetry::Fact,
};

impl Agent {
    /// Takes a session back to a checkpoint, which becomes its head.
    ///
    /// Later checkpoints are abandoned. Runs of the session that have not ended are cancelled, also those that
    /// [`execute`](Agent::execute) began, and their open questions superseded. The questions that were open at the checkpoint
    /// are open again, in a new run under new ids and tokens, until their original deadline. Going back to the head changes
    /// nothing.
    ///
    /// # Errors
    /// Nothing changed: `NOT_FOUND` for a checkpoint that is unknown, abandoned or outside the scope; `CONFLICT` while a run of
    /// the session is being driven; `INTERRUPT_EXPIRED` when the deadline of a question to open again is past;
    /// `SCOPE_REQUIRED` when there is a scope and it restricts nothing.
    pub async fn rollback_to(&self, id: &CheckpointId, scope: Option<&Scope>) -> Result<RolledBack, OrchestratorError> {
        self.0.rollback_to(id, scope).await
    }

    /// Starts a new session from a checkpoint, with an id of its own unless one is given.
    ///
    /// It begins with the checkpoint's state. The questions that were open at the checkpoint are open in it, in a run of its own
    /// under new ids and tokens, until their original deadline; both sessions go on independently. The original is
    /// untouched, and may be driven meanwhile.
    ///
    /// # Errors
    /// Nothing changed: `NOT_FOUND` for a checkpoint that is unknown, abandoned or outside the scope; `CONFLICT` when the new
    /// session exists; `INTERRUPT_EXPIRED` when the deadline of a question to open again is past; `SCOPE_REQUIRED` when there
    /// is a scope and it restricts nothing.
    pub async fn fork(
        &self,
        id: &CheckpointId,
        new_session_id: Option<SessionId>,
        scope: Option<&Scope>,
    ) -> Result<Forked, OrchestratorError> {
        self.0.fork(id, new_session_id, scope).await
    }
}

impl Inner {
    async fn rollback_to(&self, id: &CheckpointId, scope: Option<&Scope>) -> Result<RolledBack, OrchestratorError> {
        let record = self.checkpoint_in(id, scope).await?.ok_or(OrchestratorError::NotFound)?;
        let session_id = record.session_id.clone();
        self.check_head(&session_id, scope).await?;
        // Storage does not know them yet.
        if let Some(live) = self.drivers.new_runs(&CancelTarget::Session(session_id.clone()), None).first() {
            return Err(OrchestratorError::SessionBusy(live.run.run_id.clone()));
        }
        let reissue = self.reissue(&record, &session_id)?;
        let new_run_id = self.minted_run(&session_id)?;
        let request = Rollback { checkpoint_id: id.clone(), new_run_id: new_run_id.clone(), reissue: reissue.clone() };
        let (head, abandoned, superseded, interrupts) = match self.store.rollback(request).await? {
            RollbackOutcome::Done { head, abandoned, superseded, interrupts } => {
                (head, abandoned, superseded, interrupts)
            }
            RollbackOutcome::Unknown => return Err(OrchestratorError::NotFound),
            RollbackOutcome::Driven(run_id) => return Err(OrchestratorError::SessionBusy(run_id)),
            RollbackOutcome::Expired(request_id) => return Err(OrchestratorError::QuestionExpired(request_id)),
            RollbackOutcome::Mismatched => return Err(mismatched(id)),
        };
        self.tell_superseded(&superseded);
        self.tell_opened(&reissue, &interrupts);
        self.telemetry.record(|| Fact::SessionRolledBack {
            about: self.telemetry.of_checkpoint(record.run_id.clone().unwrap_or(new_run_id), &record),
            session_id: session_id.clone(),
            checkpoint_id: head.checkpoint.id.clone(),
        });
        let head = head.checkpoint.id;
        let streams = abandoned.iter().flat_map(|record| record.checkpoint.structured_stream_ids.iter().cloned());
        let asked = abandoned.iter().flat_map(|record| &record.interrupts);
        Ok(RolledBack {
            session_id,
            head,
            invalidated_structured_stream_ids: view::distinct(streams, |a, b| a == b),
            invalidated_interrupt_tokens: view::closed_tokens(superseded.iter().chain(asked), &interrupts),
            active_pending_requests: view::pending(interrupts)?,
        })
    }

    /// Refuses what would abandon checkpoints outside the scope.
    async fn check_head(&self, session_id: &SessionId, scope: Option<&Scope>) -> Result<(), OrchestratorError> {
        if scope.is_none_or(|scope| scope.context.is_empty()) {
            return Ok(());
        }
        match self.store.head(session_id).await? {
            Some(head) if !is_in(&head, scope)? => Err(OrchestratorError::NotFound),
            _ => Ok(()),
        }
    }

    async fn fork(
        &self,
        id: &CheckpointId,
        new_session_id: Option<SessionId>,
        scope: Option<&Scope>,
    ) -> Result<Forked, OrchestratorError> {
        check_scope(scope)?;
        let record = self.checkpoint_in(id, scope).await?.ok_or(OrchestratorError::NotFound)?;
        let session_id = new_session_id.map_or_else(new_session, Ok)?;
        let reissue = self.reissue(&record, &session_id)?;
        let new_run_id = self.minted_run(&session_id)?;
        let request = Fork {
            checkpoint_id: id.clone(),
            new_session_id: session_id.clone(),
            new_checkpoint_id: self.mint_checkpoint(&session_id)?,
            new_run_id: new_run_id.clone(),
            reissue: reissue.clone(),
        };
        let (checkpoint, interrupts) = match self.store.fork(request).await? {
            ForkOutcome::Done { checkpoint, interrupts } => (checkpoint, interrupts),
            ForkOutcome::Unknown => return Err(OrchestratorError::NotFound),
            ForkOutcome::SessionExists => return Err(OrchestratorError::SessionExists(session_id)),
            ForkOutcome::Expired(request_id) => return Err(OrchestratorError::QuestionExpired(request_id)),
            ForkOutcome::Mismatched => return Err(mismatched(id)),
        };
        self.tell_opened(&reissue, &interrupts);
        self.telemetry.record(|| Fact::SessionForked {
            about: {
                let left_by = record.run_id.as_ref().filter(|_| interrupts.is_empty());
                self.telemetry.of_checkpoint(left_by.cloned().unwrap_or(new_run_id), &checkpoint)
            },
            session_id: session_id.clone(),
            parent_session_id: record.session_id.clone(),
            checkpoint_id: id.clone(),
        });
        let checkpoint = view::view(&checkpoint, interrupts)?;
        Ok(Forked { session_id, parent_session_id: record.session_id, forked_from: id.clone(), checkpoint })
    }

    /// Fresh ids and secrets for the open questions of a checkpoint, in this session.
    fn reissue(&self, record: &CheckpointRecord, session_id: &SessionId) -> Result<Vec<Reissue>, OrchestratorError> {
        let placement = self.store.placement(session_id);
        let reissue = |question: &InterruptRecord| {
            let (request_id, token) = minted_request(placement).map_err(|_| OrchestratorError::Random)?;
            Ok(Reissue { from: question.request_id.clone(), request_id, token })
        };
        record.interrupts.iter().map(reissue).collect()
    }

    fn minted_run(&self, session_id: &SessionId) -> Result<RunId, OrchestratorError> {
        let bytes = random().map_err(|_| OrchestratorError::Random)?;
        let placement = self.store.placement(session_id);
        Ok(RunId::from_random(placement.map_or(bytes, |placement: Placement| placement.mark(bytes))))
    }

    fn tell_superseded(&self, superseded: &[InterruptRecord]) {
        for record in superseded {
            let request_id = record.request_id.clone();
            let about = || self.telemetry.of_question(record);
            self.telemetry.record(|| Fact::InterruptSuperseded { request_id, about: about() });
        }
    }

    /// Tells of questions that are open again, but not of those that have been open all the time.
    fn tell_opened(&self, reissued: &[Reissue], open: &[InterruptRecord]) {
        let is_new = |record: &&InterruptRecord| reissued.iter().any(|new| new.request_id == record.request_id);
        for record in open.iter().filter(is_new) {
            self.telemetry.created(record, None, None);
        }
    }
}

/// What is open at a checkpoint never changes, so naming it cannot go wrong.
fn mismatched(id: &CheckpointId) -> OrchestratorError {
    OrchestratorError::Corrupt(corrupt(&format!(
        "the open questions of the checkpoint {id} are not those that it holds"
    )))
}
