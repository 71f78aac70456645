//! Ending runs from outside.

use kortyx_protocol::SessionId;
use kortyx_store::{CancelOutcome, CancelRequest, CancelTarget, StoreError, StoreErrorKind};

use super::runs::End;
use crate::{index::members, slab::Slot, state::Transition};

impl Transition<'_> {
    pub(crate) fn cancel(&mut self, request: &CancelRequest) -> Result<Vec<CancelOutcome>, StoreError> {
        if request.scope.as_ref().is_some_and(kortyx_store::Scope::is_empty) {
            return Err(self.error(StoreErrorKind::ScopeRequired, "the scope restricts nothing"));
        }
        let slots = match &request.target {
            CancelTarget::Run(run_id) => self.find_run(run_id).into_iter().collect(),
            CancelTarget::Session(session_id) => self.active_runs(session_id),
        };
        let mut outcomes = Vec::with_capacity(slots.len());
        for slot in slots {
            if request.scope.as_ref().map_or(Ok(true), |scope| self.is_inside(slot, scope))? {
                outcomes.push(self.cancel_run(slot, request.reason.clone())?);
            }
        }
        Ok(outcomes)
    }

    /// The session's runs that are not terminal, oldest first.
    pub(super) fn active_runs(&self, session_id: &SessionId) -> Vec<Slot> {
        let Some(session) = self.find_session(session_id) else { return Vec::new() };
        let active = self.state.index.active_by_session.range(members(session, None));
        active.map(|(_, _, slot)| *slot).collect()
    }

    fn cancel_run(&mut self, slot: Slot, reason: Option<String>) -> Result<CancelOutcome, StoreError> {
        let run = self.run_at(slot)?;
        let run_id = run.id.clone();
        if run.status.is_terminal() {
            return Ok(CancelOutcome::Ended(run_id, run.status));
        }
        if !run.is_driven(self.now) {
            self.end(slot, End::cancelled(reason))?;
            return Ok(CancelOutcome::Cancelled(run_id));
        }
        let run = self.run_mut(slot)?;
        run.cancel_requested = true;
        if reason.is_some() {
            run.reason = reason.map(String::into_boxed_str);
        }
        self.attend(slot)?;
        Ok(CancelOutcome::Requested(run_id))
    }
}
