//! From a declared workflow to a checked one.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use super::{
    DefinitionError, END, Edge, EdgeIx, Target, When,
    builder::Draft,
    definition::{Definition, Node},
    error::{Misbuilt, Site},
    fingerprint::fingerprint,
    graph::{Graph, forks},
    name::{check_label, check_name, listed, nearest, shown},
    schema::Schema,
};

const MAX_NODES: usize = 1000;
const MAX_EDGES: usize = 10_000;

type Index = BTreeMap<Arc<str>, usize>;

/// Checks a draft and makes the definition of it.
pub(super) fn define(mut draft: Draft) -> Result<Definition, Misbuilt> {
    check_names(&draft)?;
    check_sizes(&draft)?;
    let index = index_nodes(&draft)?;
    check_options(&draft)?;
    let start = find_start(&draft, &index)?;
    check_targets(&draft, &index)?;
    check_conditions(&draft)?;
    let parallel = check_shape(&draft, &index, &start)?;
    let input = compile(&draft.id, "input", draft.input.take(), Site::Input)?;
    let output = compile(&draft.id, "output", draft.output.take(), Site::Output)?;

    draft.edges.sort_unstable();
    let names = draft.nodes.iter().map(|node| &*node.name);
    let fingerprint = fingerprint((&draft.id, &draft.version, &start), names, &draft.edges)
        .map_err(|source| DefinitionError::Fingerprint { workflow: Arc::clone(&draft.id), source }.at(Site::Id))?;
    Ok(Definition {
        nodes: connect(draft.nodes, &draft.edges, &index),
        id: draft.id,
        version: draft.version,
        description: draft.description,
        fingerprint: fingerprint.into(),
        start,
        index,
        edges: draft.edges,
        parallel,
        max_node_executions: draft.max_node_executions,
        limits: draft.limits,
        input,
        output,
    })
}

fn check_names(draft: &Draft) -> Result<(), Misbuilt> {
    let invalid = |what, name: &Arc<str>, site| {
        let name = Arc::clone(name);
        move |reason| DefinitionError::InvalidName { what, name, reason }.at(site)
    };
    check_name(&draft.id).map_err(invalid("workflow id", &draft.id, Site::Id))?;
    check_label(&draft.version).map_err(invalid("version", &draft.version, Site::Version))?;
    for (number, node) in draft.nodes.iter().enumerate() {
        check_name(&node.name).map_err(invalid("node name", &node.name, Site::Node(number)))?;
    }
    for (number, edge) in draft.edges.iter().enumerate() {
        if let When::Condition(condition) = &edge.when {
            check_label(condition).map_err(invalid("condition", condition, Site::EdgeWhen(number)))?;
        }
    }
    Ok(())
}

fn check_sizes(draft: &Draft) -> Result<(), Misbuilt> {
    let workflow = Arc::clone(&draft.id);
    let (nodes, edges) = (draft.nodes.len(), draft.edges.len());
    if nodes == 0 {
        return Err(DefinitionError::NoNodes { workflow }.at(Site::Nodes));
    }
    if nodes > MAX_NODES {
        let error = DefinitionError::TooLarge { workflow, what: "nodes", count: nodes, limit: MAX_NODES };
        return Err(error.at(Site::Nodes));
    }
    if edges > MAX_EDGES {
        let error = DefinitionError::TooLarge { workflow, what: "edges", count: edges, limit: MAX_EDGES };
        return Err(error.at(Site::Edges));
    }
    Ok(())
}

fn index_nodes(draft: &Draft) -> Result<Index, Misbuilt> {
    let mut index = Index::new();
    for (number, node) in draft.nodes.iter().enumerate() {
        if index.insert(Arc::clone(&node.name), number).is_some() {
            let (workflow, node) = (Arc::clone(&draft.id), Arc::clone(&node.name));
            return Err(DefinitionError::DuplicateNode { workflow, node }.at(Site::Node(number)));
        }
    }
    Ok(index)
}

fn check_options(draft: &Draft) -> Result<(), Misbuilt> {
    for (number, node) in draft.nodes.iter().enumerate() {
        node.options.retry.as_ref().map_or(Ok(()), super::Retry::check).map_err(|reason| {
            let (workflow, node) = (Arc::clone(&draft.id), Arc::clone(&node.name));
            DefinitionError::InvalidRetry { workflow, node, reason }.at(Site::Retry(number))
        })?;
    }
    if draft.max_node_executions == Some(0) {
        return Err(DefinitionError::InvalidLimit { workflow: Arc::clone(&draft.id) }.at(Site::Limit));
    }
    Ok(())
}

fn find_start(draft: &Draft, index: &Index) -> Result<Arc<str>, Misbuilt> {
    let workflow = Arc::clone(&draft.id);
    match (&draft.start, draft.nodes.first()) {
        (Some(start), _) if index.contains_key(start) => Ok(Arc::clone(start)),
        (Some(start), _) => {
            let (start, hint) = (Arc::clone(start), hint(start, draft, false));
            Err(DefinitionError::UnknownStart { workflow, start, hint }.at(Site::Start))
        }
        (None, Some(node)) => Ok(Arc::clone(&node.name)),
        (None, None) => Err(DefinitionError::NoNodes { workflow }.at(Site::Nodes)),
    }
}

fn check_targets(draft: &Draft, index: &Index) -> Result<(), Misbuilt> {
    for (number, edge) in draft.edges.iter().enumerate() {
        let unknown = |name: &Arc<str>, is_target, site| {
            let (workflow, hint) = (Arc::clone(&draft.id), hint(name, draft, is_target));
            DefinitionError::UnknownNode { workflow, edge: Box::new(edge.clone()), name: Arc::clone(name), hint }
                .at(site)
        };
        if !index.contains_key(&edge.from) {
            return Err(unknown(&edge.from, false, Site::EdgeFrom(number)));
        }
        if let Some(target) = edge.to.node().filter(|name| !index.contains_key(*name)) {
            return Err(unknown(target, true, Site::EdgeTo(number)));
        }
    }
    Ok(())
}

/// What to write instead of a name that is not a node's.
fn hint(name: &str, draft: &Draft, is_target: bool) -> String {
    let names = || draft.nodes.iter().map(|node| &*node.name);
    if name == END {
        return "nothing follows the end: remove it or correct the name".to_owned();
    }
    if is_target && name.trim_matches('_').eq_ignore_ascii_case("end") {
        return format!("did you mean `{END}`?");
    }
    match nearest(name, names()) {
        Some(near) => format!("did you mean {}?", shown(near)),
        None => format!("add a node of that name or use one of {}", listed(names())),
    }
}

fn check_conditions(draft: &Draft) -> Result<(), Misbuilt> {
    let mut between: HashMap<(&str, &str), HashMap<&When, &Edge>> = HashMap::new();
    for (number, edge) in draft.edges.iter().enumerate() {
        let known = between.entry((&*edge.from, edge.to.as_str())).or_default();
        let earlier = match &edge.when {
            When::Always => known.values().min(),
            when => known.get(when).or_else(|| known.get(&When::Always)),
        };
        if let Some(earlier) = earlier {
            let (edge, earlier) = (Box::new(edge.clone()), Box::new((*earlier).clone()));
            let workflow = Arc::clone(&draft.id);
            return Err(DefinitionError::DuplicateEdge { workflow, edge, earlier }.at(Site::Edge(number)));
        }
        known.insert(&edge.when, edge);
    }
    check_otherwise(draft)
}

fn check_otherwise(draft: &Draft) -> Result<(), Misbuilt> {
    let is_conditional = |edge: &&Edge| matches!(edge.when, When::Condition(_));
    let conditional: HashSet<&str> = draft.edges.iter().filter(is_conditional).map(|edge| &*edge.from).collect();
    let is_alone = |edge: &Edge| edge.when == When::Otherwise && !conditional.contains(&*edge.from);
    match draft.edges.iter().enumerate().find(|(_, edge)| is_alone(edge)) {
        Some((number, edge)) => {
            let (workflow, edge) = (Arc::clone(&draft.id), Box::new(edge.clone()));
            Err(DefinitionError::OtherwiseAlone { workflow, edge }.at(Site::EdgeWhen(number)))
        }
        None => Ok(()),
    }
}

/// Checks reachability and cycles; says whether the graph has a fan-out.
fn check_shape(draft: &Draft, index: &Index, start: &str) -> Result<bool, Misbuilt> {
    let mut graph = Graph::new(draft.nodes.len());
    let mut outgoing: Vec<Vec<&Edge>> = vec![Vec::new(); draft.nodes.len()];
    for (number, edge) in draft.edges.iter().enumerate() {
        let Some(from) = index.get(&edge.from) else { continue };
        if let Some(edges) = outgoing.get_mut(*from) {
            edges.push(edge);
        }
        if let Some(target) = edge.to.node().and_then(|name| index.get(name)) {
            graph.connect(*from, *target, number);
        }
    }
    let named = |number: usize| draft.nodes.get(number).map(|node| Arc::clone(&node.name));
    let first = index.get(start).copied().unwrap_or_default();
    if let Some((number, node)) = graph.unreachable_from(first).and_then(|number| Some((number, named(number)?))) {
        let (workflow, start) = (Arc::clone(&draft.id), start.into());
        return Err(DefinitionError::UnreachableNode { workflow, node, start }.at(Site::Node(number)));
    }
    let Some(fork) = outgoing.iter().position(|edges| forks(edges.iter().copied())).and_then(named) else {
        return Ok(false);
    };
    let Some(cycle) = graph.cycle() else { return Ok(true) };
    let path = cycle.nodes.iter().chain(cycle.nodes.first()).filter_map(|number| named(*number)).collect();
    Err(DefinitionError::GraphCycle { workflow: Arc::clone(&draft.id), path, fork }.at(Site::Edge(cycle.closing_edge)))
}

fn compile(id: &Arc<str>, side: &'static str, schema: Option<Value>, at: Site) -> Result<Option<Schema>, Misbuilt> {
    let compiled = schema.map(Schema::compile).transpose();
    compiled.map_err(|reason| DefinitionError::InvalidSchema { workflow: Arc::clone(id), side, reason }.at(at))
}

/// Gives each node the numbers of its edges. The edges are sorted, so the numbers ascend.
fn connect(nodes: Vec<super::NodeDefinition>, edges: &[Edge], index: &Index) -> Vec<Node> {
    let node = |definition| Node { definition, incoming: Vec::new(), outgoing: Vec::new() };
    let mut nodes: Vec<Node> = nodes.into_iter().map(node).collect();
    for (number, edge) in (0_u32..).zip(edges) {
        if let Some(node) = index.get(&edge.from).and_then(|from| nodes.get_mut(*from)) {
            node.outgoing.push(EdgeIx(number));
        }
        let Target::Node(target) = &edge.to else { continue };
        if let Some(node) = index.get(target).and_then(|target| nodes.get_mut(*target)) {
            node.incoming.push(EdgeIx(number));
        }
    }
    nodes
}
