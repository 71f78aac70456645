//! The text form of a workflow.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::{
    super::{
        Edge, NodeDefinition, Retry, Target, When, Workflow, WorkflowBuilder,
        builder::Draft,
        error::{Misbuilt, Site},
    },
    LoadError, LoadProblem, NodeLibrary,
    place::Place,
};
use crate::Allowances;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    id: Spanned<Arc<str>>,
    version: Spanned<Arc<str>>,
    description: Option<Arc<str>>,
    start: Option<Spanned<Arc<str>>>,
    max_node_executions: Option<Spanned<u32>>,
    limits: Option<BTreeMap<Arc<str>, Option<u64>>>,
    input: Option<Spanned<Value>>,
    output: Option<Spanned<Value>>,
    nodes: Spanned<Vec<Spanned<NodeText>>>,
    edges: Option<Spanned<Vec<Spanned<EdgeText>>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeText {
    id: Spanned<Arc<str>>,
    r#use: Option<Spanned<Arc<str>>>,
    retry: Option<Spanned<RetryText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetryText {
    attempts: u32,
    delay_ms: Option<u64>,
    backoff: Option<f64>,
    max_delay_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EdgeText {
    from: Spanned<Arc<str>>,
    to: Spanned<Arc<str>>,
    when: Option<Spanned<Arc<str>>>,
    otherwise: Option<Spanned<bool>>,
}

/// How much aliases may unfold to, in parser events. Each node and edge takes about ten, so this is plenty.
const MAX_ALIASED_EVENTS: usize = 100_000;

/// Reads YAML, and JSON as the part of YAML that it is.
pub(super) fn load(text: &str, file: &Arc<str>, library: &NodeLibrary) -> Result<Workflow, LoadError> {
    let mut options = serde_saphyr::options! { with_snippet: false };
    options.alias_limits.max_total_replayed_events = MAX_ALIASED_EVENTS;
    let document: Document =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| LoadError::yaml(file, &error))?;
    let draft = document.draft(library).map_err(|(place, problem)| LoadError::new(file, place, problem))?;
    WorkflowBuilder::from(draft).build_located().map_err(|misbuilt| {
        let Misbuilt { error, site } = misbuilt;
        LoadError::new(file, document.place(site), error.into())
    })
}

type Refused = (Option<Place>, LoadProblem);

impl Document {
    fn draft(&self, library: &NodeLibrary) -> Result<Draft, Refused> {
        let mut draft = Draft::new(Arc::clone(&self.id.value));
        draft.version = Arc::clone(&self.version.value);
        draft.description.clone_from(&self.description);
        draft.start = self.start.as_ref().map(|start| Arc::clone(&start.value));
        draft.nodes = self.nodes.value.iter().map(|node| node.value.draft(library)).collect::<Result<_, _>>()?;
        draft.edges = self.edges().map(|edge| edge.value.draft()).collect::<Result<_, _>>()?;
        draft.input = self.input.as_ref().map(|schema| schema.value.clone());
        draft.output = self.output.as_ref().map(|schema| schema.value.clone());
        if let Some(limit) = &self.max_node_executions {
            draft.max_node_executions = Some(limit.value);
        }
        draft.limits = Allowances(self.limits.clone().unwrap_or_default());
        Ok(draft)
    }

    fn edges(&self) -> impl Iterator<Item = &Spanned<EdgeText>> {
        self.edges.iter().flat_map(|edges| &edges.value)
    }

    /// Where the part of the definition stands that an error is about.
    fn place(&self, site: Site) -> Option<Place> {
        let node = |number: usize| self.nodes.value.get(number).map(|node| &node.value);
        let edge = |number: usize| self.edges.as_ref().and_then(|edges| edges.value.get(number));
        match site {
            Site::Id => place(&self.id),
            Site::Version => place(&self.version),
            Site::Start => place(self.start.as_ref()?),
            Site::Nodes => place(&self.nodes),
            Site::Node(number) => place(&node(number)?.id),
            Site::Retry(number) => place(node(number)?.retry.as_ref()?),
            Site::Edges => place(self.edges.as_ref()?),
            Site::Edge(number) => place(edge(number)?),
            Site::EdgeFrom(number) => place(&edge(number)?.value.from),
            Site::EdgeTo(number) => place(&edge(number)?.value.to),
            Site::EdgeWhen(number) => edge(number)?.value.condition_place(),
            Site::Limit => place(self.max_node_executions.as_ref()?),
            Site::Input => place(self.input.as_ref()?),
            Site::Output => place(self.output.as_ref()?),
        }
    }
}

impl NodeText {
    fn draft(&self, library: &NodeLibrary) -> Result<NodeDefinition, Refused> {
        let used = self.r#use.as_ref().unwrap_or(&self.id);
        let Some(found) = library.get(&used.value) else {
            return Err((place(used), LoadProblem::unknown_function(&used.value, library)));
        };
        let mut options = found.options.clone();
        if let Some(retry) = &self.retry {
            options.retry = Some(retry.value.draft());
        }
        Ok(NodeDefinition { name: Arc::clone(&self.id.value), function: Arc::clone(&found.function), options })
    }
}

impl RetryText {
    fn draft(&self) -> Retry {
        let mut retry = Retry::attempts(self.attempts);
        retry.delay = self.delay_ms.map_or(retry.delay, Duration::from_millis);
        retry.backoff = self.backoff.unwrap_or(retry.backoff);
        retry.max_delay = self.max_delay_ms.map_or(retry.max_delay, Duration::from_millis);
        retry
    }
}

impl EdgeText {
    fn draft(&self) -> Result<Edge, Refused> {
        let otherwise = self.otherwise.as_ref().filter(|otherwise| otherwise.value);
        let when = match (&self.when, otherwise) {
            (Some(_), Some(otherwise)) => return Err((place(otherwise), LoadProblem::ConditionAndOtherwise)),
            (Some(condition), None) => When::Condition(Arc::clone(&condition.value)),
            (None, Some(_)) => When::Otherwise,
            (None, None) => When::Always,
        };
        Ok(Edge { from: Arc::clone(&self.from.value), to: Target::named(Arc::clone(&self.to.value)), when })
    }

    fn condition_place(&self) -> Option<Place> {
        match (&self.when, &self.otherwise) {
            (Some(when), _) => place(when),
            (None, Some(otherwise)) => place(otherwise),
            (None, None) => place(&self.from),
        }
    }
}

fn place<T>(spanned: &Spanned<T>) -> Option<Place> {
    Place::of(spanned.referenced)
}
