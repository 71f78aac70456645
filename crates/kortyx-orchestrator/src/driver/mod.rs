//! Driving: a run executes in a task that the agent owns, from where it stands to its next pause or its end.

mod drive;
mod keep;
mod live;
mod outcome;
mod publish;
mod stop;

use std::{collections::BTreeMap, sync::Arc};

use kortyx_protocol::RunId;
use kortyx_runtime::{Restore, RestoreError, RunInfo, Start};
use kortyx_store::{Claimed, NewRun, Scalar, StoreError, WorkflowPin};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use self::{
    drive::Drive,
    stop::{After, stopped},
};
pub(crate) use self::{
    live::{Drivers, Live},
    outcome::{OpenInterrupt, Stand, State, StoredOutcome, corrupt, foreign_workflow},
    publish::{delivered, pin},
};
use crate::{OrchestratorError, agent::Inner};

/// Where a run's chunks go; `None` throws them away.
pub(crate) type Output = Option<mpsc::Sender<kortyx_protocol::StreamChunk>>;

/// A run on its way.
pub(crate) struct Started {
    pub(crate) live: Arc<Live>,
    pub(crate) stand: oneshot::Receiver<Stand>,
}

/// Why a driver stops before its run waits or ends.
pub(crate) enum Stop {
    /// Another driver has the run.
    LeaseLost,
    /// Storage failed.
    Store(StoreError),
    /// The run cannot go on with this code.
    Parked(kortyx_protocol::Failure),
    /// The run's workflow is not registered here; others may have it.
    Foreign(kortyx_protocol::Failure),
    /// An answer came to a run whose client had gone: it goes on from its last durable point.
    HandOver,
    /// The agent shuts down.
    Killed,
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        match error.kind() {
            kortyx_store::StoreErrorKind::LeaseLost => Self::LeaseLost,
            _ => Self::Store(error),
        }
    }
}

impl Inner {
    /// Begins a run. Refuses an input that does not fit, before anything happens.
    pub(crate) fn begin(
        self: &Arc<Self>,
        start: Start,
        context: BTreeMap<String, Scalar>,
        output: Output,
    ) -> Result<Started, OrchestratorError> {
        let run = start.run.clone();
        let definition = kortyx_runtime::workflow::DefinitionPin::of(&start.workflow);
        let workflow = pin(&definition);
        let (run_id, session_id) = (run.run_id.clone(), run.session_id.clone());
        let new = NewRun { run_id, session_id, workflow: workflow.clone(), context };
        let live = Live::begin(self, run, new, output);
        let execution = self.engine.start(start, live.io(self)).map_err(OrchestratorError::InvalidInput)?;
        let (done, stand) = oneshot::channel();
        let drive = Drive::new(live.clone(), execution, workflow);
        self.drive(live.clone(), async move { drive.run().await }, Some(done), None);
        Ok(Started { live, stand })
    }

    /// Goes on with a run whose lease was granted.
    pub(crate) fn go_on(
        self: &Arc<Self>,
        claimed: Claimed,
        output: Output,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Started {
        let run = RunInfo { run_id: claimed.run.run_id.clone(), session_id: claimed.run.session_id.clone() };
        let live = Live::go_on(self, run, &claimed, output);
        let (done, stand) = oneshot::channel();
        let driven = live.clone();
        let work = async move {
            let pin = claimed.run.workflow.clone();
            match restore(&driven, claimed) {
                Ok(drive) => drive.run().await,
                Err(stop) => stopped(&driven, &pin, stop).await,
            }
        };
        self.drive(live.clone(), work, Some(done), permit);
        Started { live, stand }
    }

    fn drive(
        self: &Arc<Self>,
        live: Arc<Live>,
        work: impl Future<Output = (Stand, After)> + Send + 'static,
        done: Option<oneshot::Sender<Stand>>,
        permit: Option<OwnedSemaphorePermit>,
    ) {
        let registered = self.drivers.enter(live.clone());
        let agent = self.clone();
        let task = async move {
            let (stand, after) = work.await;
            drop(registered);
            if let Some(done) = done {
                let _ = done.send(stand);
            }
            after.follow(&agent, &live).await;
            drop(permit);
        };
        self.tasks.spawn_on(task, &self.runtime);
    }

    /// Whether the version of the workflow that a run is bound to is registered here, with whatever definition: the engine
    /// refuses another one, and the run is parked.
    fn knows(&self, pin: &WorkflowPin) -> bool {
        self.engine.registry().get(&pin.id, &pin.version).is_some()
    }

    /// Wakes the driver of a run, if it is in this process.
    pub(crate) fn attend(&self, run_id: &RunId) {
        if let Some(live) = self.drivers.get(run_id) {
            live.attend();
        }
    }
}

fn restore(live: &Arc<Live>, claimed: Claimed) -> Result<Drive, Stop> {
    if !live.agent.knows(&claimed.run.workflow) {
        return Err(Stop::Foreign(outcome::foreign(&claimed.run.workflow)));
    }
    let answers = delivered(&claimed.answers).map_err(|error| Stop::Parked(outcome::corrupt(&error.to_string())))?;
    let entries: Vec<&[u8]> = claimed.entries.iter().map(|entry| &**entry).collect();
    let restore = Restore { run: live.run.clone(), snapshot: &claimed.snapshot, entries: &entries, answers };
    let execution = live.agent.engine.restore(restore, live.io(&live.agent)).map_err(|error| match error {
        RestoreError::Parked(failure) => Stop::Parked(failure),
        error => Stop::Parked(outcome::corrupt(&error.to_string())),
    })?;
    Ok(Drive::new(live.clone(), execution, claimed.run.workflow))
}
