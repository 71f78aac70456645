//! The engine: begins runs, and takes stored ones up again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kortyx_protocol::{Failure, FailureCode, RawJson};

use crate::{
    Allowances,
    event::EventBatch,
    execution::Execution,
    flow,
    io::Io,
    meter::Meters,
    shared::Shared,
    state::{Frame, Pin, ROOT, RunState, SNAPSHOT_VERSION},
    turn::{Restore, RestoreError, RunInfo, Start},
    workflow::Registry,
};

/// Bounds on what a run may do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// How deep child workflows may nest. 16 by default.
    pub call_depth: u32,
    /// How many children one activation may call. 64 by default.
    pub calls_per_activation: u32,
    /// How much a run may use, with its branches and its children, before it asks a person whether to go on. Counters of which nothing
    /// is said here have limits of their own.
    pub allowances: Allowances,
    /// How long nodes may take to finish once the run was asked to stop. Five seconds by default.
    pub cancel_grace: Duration,
    /// How long a branch's questions wait for the other branches to pause too, before they are published on their own.
    /// 20 ms by default.
    pub publish_delay: Duration,
    /// How long a node that is replayed may take to make the calls that it made before, while it waits for something that
    /// the engine does not know of. A node that waits for nothing else is not waited for. Five seconds by default.
    pub replay_patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_depth: 16,
            calls_per_activation: 64,
            allowances: Allowances::new(),
            cancel_grace: Duration::from_secs(5),
            publish_delay: Duration::from_millis(20),
            replay_patience: Duration::from_secs(5),
        }
    }
}

/// Runs workflows of a registry. It has no clock, randomness, storage or transport of its own: [`Io`] brings them.
#[derive(Clone)]
pub struct Engine {
    registry: Arc<Registry>,
    limits: Limits,
}

impl Engine {
    /// An engine for these workflows.
    pub fn new(registry: Arc<Registry>, limits: Limits) -> Self {
        Self { registry, limits }
    }

    /// The workflows.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Begins a run. Nothing happens before [`Execution::advance`].
    ///
    /// # Errors
    /// `UNKNOWN_WORKFLOW` when the workflow is not registered, `INVALID_INPUT` with issues when its input does not fit.
    pub fn start(&self, start: Start, io: Io) -> Result<Execution, Failure> {
        let definition = start.workflow;
        self.check_pin(&Pin::of(&definition)).map_err(|failure| {
            let message = format!("the workflow `{}` is not registered with the engine", definition.id());
            Failure::new(FailureCode::UnknownWorkflow, message).with_cause(failure)
        })?;
        definition.validate_input(&start.input).map_err(|issues| {
            let message = format!("the input does not fit the workflow `{}`", definition.id());
            Failure::new(FailureCode::InvalidInput, message).with_issues(issues)
        })?;
        let history = RawJson::of(&start.history);
        let history = history.map_err(|error| Failure::new(FailureCode::InvalidRequest, error.to_string()))?;
        let limits = start.limits.or(definition.limits()).or(&self.limits.allowances);
        let mut root = Frame::new(None, 0, Pin::of(&definition), start.input);
        root.data = start.data;
        root.workflow_state = start.workflow_state;
        let state = RunState {
            v: SNAPSHOT_VERSION,
            context: start.context,
            history,
            frames: BTreeMap::from([(ROOT, Box::new(root))]),
            activations: BTreeMap::new(),
            next_frame: ROOT + 1,
            next_activation: 1,
            executions: 0,
            allowance: definition.max_node_executions().map_or(u64::MAX, u64::from),
            answers_seen: 0,
            response_completed: false,
            trace: start.tracked.then(Box::default),
            meters: Meters::new(limits),
            marks: BTreeSet::new(),
            trace_parent: None,
        };
        let execution = self.execution(start.run, state, io, false);
        flow::begin_frame(&mut execution.shared.lock(), &definition, ROOT);
        Ok(execution)
    }

    /// Goes on with a stored run.
    pub fn restore(&self, restore: Restore<'_>, io: Io) -> Result<Execution, RestoreError> {
        let mut state: RunState = read(restore.snapshot)?;
        check_version(state.v)?;
        for entry in restore.entries {
            let batch: EventBatch = read(entry)?;
            check_version(batch.v)?;
            batch.events.into_iter().for_each(|event| state.apply(event));
        }
        for frame in state.frames.values() {
            self.check_pin(&frame.workflow).map_err(RestoreError::Parked)?;
        }
        state.check(&self.registry).map_err(RestoreError::Corrupt)?;
        let execution = self.execution(restore.run, state, io, true);
        let is_stopped = {
            let mut core = execution.shared.lock();
            core.deliver(restore.answers);
            core.state.meters.stopped.is_some()
        };
        if is_stopped {
            execution.shared.cancel.cancel();
        }
        Ok(execution)
    }

    fn execution(&self, run: RunInfo, state: RunState, io: Io, is_restored: bool) -> Execution {
        Execution::new(Shared::new(run, io, self.registry.clone(), self.limits.clone(), state, is_restored))
    }

    fn check_pin(&self, pin: &Pin) -> Result<(), Failure> {
        let what = match self.registry.get(&pin.id, &pin.version) {
            Some(known) if *known.fingerprint() == *pin.fingerprint => return Ok(()),
            Some(_) => "is registered with another definition (nodes, edges or conditions differ)",
            None if self.registry.latest(&pin.id).is_some() => "is not registered, though other versions are",
            None => "is not registered",
        };
        let message = format!(
            "version `{}` of the workflow `{}`, which the run is bound to, {what}; deploy that version beside newer ones, \
             or cancel the run",
            pin.version, pin.id
        );
        Err(Failure::new(FailureCode::WorkflowChanged, message))
    }
}

pub(crate) fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, RestoreError> {
    #[derive(serde::Deserialize)]
    struct Version {
        v: u32,
    }
    // Looked through for what is not UTF-8 once, rather than text by text.
    let text = str::from_utf8(bytes).map_err(|error| RestoreError::Corrupt(error.to_string()))?;
    serde_json::from_str(text).map_err(|error| match serde_json::from_str::<Version>(text) {
        Ok(Version { v }) if v > SNAPSHOT_VERSION => newer(v),
        _ => RestoreError::Corrupt(error.to_string()),
    })
}

pub(crate) fn check_version(version: u32) -> Result<(), RestoreError> {
    if version <= SNAPSHOT_VERSION { Ok(()) } else { Err(newer(version)) }
}

fn newer(version: u32) -> RestoreError {
    let message = format!(
        "the run was stored by a newer release (snapshot version {version}, this one knows {SNAPSHOT_VERSION}); let a process \
         of that release drive it"
    );
    RestoreError::Parked(Failure::new(FailureCode::WorkflowChanged, message))
}
