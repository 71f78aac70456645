//! What a node sees of its run.

use std::sync::Arc;

use kortyx_protocol::{ChatMessage, RawJson, RunId, SessionId, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::{
    NodeError,
    event::Event,
    pass::{PassOver, PassRef},
    state::{Activation, CallKey, RunState},
};

/// The context of one activation of a node: everything that must survive a pause goes through it.
///
/// Cheap to clone. It is bound to the activation: a clone that outlives the node's future (in a task that the node
/// spawned) yields errors from then on.
#[derive(Clone)]
pub struct NodeContext(pub(crate) Arc<PassRef>);

impl NodeContext {
    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.0.shared.info.run_id
    }

    /// The session that the run belongs to.
    pub fn session_id(&self) -> &SessionId {
        &self.0.shared.info.session_id
    }

    /// The workflow that the node belongs to.
    pub fn workflow(&self) -> &str {
        &self.0.workflow
    }

    /// The node.
    pub fn node(&self) -> &str {
        &self.0.node
    }

    /// A top-level field of the run's data.
    ///
    /// # Errors
    /// The field is absent, or does not read as this type; the error names it. A node of a run that was stored before,
    /// perhaps by other code, which fails with the latter parks the run instead of failing it.
    pub fn data<T: DeserializeOwned>(&self, field: &str) -> Result<T, NodeError> {
        match self.raw_data(field)? {
            Some(value) => decode(&value, "the data field", field),
            None => Err(NodeError::message(format!(
                "the data has no field `{field}`; a node before `{}` must set it",
                self.0.node
            ))),
        }
    }

    /// A top-level field of the run's data, when some node has set it.
    pub fn optional_data<T: DeserializeOwned>(&self, field: &str) -> Result<Option<T>, NodeError> {
        self.raw_data(field)?.map(|value| decode(&value, "the data field", field)).transpose()
    }

    /// The workflow's input.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, NodeError> {
        let input = self.read(|state, _| state.frame(self.0.frame).map(|frame| frame.input.clone()))?;
        decode(&input.unwrap_or_default(), "the input of", &self.0.workflow)
    }

    /// The request context: what the application attached to the run when it began.
    pub fn context<T: DeserializeOwned>(&self) -> Result<T, NodeError> {
        let context = self.read(|state, _| state.context.clone())?;
        decode(&context, "the context of", &self.0.workflow)
    }

    /// Earlier messages of the conversation, as the client sent them; the turn itself is the last.
    pub fn history(&self) -> Result<Vec<ChatMessage>, NodeError> {
        let history = self.read(|state, _| state.history.clone())?;
        decode(&history, "the history of", &self.0.workflow)
    }

    /// A token that is cancelled when somebody asks the run to stop. A node may finish what must not be cut; a few
    /// seconds later it is dropped.
    pub fn cancelled(&self) -> CancellationToken {
        self.0.shared.cancel.clone()
    }

    /// A key for effects outside: 64 hex digits, the same in every replay, retry and recovery of this use of `id`,
    /// and different for every other.
    ///
    /// Inside a step it belongs to that use of the step's id, so that a loop gets a key for each round.
    pub fn idempotency_key(&self, id: &str) -> String {
        let (place, occ) = self
            .read(|state, activation| state.activations.get(&activation).map(|found| place_of(state, found)))
            .ok()
            .flatten()
            .map_or_else(Default::default, |place| (place, self.current_use(id)));
        let text = serde_json::json!([self.run_id().as_str(), place, id, occ]).to_string();
        hex(&Sha256::digest(text.as_bytes()))
    }

    /// The time, the same in every replay. Within a step it is the time of that moment: the step's result is what counts.
    ///
    /// # Errors
    /// The activation is over.
    pub fn now(&self) -> Result<Timestamp, NodeError> {
        let host_now = self.0.shared.io.host.now();
        let millis = self.0.with(|core| {
            if core.is_in_step(self.0.activation) {
                return host_now.as_millis();
            }
            let at = advance(core.passes.get_mut(&self.0.activation).map(|pass| &mut pass.clock_reads));
            let journal = core.state.activations.get(&self.0.activation).map(|activation| &activation.journal);
            if let Some(recorded) = journal.and_then(|journal| journal.clock.get(at)) {
                return *recorded;
            }
            let millis = host_now.as_millis();
            core.emit(Event::Clock { activation: self.0.activation, millis });
            millis
        })?;
        Ok(Timestamp::from_millis(millis))
    }

    /// A random UUID (version 4), the same in every replay. Within a step it is another one each time the step is tried.
    ///
    /// # Errors
    /// The system's generator fails, or the activation is over.
    pub fn random_id(&self) -> Result<String, NodeError> {
        let bytes = self.0.shared.io.host.random()?;
        let minted = RunId::from_random(bytes);
        let id = self.0.with(|core| {
            let id = minted.as_str().trim_start_matches("run-").to_owned();
            if core.is_in_step(self.0.activation) {
                return id;
            }
            let at = advance(core.passes.get_mut(&self.0.activation).map(|pass| &mut pass.random_reads));
            let journal = core.state.activations.get(&self.0.activation).map(|activation| &activation.journal);
            if let Some(recorded) = journal.and_then(|journal| journal.random.get(at)) {
                return recorded.clone();
            }
            core.emit(Event::Random { activation: self.0.activation, id: id.clone() });
            id
        })?;
        Ok(id)
    }

    /// State of this node, for its later activations in this run. Not long-term memory.
    pub fn node_state<T: Serialize + DeserializeOwned>(&self, key: &str, default: T) -> StateHandle<T> {
        StateHandle { pass: self.0.clone(), scope: Scope::Node, key: key.to_owned(), default }
    }

    /// State of every node of this workflow in this run, across handoffs and resumes; a child workflow has its own.
    pub fn workflow_state<T: Serialize + DeserializeOwned>(&self, key: &str, default: T) -> StateHandle<T> {
        StateHandle { pass: self.0.clone(), scope: Scope::Workflow, key: key.to_owned(), default }
    }

    /// Reports an error that the node has dealt with. It goes to tracing, with the place where it happened.
    pub fn report_error(&self, error: &dyn std::error::Error) {
        tracing::warn!(
            run = self.run_id().as_str(),
            workflow = &*self.0.workflow,
            node = &*self.0.node,
            %error,
            "the node reported an error"
        );
    }

    /// The use of an id that is under way: the running step's, else the next.
    fn current_use(&self, id: &str) -> u32 {
        let current = self.0.with_pass(|pass| match &pass.running_step {
            Some(step) if *step.id == *id => step.occ,
            _ => pass.uses(id),
        });
        current.unwrap_or_default()
    }

    fn raw_data(&self, field: &str) -> Result<Option<RawJson>, NodeError> {
        let found = self.read(|state, activation| {
            let activation = state.activations.get(&activation)?;
            match &activation.branch {
                Some(branch) => branch.view.get(field).map(|(value, _)| value.clone()),
                None => state.frame(activation.frame)?.data.get(field).cloned(),
            }
        })?;
        Ok(found)
    }

    fn read<R>(&self, read: impl FnOnce(&RunState, u32) -> R) -> Result<R, PassOver> {
        self.0.with(|core| read(&core.state, self.0.activation))
    }
}

/// A piece of state with a default.
///
/// Within an activation, `get` sees what it last `set`; the value takes effect for others when the activation ends well,
/// so that replay starts from the same value.
pub struct StateHandle<T> {
    pass: Arc<PassRef>,
    scope: Scope,
    key: String,
    default: T,
}

#[derive(Clone, Copy)]
enum Scope {
    Node,
    Workflow,
}

impl<T: Serialize + DeserializeOwned + Clone> StateHandle<T> {
    /// The value, or the default when it was never set.
    ///
    /// # Errors
    /// The stored value has another type, or the activation is over.
    pub fn get(&self) -> Result<T, NodeError> {
        let stored = self.pass.with(|core| {
            let pass = core.passes.get(&self.pass.activation)?;
            let writes = match self.scope {
                Scope::Node => &pass.writes.node,
                Scope::Workflow => &pass.writes.workflow,
            };
            writes.get(&self.key).cloned().or_else(|| self.read(core))
        })?;
        match stored {
            Some(value) => decode(&value, "the state", &self.key),
            None => Ok(self.default.clone()),
        }
    }

    /// Sets the value.
    ///
    /// # Errors
    /// It does not serialize, it is set within a step, which replay does not run again, or the activation is over.
    pub fn set(&self, value: &T) -> Result<(), NodeError> {
        let value = RawJson::of(value)?;
        if self.pass.with(|core| core.is_in_step(self.pass.activation))? {
            let text = format!(
                "the state `{}` is set within a step: return the value from the step and set it after",
                self.key
            );
            return Err(NodeError::message(text));
        }
        self.pass.with_pass(|pass| {
            let writes = match self.scope {
                Scope::Node => &mut pass.writes.node,
                Scope::Workflow => &mut pass.writes.workflow,
            };
            writes.insert(self.key.clone(), value);
        })?;
        Ok(())
    }

    /// The value as the activation found it. A branch of a fan-out remembers what it read, since others may write.
    fn read(&self, core: &mut crate::shared::Core) -> Option<RawJson> {
        let activation = core.state.activations.get(&self.pass.activation)?;
        let frame = core.state.frame(activation.frame)?;
        let Scope::Workflow = self.scope else {
            return frame
                .node_state
                .get(&format!("{}/{}", self.pass.workflow, self.pass.node))?
                .get(&self.key)
                .cloned();
        };
        let Some(branch) = &activation.branch else { return frame.workflow_state.get(&self.key).cloned() };
        if let Some(read) = branch.reads.get(&self.key) {
            return read.clone();
        }
        let value = frame.workflow_state.get(&self.key).cloned();
        core.emit(Event::Read { activation: self.pass.activation, key: self.key.clone(), value: value.clone() });
        value
    }
}

impl From<PassOver> for NodeError {
    fn from(_: PassOver) -> Self {
        Self::message("the activation is over; do not use its context from a task that outlives the node")
    }
}

/// Reads a counter and moves it on.
fn advance(counter: Option<&mut usize>) -> usize {
    counter.map_or(usize::MAX, |counter| {
        let at = *counter;
        *counter = at.saturating_add(1);
        at
    })
}

pub(crate) fn decode<T: DeserializeOwned>(value: &RawJson, what: &str, name: &str) -> Result<T, NodeError> {
    value.decode().map_err(|error| {
        let wanted = std::any::type_name::<T>();
        NodeError::unreadable(format!("{what} `{name}` does not read as `{wanted}`: {error}"))
    })
}

fn place_of(state: &RunState, activation: &Activation) -> String {
    format!("{}/{}", state.path(activation.frame), state.place(activation))
}

/// A stable id derived from a place and a call.
pub(crate) fn derived_id(context: &NodeContext, key: &CallKey) -> String {
    let place = context.read(|state, id| state.activations.get(&id).map(|found| place_of(state, found)));
    let place = place.ok().flatten().unwrap_or_default();
    let text = serde_json::json!([context.run_id().as_str(), place, &*key.id, key.occ, "stream"]).to_string();
    hex(&Sha256::digest(text.as_bytes())).chars().take(32).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len().saturating_mul(2)), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
