//! What a fact is about: the run, the place in it, and where both are found in tracing.

use std::{collections::BTreeMap, fmt, sync::Arc};

use kortyx_protocol::{RunId, SessionId};
use kortyx_store::{CheckpointRecord, InterruptRecord, RunRecord, Scalar, WorkflowPin};

use super::TraceIds;

/// What a fact is about. Cheap to clone: facts about one run share what is known of it.
///
/// ```
/// use kortyx_orchestrator::Correlation;
/// use kortyx_protocol::{RunId, SessionId};
///
/// let about = Correlation::new(RunId::from_random([1; 16]), SessionId::new("session-1")?).at("review", "approval");
/// assert_eq!((about.workflow_id(), about.node()), (Some("review"), Some("approval")));
/// # Ok::<(), kortyx_protocol::InvalidId>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Correlation {
    run: Arc<About>,
    place: Option<Place>,
    trace: Option<TraceIds>,
}

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct About {
    run_id: RunId,
    session_id: SessionId,
    /// Not known where only a question or a checkpoint of the run was read.
    workflow: Option<WorkflowPin>,
    context: Arc<BTreeMap<String, Scalar>>,
}

/// A node of a workflow: the run's own, or a child's.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    workflow: Arc<str>,
    /// Not known where only a checkpoint was read.
    node: Option<Arc<str>>,
}

impl Correlation {
    /// About a run of which no more is known.
    pub fn new(run_id: RunId, session_id: SessionId) -> Self {
        let about = About { run_id, session_id, workflow: None, context: Arc::default() };
        Self { run: Arc::new(about), place: None, trace: None }
    }

    /// Tells the definition that the run is bound to.
    #[must_use]
    pub fn bound_to(mut self, workflow: WorkflowPin) -> Self {
        if self.run.workflow.as_ref() != Some(&workflow) {
            Arc::make_mut(&mut self.run).workflow = Some(workflow);
        }
        self
    }

    /// Tells the values that the run can be listed by.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<Arc<BTreeMap<String, Scalar>>>) -> Self {
        Arc::make_mut(&mut self.run).context = context.into();
        self
    }

    /// Tells the place.
    #[must_use]
    pub fn at(mut self, workflow: impl Into<Arc<str>>, node: impl Into<Arc<str>>) -> Self {
        self.place = Some(Place { workflow: workflow.into(), node: Some(node.into()) });
        self
    }

    /// Tells where it is found in tracing.
    #[must_use]
    pub fn traced(mut self, trace: Option<TraceIds>) -> Self {
        self.trace = trace;
        self
    }

    /// About a question, from its record.
    pub(crate) fn of_question(record: &InterruptRecord) -> Self {
        Self::new(record.run_id.clone(), record.session_id.clone())
            .with_context(record.context.clone())
            .at(record.workflow.as_str(), record.node.as_str())
    }

    /// About a run that a checkpoint names, in the checkpoint's session and with what its questions tell.
    pub(crate) fn of_checkpoint(run_id: RunId, record: &CheckpointRecord) -> Self {
        let mut about = Self::new(run_id, record.session_id.clone());
        about.place = Some(Place { workflow: record.checkpoint.workflow.as_str().into(), node: None });
        match record.interrupts.first() {
            Some(question) => about.with_context(question.context.clone()),
            None => about,
        }
    }

    /// About a run, from its record.
    pub(crate) fn of_run(record: &RunRecord) -> Self {
        Self::new(record.run_id.clone(), record.session_id.clone())
            .with_context(record.context.clone())
            .bound_to(record.workflow.clone())
    }

    /// About the run as a whole, wherever it stands.
    pub(crate) fn of_whole_run(mut self) -> Self {
        self.place = None;
        self
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.run.run_id
    }

    /// The run's session.
    pub fn session_id(&self) -> &SessionId {
        &self.run.session_id
    }

    /// The definition that the run is bound to; `None` where only a question or a checkpoint of the run was read, as processes that take
    /// answers do.
    pub fn workflow(&self) -> Option<&WorkflowPin> {
        self.run.workflow.as_ref()
    }

    /// The run's workflow, else the one of the place: for a question of a child, the child's.
    pub fn workflow_id(&self) -> Option<&str> {
        let of_run = self.run.workflow.as_ref().map(|pin| &*pin.id);
        of_run.or_else(|| self.place_workflow())
    }

    /// The values that the run can be listed by: top-level booleans, integers and texts of what the application attached to it.
    pub fn context(&self) -> &BTreeMap<String, Scalar> {
        &self.run.context
    }

    /// The node.
    pub fn node(&self) -> Option<&str> {
        self.place.as_ref()?.node.as_deref()
    }

    /// The workflow that the node belongs to: of a child, the child's own. Of a checkpoint, the one in force after it.
    pub fn place_workflow(&self) -> Option<&str> {
        self.place.as_ref().map(|place| &*place.workflow)
    }

    /// Where it is found in tracing, when the sink says so.
    pub fn trace(&self) -> Option<&TraceIds> {
        self.trace.as_ref()
    }
}

/// Without the values of the context: they are the application's.
impl fmt::Debug for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Correlation");
        shown.field("run_id", &self.run.run_id).field("session_id", &self.run.session_id);
        if let Some(pin) = &self.run.workflow {
            shown.field("workflow", &format_args!("{}@{}", pin.id, pin.version));
        }
        if let Some(place) = &self.place {
            shown.field("place", &format_args!("{}/{}", place.workflow, place.node.as_deref().unwrap_or_default()));
        }
        if let Some(trace) = &self.trace {
            shown.field("trace", trace);
        }
        shown.finish()
    }
}
