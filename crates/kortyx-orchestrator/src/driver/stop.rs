//! What becomes of a run whose driver stops before the run waits or ends.

use kortyx_protocol::Failure;
use kortyx_store::{Park, StoreErrorKind, WorkflowPin};

use super::{Live, Stand, State, Stop, span::transition};
use crate::{OrchestratorError, error::chain, telemetry::Fact};

/// What is left to do once those who wait know where the run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// Give the lease up.
    Release,
    /// Give the lease up a little later, so that a fault of the store does not turn into a storm of attempts.
    ReleaseLater,
}

pub(super) async fn stopped(live: &Live, pin: &WorkflowPin, stop: Stop) -> (Stand, After) {
    let (state, after) = match stop {
        Stop::LeaseLost => lease_lost(live),
        Stop::HandOver => (State::Elsewhere, After::Release),
        Stop::Killed => (State::Interrupted(OrchestratorError::ShuttingDown), After::Release),
        Stop::Foreign(failure) => (State::SetAside(failure), After::Release),
        Stop::Parked(failure) => set_aside(live, pin, failure).await,
        Stop::Store(error) => (State::Interrupted(error.into()), After::ReleaseLater),
    };
    (live.stand(pin, state), after)
}

/// Parks a run that storage knows; another one never was, so it fails.
async fn set_aside(live: &Live, pin: &WorkflowPin, failure: Failure) -> (State, After) {
    let Some(lease) = live.lease() else {
        let state = State::Failed(failure);
        return match live.store_end(pin, (&state, None), u64::MAX, None).await {
            Ok(_) => (state, After::Nothing),
            Err(error) => (State::Interrupted(error.into()), After::Nothing),
        };
    };
    let reason = serde_json::to_string(&failure).unwrap_or_else(|_| failure.to_string());
    match transition("park", live.agent.store.park(Park { lease, reason })).await {
        Ok(()) => {
            tracing::warn!(run_id = %live.run.run_id, code = failure.code.as_str(), "a run was set aside: {}", failure.message);
            live.tell_fact(|about| Fact::RunParked { about, code: failure.code });
            (State::SetAside(failure), After::Nothing)
        }
        Err(error) if error.kind() == StoreErrorKind::LeaseLost => lease_lost(live),
        Err(error) => (State::Interrupted(error.into()), After::ReleaseLater),
    }
}

/// Another driver has the run.
fn lease_lost(live: &Live) -> (State, After) {
    let fence = live.fence();
    live.tell_fact(|about| Fact::LeaseLost { about, fence });
    (State::Elsewhere, After::Nothing)
}

impl After {
    pub(super) async fn follow(self, live: &Live) {
        let agent = &live.agent;
        if self == Self::ReleaseLater {
            tokio::select! {
                () = tokio::time::sleep(agent.settings.cool_down) => {}
                () = agent.killed.cancelled() => {}
            }
        }
        let Some(lease) = live.lease().filter(|_| self != Self::Nothing) else { return };
        if let Err(error) = agent.store.release(&lease).await
            && error.kind() != StoreErrorKind::LeaseLost
        {
            tracing::warn!(run_id = %live.run.run_id, error = chain(&error), "a lease was not given up; it will run out");
        }
    }
}
