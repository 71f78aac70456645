//! The declaration of a workflow in code.

use std::{marker::PhantomData, sync::Arc};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{DefinitionError, Edge, NodeDefinition, NodeOptions, Target, When, Workflow, check, error::Misbuilt, node};
use crate::{Allowances, Counter, NodeContext, NodeResult};

/// How many activations a run may have when nothing else is set.
const DEFAULT_MAX_NODE_EXECUTIONS: u32 = 1000;

/// Collects the parts of a workflow. Mistakes are reported by [`build`](Self::build).
///
/// ```
/// use kortyx_runtime::{NodeOutput, Workflow};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Order { amount: u32 }
///
/// let workflow: Workflow<Order, bool> = Workflow::builder("order")
///     .input::<Order>()
///     .output::<bool>()
///     .node("check", |_| async { Ok(NodeOutput::new()) })
///     .build()?;
/// assert!(workflow.definition().input_schema().is_some());
/// # Ok::<(), kortyx_runtime::workflow::DefinitionError>(())
/// ```
#[must_use]
pub struct WorkflowBuilder<I = Value, O = Value> {
    draft: Draft,
    types: PhantomData<fn(I) -> O>,
}

/// A workflow as declared, not yet checked.
pub(super) struct Draft {
    pub(super) id: Arc<str>,
    pub(super) version: Arc<str>,
    pub(super) description: Option<Arc<str>>,
    pub(super) start: Option<Arc<str>>,
    pub(super) nodes: Vec<NodeDefinition>,
    pub(super) edges: Vec<Edge>,
    pub(super) max_node_executions: Option<u32>,
    pub(super) limits: Allowances,
    pub(super) input: Option<Value>,
    pub(super) output: Option<Value>,
}

impl WorkflowBuilder {
    pub(super) fn new(id: Arc<str>) -> Self {
        Self::from(Draft::new(id))
    }

    /// Sets a JSON Schema that every input must fit, when there is no Rust type for it.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.draft.input = Some(schema);
        self
    }

    /// Sets a JSON Schema that every output must fit, when there is no Rust type for it.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.draft.output = Some(schema);
        self
    }
}

impl<I, O> WorkflowBuilder<I, O> {
    /// Sets the version; `1` when not set. New runs take the highest registered one, paused runs keep their own.
    pub fn version(mut self, version: impl Into<Arc<str>>) -> Self {
        self.draft.version = version.into();
        self
    }

    /// Says what the workflow is for.
    pub fn description(mut self, description: impl Into<Arc<str>>) -> Self {
        self.draft.description = Some(description.into());
        self
    }

    /// Makes `I2` the input type: every input must fit its JSON Schema.
    pub fn input<I2: JsonSchema + Serialize>(mut self) -> WorkflowBuilder<I2, O> {
        self.draft.input = Some(schemars::schema_for!(I2).to_value());
        WorkflowBuilder { draft: self.draft, types: PhantomData }
    }

    /// Makes `O2` the output type: every output must fit its JSON Schema.
    pub fn output<O2: JsonSchema + DeserializeOwned>(mut self) -> WorkflowBuilder<I, O2> {
        self.draft.output = Some(schemars::schema_for!(O2).to_value());
        WorkflowBuilder { draft: self.draft, types: PhantomData }
    }

    /// Adds a node. The first one is the start unless [`start`](Self::start) names another.
    pub fn node<F, Fut>(self, name: impl Into<Arc<str>>, function: F) -> Self
    where
        F: Fn(NodeContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = NodeResult> + Send + 'static,
    {
        self.node_with(name, NodeOptions::new(), function)
    }

    /// Adds a node with options, such as a retry.
    pub fn node_with<F, Fut>(mut self, name: impl Into<Arc<str>>, options: NodeOptions, function: F) -> Self
    where
        F: Fn(NodeContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = NodeResult> + Send + 'static,
    {
        self.draft.nodes.push(NodeDefinition { name: name.into(), function: node::node_fn(function), options });
        self
    }

    /// Leads from a node to another, or to [`END`](super::END), whatever its output.
    pub fn edge(self, from: impl Into<Arc<str>>, to: impl Into<Arc<str>>) -> Self {
        self.push_edge(from.into(), to.into(), When::Always)
    }

    /// Leads from a node to another when the node's output has this condition.
    pub fn edge_if(self, from: impl Into<Arc<str>>, to: impl Into<Arc<str>>, condition: impl Into<Arc<str>>) -> Self {
        self.push_edge(from.into(), to.into(), When::Condition(condition.into()))
    }

    /// Leads from a node to another when none of the node's conditional edges matches.
    pub fn otherwise(self, from: impl Into<Arc<str>>, to: impl Into<Arc<str>>) -> Self {
        self.push_edge(from.into(), to.into(), When::Otherwise)
    }

    fn push_edge(mut self, from: Arc<str>, to: Arc<str>, when: When) -> Self {
        self.draft.edges.push(Edge { from, to: Target::named(to), when });
        self
    }

    /// Names the node that a run begins with.
    pub fn start(mut self, node: impl Into<Arc<str>>) -> Self {
        self.draft.start = Some(node.into());
        self
    }

    /// Limits the activations of a run; 1000 when not set. A run that reaches the limit asks whether to go on.
    pub fn max_node_executions(mut self, limit: u32) -> Self {
        self.draft.max_node_executions = Some(limit);
        self
    }

    /// Lets a run have any number of activations.
    pub fn unlimited_node_executions(mut self) -> Self {
        self.draft.max_node_executions = None;
        self
    }

    /// Limits how much a run may use of a counter, with its branches and its children, before it asks whether to go on. The limits of
    /// the workflow that the run begins with count, not those of its children.
    pub fn limit(mut self, counter: Counter, most: u64) -> Self {
        self.draft.limits = self.draft.limits.limit(counter, most);
        self
    }

    /// Lets a run use any amount of a counter.
    pub fn unlimited(mut self, counter: Counter) -> Self {
        self.draft.limits = self.draft.limits.unlimited(counter);
        self
    }

    /// Checks the workflow and makes it immutable.
    pub fn build(self) -> Result<Workflow<I, O>, DefinitionError> {
        self.build_located().map_err(|misbuilt| misbuilt.error)
    }

    pub(super) fn build_located(self) -> Result<Workflow<I, O>, Misbuilt> {
        check::define(self.draft).map(Workflow::new)
    }
}

impl Draft {
    pub(super) fn new(id: Arc<str>) -> Self {
        Self {
            id,
            version: "1".into(),
            description: None,
            start: None,
            nodes: Vec::new(),
            edges: Vec::new(),
            max_node_executions: Some(DEFAULT_MAX_NODE_EXECUTIONS),
            limits: Allowances::new(),
            input: None,
            output: None,
        }
    }
}

impl From<Draft> for WorkflowBuilder {
    fn from(draft: Draft) -> Self {
        Self { draft, types: PhantomData }
    }
}
