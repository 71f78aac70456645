//! Driving: a run executes in a task that the agent owns, from where it stands to its next pause or its end.

mod drive;
mod keep;
mod live;
mod log;
mod outcome;
mod publish;
mod reader;
mod response;
mod span;
mod stop;
mod told;

use std::{collections::BTreeMap, sync::Arc};

use kortyx_protocol::RunId;
use kortyx_runtime::{Content, Restore, RestoreError, RunInfo, Start, workflow::DefinitionPin};
use kortyx_store::{Claimed, NewRun, Scalar, StoreError, TurnRef, WorkflowPin};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::{Instrument as _, Span};

use self::{
    drive::Drive,
    live::Registered,
    stop::{After, stopped},
    told::Beginning,
};
pub(crate) use self::{
    live::{Drivers, Live},
    outcome::{OpenInterrupt, Stand, State, StoredOutcome, corrupt, foreign_workflow},
    publish::{delivered, minted_request, pin},
    reader::{Output, Sink},
    response::Response,
    span::transition,
};
use crate::{OrchestratorError, agent::Inner, telemetry::ResumeReason};

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

/// A run to drive, already reachable for those who look for its driver.
pub(crate) struct Job {
    live: Arc<Live>,
    work: Work,
    registered: Registered,
    beginning: Beginning,
    span: Span,
}

enum Work {
    Begun(Box<Drive>),
    Granted(Box<Claimed>),
}

impl Job {
    /// Drives the run on the task that calls, tells where it stands then (or at the end of its response, if that comes
    /// before), and does what is left to do.
    pub(crate) async fn run(self, tell: impl FnOnce(Stand) + Send + 'static) {
        let Self { live, work, registered, beginning, span } = self;
        live.reader.wait(tell);
        let (stand, after) = work.run(&live, beginning, &span).instrument(span.clone()).await;
        span::close(&span, &stand);
        drop(span);
        let waiter = live.reader.take_waiter();
        drop(registered);
        if let Some(tell) = waiter {
            tell(stand);
        }
        after.follow(&live).await;
    }
}

impl Work {
    async fn run(self, live: &Arc<Live>, beginning: Beginning, span: &Span) -> (Stand, After) {
        match self {
            Self::Begun(drive) => begin(live, *drive, beginning, span).await,
            Self::Granted(claimed) => {
                let pin = claimed.run.workflow.clone();
                match restore(live, *claimed) {
                    Ok(drive) => begin(live, drive, beginning, span).await,
                    Err(stop) => {
                        live.tell_beginning(beginning, None);
                        stopped(live, &pin, stop).await
                    }
                }
            }
        }
    }
}

async fn begin(live: &Live, drive: Drive, beginning: Beginning, span: &Span) -> (Stand, After) {
    let earlier = live.trace(span, drive.handle());
    live.tell_beginning(beginning, earlier);
    live.send_trace().await;
    drive.run().await
}

impl Inner {
    /// Begins a run, of a conversation after this turn of it. Refuses an input that does not fit, before anything happens.
    pub(crate) fn begin(
        self: &Arc<Self>,
        start: Start,
        context: BTreeMap<String, Scalar>,
        follows: Option<TurnRef>,
        output: Output,
    ) -> Result<Job, OrchestratorError> {
        let RunInfo { run_id, session_id } = start.run.clone();
        let workflow = pin(&DefinitionPin::of(&start.workflow));
        let new = NewRun { run_id, session_id, workflow: workflow.clone(), context, follows };
        let live = Live::begin(self, start.run.clone(), new, output);
        let input = self.telemetry.captures().input.then(|| Content::new(start.input.clone()));
        let execution = self.engine.start(start, live.io()).map_err(OrchestratorError::InvalidInput)?;
        let span = live.span(&workflow.id, &workflow.version);
        let work = Work::Begun(Box::new(Drive::new(live.clone(), execution, workflow)));
        Ok(self.job(live, work, (Beginning::Started(input), span)))
    }

    /// Goes on with a run whose lease was granted.
    pub(crate) fn granted(self: &Arc<Self>, claimed: Box<Claimed>, reason: ResumeReason, output: Output) -> Job {
        let live = Live::go_on(self, &claimed, output);
        let beginning = Beginning::Resumed { reason, answers: claimed.answers.len() };
        let span = live.span(&claimed.run.workflow.id, &claimed.run.workflow.version);
        self.job(live, Work::Granted(claimed), (beginning, span))
    }

    fn job(&self, live: Arc<Live>, work: Work, (beginning, span): (Beginning, Span)) -> Job {
        Job { registered: self.drivers.enter(live.clone()), live, work, beginning, span }
    }

    /// Drives a run in a task of its own.
    pub(crate) fn spawn(&self, job: Job, permit: Option<OwnedSemaphorePermit>) -> Started {
        let (done, stand) = oneshot::channel();
        let live = job.live.clone();
        let task = async move {
            job.run(move |stand| drop(done.send(stand))).await;
            drop(permit);
        };
        self.tasks.spawn_on(task, &self.runtime);
        Started { live, stand }
    }

    /// Whether the version of the workflow that a run is bound to is registered here, with whatever definition: the engine
    /// refuses another one, and the run is parked.
    fn knows(&self, pin: &WorkflowPin) -> bool {
        self.engine.registry().get(&pin.id, &pin.version).is_some()
    }

    /// Drives a run as [work](Self::work) of the agent's, for a caller who waits for it.
    pub(crate) async fn drive(&self, job: Job) -> Started {
        let (done, stand) = oneshot::channel();
        let live = job.live.clone();
        self.work(Box::pin(job.run(move |stand| drop(done.send(stand))))).await;
        Started { live, stand }
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
    live.set_context(claimed.run.context);
    let answers = delivered(&claimed.answers).map_err(|error| Stop::Parked(outcome::corrupt(&error.to_string())))?;
    let entries: Vec<&[u8]> = claimed.entries.iter().map(|entry| &**entry).collect();
    let restore = Restore { run: live.run.clone(), snapshot: &claimed.snapshot, entries: &entries, answers };
    let execution = live.agent.engine.restore(restore, live.io()).map_err(|error| match error {
        RestoreError::Parked(failure) => Stop::Parked(failure),
        error => Stop::Parked(outcome::corrupt(&error.to_string())),
    })?;
    if execution.handle().is_response_completed() {
        live.reader.completed_before();
    }
    Ok(Drive::new(live.clone(), execution, claimed.run.workflow))
}
