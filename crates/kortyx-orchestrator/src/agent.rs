//! The agent and what its parts share.

use std::{fmt, sync::Arc};

use kortyx_runtime::{Engine, Host, Registry};
use kortyx_store::{Store, WorkflowPin};
use tokio::runtime::Handle;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    AgentBuilder, OrchestratorError,
    driver::Drivers,
    follow::Followers,
    hooks::Hooks,
    settings::Settings,
    telemetry::{Overdue, Telemetry},
    worker::WorkerConfig,
};

/// Runs workflows over a store, takes answers, and keeps runs going when processes come and go.
///
/// Cheap to clone; all clones are the same agent. Every run executes in a task that the agent owns: a caller that goes away
/// does not stop it. When the last clone is dropped the worker stops; runs under way still reach their next pause, and
/// [`shutdown`](Self::shutdown) waits for them.
#[derive(Clone)]
pub struct Agent(pub(crate) Arc<Inner>);

/// What the agent's parts share.
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    /// The definitions of runs that this agent may claim.
    pub(crate) pins: Vec<WorkflowPin>,
    pub(crate) store: Arc<dyn Store>,
    /// The agent made the store itself, so it closes it.
    pub(crate) owns_store: bool,
    pub(crate) settings: Settings,
    pub(crate) worker: WorkerConfig,
    pub(crate) telemetry: Telemetry,
    pub(crate) overdue: Overdue,
    pub(crate) hooks: Hooks,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) driver_id: String,
    pub(crate) drivers: Drivers,
    pub(crate) followers: Followers,
    /// Every run under way, and every chat turn.
    pub(crate) tasks: TaskTracker,
    pub(crate) runtime: Handle,
    /// Cancelled when the agent shuts down or is dropped: nothing new begins, background tasks end.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when runs under way must stop at once.
    pub(crate) killed: CancellationToken,
    /// Cancelled when the agent is dropped.
    pub(crate) gone: CancellationToken,
    pub(crate) _gone_on_drop: DropGuard,
}

impl Agent {
    /// Begins an agent.
    pub fn builder() -> AgentBuilder {
        AgentBuilder::new()
    }

    /// The workflows that it knows.
    pub fn registry(&self) -> &Registry {
        self.0.engine.registry()
    }

    /// The store beneath it.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// How many runs are being driven in this process now. Waiting runs are not.
    pub fn driven_runs(&self) -> usize {
        self.0.drivers.count()
    }
}

impl Inner {
    /// Refuses work once the agent shuts down.
    pub(crate) fn check_running(&self) -> Result<(), OrchestratorError> {
        if self.stopping.is_cancelled() { Err(OrchestratorError::ShuttingDown) } else { Ok(()) }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("workflows", &self.registry().ids())
            .field("driven_runs", &self.driven_runs())
            .finish_non_exhaustive()
    }
}
