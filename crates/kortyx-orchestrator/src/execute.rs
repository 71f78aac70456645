//! Starting runs from code.

use std::{collections::BTreeMap, sync::Arc};

use kortyx_protocol::{ExecutionResult, RawJson, RunId, SessionId};
use kortyx_runtime::{Allowances, Counter, RunInfo, Start, Workflow, workflow::Definition};
use kortyx_store::{Scalar, TurnRef};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{Agent, OrchestratorError, agent::Inner, driver::Job, host::random, present};

/// How a run begins.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ExecuteOptions {
    /// The session that the run belongs to; a new one when absent. The run is no turn of the session's conversation: it takes
    /// nothing over and leaves no checkpoint, but ends when the session is taken back.
    pub session_id: Option<SessionId>,
    /// What the application attaches to the run: nodes read it, and top-level booleans, integers and texts in it can be listed
    /// by.
    pub context: Map<String, Value>,
    /// How much the run may use, with its branches and its children, before it asks whether to go on. Where nothing is said, its workflow
    /// counts, then the agent.
    pub limits: Allowances,
}

impl ExecuteOptions {
    /// A new session, no context.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs in this session.
    #[must_use]
    pub fn session(mut self, session_id: SessionId) -> Self {
        self.session_id = Some(session_id);
        self
    }

    /// Adds a value to the context.
    #[must_use]
    pub fn context(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.context.insert(key.into(), value.into());
        self
    }

    /// Limits how much the run may use of this before it asks whether to go on.
    ///
    /// ```
    /// use kortyx_orchestrator::ExecuteOptions;
    /// use kortyx_runtime::TOKENS;
    ///
    /// let options = ExecuteOptions::new().limit(TOKENS, 50_000);
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn limit(mut self, counter: Counter, most: u64) -> Self {
        self.limits = self.limits.limit(counter, most);
        self
    }

    /// Lets the run use any amount of this.
    #[must_use]
    pub fn unlimited(mut self, counter: Counter) -> Self {
        self.limits = self.limits.unlimited(counter);
        self
    }
}

impl Agent {
    /// Runs a workflow until it waits for people, has ended or has completed its response, whichever comes first.
    ///
    /// After [`complete_response`](kortyx_runtime::NodeContext::complete_response) the result is `completed` with the data of the
    /// response, read as `O`, or `suspended` with the questions that are open then; the run goes on.
    ///
    /// The run is the agent's: dropping this future does not stop it. What was written when this returns is durable: a token
    /// in the result is known to the store. The workflow must be registered with the agent.
    ///
    /// # Errors
    /// Nothing ran (`UNKNOWN_WORKFLOW`, `INVALID_INPUT`, `PAYLOAD_TOO_LARGE`), or the run was cut short by the storage
    /// (`PERSISTENCE_ERROR`) or by code that does not fit (`REPLAY_DIVERGED`, `WORKFLOW_CHANGED`). A run that failed is a result.
    pub async fn execute<I: Serialize, O: DeserializeOwned>(
        &self,
        workflow: &Workflow<I, O>,
        input: I,
        options: ExecuteOptions,
    ) -> Result<ExecutionResult<O>, OrchestratorError> {
        let definition = self.0.registered(workflow.definition())?;
        let input = RawJson::of(&input).map_err(|error| present::not_json("the input", &error))?;
        let stand = self.0.execute(definition, input, options).await?;
        present::result(stand, present::typed)
    }

    /// As [`execute`](Self::execute), with a workflow by its id and, unless the latest is meant, its version.
    pub async fn execute_by_id(
        &self,
        id: &str,
        version: Option<&str>,
        input: RawJson,
        options: ExecuteOptions,
    ) -> Result<ExecutionResult, OrchestratorError> {
        let definition = self.0.find(id, version)?;
        let stand = self.0.execute(definition, input, options).await?;
        present::result(stand, present::untyped)
    }
}

impl Inner {
    async fn execute(
        self: &Arc<Self>,
        definition: Arc<Definition>,
        input: RawJson,
        options: ExecuteOptions,
    ) -> Result<crate::driver::Stand, OrchestratorError> {
        self.check_running()?;
        let run = self.new_run(options.session_id)?;
        let run_id = run.run_id.clone();
        let mut start = Start::new(run, definition, input);
        start.limits = options.limits;
        let job = self.begin_with(start, &options.context, None, None)?;
        self.settled(self.drive(job).await, &run_id, None).await
    }

    /// Begins a run with this context, of a conversation after this turn of it.
    pub(crate) fn begin_with(
        self: &Arc<Self>,
        mut start: Start,
        context: &Map<String, Value>,
        follows: Option<TurnRef>,
        output: crate::driver::Output,
    ) -> Result<Job, OrchestratorError> {
        if context.is_empty() {
            return self.begin(start, BTreeMap::new(), follows, output);
        }
        start.context = RawJson::of(context).map_err(|error| present::not_json("the context", &error))?;
        self.begin(start, scalars(context), follows, output)
    }

    /// Fresh ids.
    pub(crate) fn new_run(&self, session_id: Option<SessionId>) -> Result<RunInfo, OrchestratorError> {
        let [run, session]: [[u8; 16]; 2] = halves(random().map_err(|_| OrchestratorError::Random)?);
        let session_id = session_id.unwrap_or_else(|| SessionId::from_random(session));
        let run = self.store.placement(&session_id).map_or(run, |placement| placement.mark(run));
        Ok(RunInfo { run_id: RunId::from_random(run), session_id })
    }

    /// The workflow with this id.
    pub(crate) fn find(&self, id: &str, version: Option<&str>) -> Result<Arc<Definition>, OrchestratorError> {
        let registry = self.engine.registry();
        let found = version.map_or_else(|| registry.latest(id), |version| registry.get(id, version));
        found.cloned().ok_or_else(|| {
            OrchestratorError::UnknownWorkflow(match version {
                Some(version) => format!("`{id}` version `{version}`"),
                None => format!("`{id}`"),
            })
        })
    }

    /// The registered definition of a workflow at hand.
    fn registered(&self, definition: &Arc<Definition>) -> Result<Arc<Definition>, OrchestratorError> {
        let found = self.find(definition.id(), Some(definition.version()))?;
        if found.fingerprint() == definition.fingerprint() {
            return Ok(found);
        }
        let (id, version) = (definition.id(), definition.version());
        Err(OrchestratorError::UnknownWorkflow(format!("`{id}` version `{version}` with these nodes and edges")))
    }
}

fn halves(bytes: [u8; 32]) -> [[u8; 16]; 2] {
    let mut halves = [[0; 16]; 2];
    for (half, bytes) in halves.iter_mut().zip(bytes.chunks_exact(16)) {
        half.copy_from_slice(bytes);
    }
    halves
}

pub(crate) fn new_session() -> Result<SessionId, OrchestratorError> {
    Ok(SessionId::from_random(random().map_err(|_| OrchestratorError::Random)?))
}

/// The values of a context that listing can ask for.
pub(crate) fn scalars(context: &Map<String, Value>) -> BTreeMap<String, Scalar> {
    let scalar = |(key, value): (&String, &Value)| {
        let value = match value {
            Value::Bool(value) => Scalar::Bool(*value),
            Value::Number(number) => Scalar::Int(number.as_i64()?),
            Value::String(text) => Scalar::Text(text.as_str().into()),
            _ => return None,
        };
        Some((key.clone(), value))
    };
    context.iter().filter_map(scalar).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn booleans_integers_and_texts_of_a_context_can_be_listed_by() {
        let context =
            json!({"tenant": "a", "n": -1, "yes": true, "half": 0.5, "big": u64::MAX, "list": [1], "null": null});
        let scalars = scalars(context.as_object().unwrap());
        let wanted = [("n", Scalar::Int(-1)), ("tenant", Scalar::Text("a".into())), ("yes", Scalar::Bool(true))];
        assert_eq!(scalars, wanted.map(|(key, value)| (key.to_owned(), value)).into());
    }
}
