//! The way through a graph: what begins when a node has ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kortyx_contracts::Choice;
use kortyx_protocol::{Failure, FailureCode, RawJson, StreamChunk};

use crate::{
    NodeContext, NodeError, NodeOutput, NodeResult,
    event::{Event, StateWrites},
    meter::{self, Reached},
    observe::News,
    output::Handoff,
    shared::Core,
    state::{Branch, Closed, Frame, INITIAL_WRITER, Pin, ROOT, View},
    workflow::{Definition, DefinitionPin, EdgeIx, Registry, Target, When},
};

/// How a frame ended: its data, or the first failure.
pub(crate) type FrameEnd = Result<RawJson, Failure>;

/// Begins a frame at its workflow's first node.
pub(crate) fn begin_frame(core: &mut Core, definition: &Definition, frame: u32) {
    let branch = definition.is_parallel().then(|| {
        let data = core.state.frame(frame).map(|frame| frame.data.clone()).unwrap_or_default();
        let view = data.into_iter().map(|(field, value)| (field, (value, INITIAL_WRITER))).collect();
        branch(view, BTreeSet::from([INITIAL_WRITER]))
    });
    start_node(core, frame, definition.start().clone(), branch);
}

fn branch(view: View, ancestors: BTreeSet<u32>) -> Branch {
    Branch { view, ancestors, reads: BTreeMap::new() }
}

fn start_node(core: &mut Core, frame: u32, node: Arc<str>, branch: Option<Branch>) {
    let at_limit = core.state.executions >= core.state.allowance;
    let activation = core.state.next_activation;
    core.emit(Event::Started { activation, frame, node, at_limit, branch, at: None });
}

/// Takes the output of an activation in and begins what follows. An error is the node's own: it may be tried again.
pub(crate) fn complete(
    core: &mut Core,
    registry: &Registry,
    id: u32,
    mut output: NodeOutput,
    state: StateWrites,
) -> Result<(), NodeError> {
    let Some(place) = Place::of(core, registry, id) else { return Ok(()) };
    let Place { frame, node, definition, at_limit, .. } = &place;
    if let Some(reached) = &place.reached {
        meter::answered(core, id, reached, &output);
        return Ok(());
    }
    if *at_limit {
        go_on_after_limit(core, registry, id, &place, &output);
        return Ok(());
    }
    if let Some(intent) = output.intent.take() {
        output.data.insert("intent".into(), RawJson::of(&intent)?);
    }
    if let Some(handoff) = output.handoff.take() {
        return hand_off(core, registry, id, output, state, &handoff);
    }
    let selected = definition
        .route(node, output.condition.as_deref())
        .map_err(|error| Failure::new(FailureCode::NoRoute, error.to_string()))?;
    core.withdraw_asks(id);
    note_transitions(core, definition, &selected);
    match core.state.activations.get_mut(&id).and_then(|activation| activation.branch.take()) {
        None => {
            core.emit(Event::Completed { activation: id, data: output.data, state, closed: None });
            let targets = selected.into_iter().filter_map(|edge| definition.edge(edge).to.node().cloned());
            for node in targets {
                start_node(core, *frame, node, None);
            }
        }
        Some(branch) => {
            let closed = close_branch(id, branch, output, &selected);
            core.emit(Event::Completed { activation: id, data: BTreeMap::new(), state, closed: Some(closed) });
            settle(core, definition, *frame, node);
        }
    }
    Ok(())
}

/// Notes for whoever is told where a node leads.
fn note_transitions(core: &mut Core, definition: &Definition, selected: &[EdgeIx]) {
    for edge in selected {
        let edge = definition.edge(*edge);
        core.note_news(|| {
            let condition = if let When::Condition(condition) = &edge.when { Some(condition.clone()) } else { None };
            News::Transitioned { to: edge.to.node().cloned(), condition }
        });
    }
}

/// Where an activation is.
struct Place {
    frame: u32,
    node: Arc<str>,
    definition: Arc<Definition>,
    at_limit: bool,
    reached: Option<Arc<Reached>>,
    is_branch: bool,
}

impl Place {
    fn of(core: &Core, registry: &Registry, id: u32) -> Option<Self> {
        let activation = core.state.activations.get(&id)?;
        let definition = definition_of(core, registry, activation.frame)?;
        let (frame, node) = (activation.frame, activation.node.clone());
        let (at_limit, is_branch) = (activation.at_limit, activation.branch.is_some());
        let reached = activation.reached.clone();
        Some(Self { frame, node, definition, at_limit, reached, is_branch })
    }
}

/// Ends an activation in a failure; its dependents fail with it, others go on.
pub(crate) fn fail(core: &mut Core, registry: &Registry, id: u32, error: NodeError) {
    let Some(place) = Place::of(core, registry, id) else { return };
    let failure = error.into_failure(place.definition.id(), &place.node);
    fail_with(core, id, &place, failure);
}

fn fail_with(core: &mut Core, id: u32, place: &Place, failure: Failure) {
    core.withdraw_asks(id);
    core.emit(Event::Failed { activation: id, failure });
    if place.is_branch {
        settle(core, &place.definition, place.frame, &place.node);
    }
}

/// How long to wait before the node's next attempt; `None` when there is none, or when it could only fail alike.
pub(crate) fn retry_delay(core: &Core, registry: &Registry, id: u32, error: &NodeError) -> Option<Duration> {
    if !error.is_retryable() {
        return None;
    }
    let activation = core.state.activations.get(&id)?;
    let definition = definition_of(core, registry, activation.frame)?;
    let retry = definition.node(&activation.node)?.options.retry.as_ref().filter(|_| !activation.at_limit)?;
    let attempt = activation.failures.saturating_add(2);
    (attempt <= retry.attempts).then(|| retry.delay_before(attempt))
}

/// The end of a frame without activations.
pub(crate) fn end_of_frame(core: &Core, registry: &Registry, id: u32) -> FrameEnd {
    let gone = || Failure::new(FailureCode::ExecutionFailed, "the workflow is no longer part of the run");
    let frame = core.state.frame(id).ok_or_else(gone)?;
    if let Some(failure) = &frame.failure {
        return Err(failure.clone());
    }
    let definition = definition_of(core, registry, id).ok_or_else(gone)?;
    let data = if definition.is_parallel() { final_data(frame, &definition)? } else { frame.data.clone() };
    let output = RawJson::of(&data).map_err(|error| Failure::new(FailureCode::InvalidOutput, error.to_string()))?;
    definition.validate_output(&output).map_err(|issues| {
        let message = format!("the data of the workflow `{}` does not fit its output schema", definition.id());
        Failure::new(FailureCode::InvalidOutput, message).with_issues(issues)
    })?;
    Ok(output)
}

/// Asks whether a run that used up its node executions may go on.
pub(crate) async fn ask_for_more(ctx: NodeContext) -> NodeResult {
    let (consumed, maximum) = ctx.0.with(|core| (core.state.executions, core.state.allowance))?;
    let limit = StreamChunk::LimitReached {
        run_id: ctx.run_id().clone(),
        limit: "max_node_executions".into(),
        maximum,
        consumed,
    };
    ctx.emit(limit).await;
    let question = format!("The run has entered {consumed} nodes, as many as it may. Let it go on?");
    let ask = Choice::new(question).option("continue", "Go on").option("stop", "Stop");
    let answer = ctx.interrupt("limit-reached", ask).await?;
    Ok(NodeOutput::new().condition(answer))
}

/// Tells the client about a handoff, once its target is known to exist and to take the input.
pub(crate) async fn announce_handoff(ctx: &NodeContext, handoff: &Handoff) -> Result<(), NodeError> {
    let registry = &ctx.0.shared.registry;
    let own = ctx.0.with(|core| definition_of(core, registry, ctx.0.frame))?;
    if own.is_some_and(|definition| definition.is_parallel()) {
        let message =
            "a node of a workflow with fan-out cannot hand the run over; return to a sequential workflow first";
        return Err(Failure::new(FailureCode::GraphBranchHandoff, message).into());
    }
    let target = registry.latest(&handoff.workflow).ok_or_else(|| {
        let message = format!("the workflow `{}` of the handoff is not registered", handoff.workflow);
        Failure::new(FailureCode::UnknownWorkflow, message)
    })?;
    let input = match &handoff.input {
        Some(input) => input.clone(),
        None => ctx.0.with(|core| core.state.frame(ctx.0.frame).map(|frame| frame.input.clone()))?.unwrap_or_default(),
    };
    target.validate_input(&input).map_err(|issues| {
        let message = format!("the input of the handoff does not fit the workflow `{}`", handoff.workflow);
        Failure::new(FailureCode::InvalidInput, message).with_issues(issues)
    })?;
    let payload = handoff.input.as_ref().map(RawJson::to_value).transpose()?.unwrap_or_default();
    ctx.emit(StreamChunk::Transition { transition_to: handoff.workflow.as_str().into(), payload }).await;
    Ok(())
}

fn hand_off(
    core: &mut Core,
    registry: &Registry,
    id: u32,
    output: NodeOutput,
    state: StateWrites,
    handoff: &Handoff,
) -> Result<(), NodeError> {
    let Some(frame) = core.state.activations.get(&id).map(|activation| activation.frame) else { return Ok(()) };
    let target = registry.latest(&handoff.workflow).cloned().ok_or_else(|| {
        Failure::new(FailureCode::UnknownWorkflow, format!("the workflow `{}` is not registered", handoff.workflow))
    })?;
    core.withdraw_asks(id);
    core.emit(Event::Completed { activation: id, data: output.data, state, closed: None });
    core.note_news(|| News::HandedOff { workflow: target.id().clone(), version: target.version().clone() });
    core.emit(Event::HandedOff { frame, pin: Pin::of(&target), input: handoff.input.clone() });
    begin_frame(core, &target, frame);
    Ok(())
}

fn go_on_after_limit(core: &mut Core, registry: &Registry, id: u32, place: &Place, output: &NodeOutput) {
    if output.condition.as_deref() != Some("continue") {
        let message = format!("the run was stopped after {} node executions", core.state.executions);
        return fail_with(core, id, place, Failure::new(FailureCode::LimitReached, message));
    }
    let branch = core.state.activations.get_mut(&id).and_then(|activation| activation.branch.take());
    let (data, state) = (BTreeMap::new(), StateWrites::default());
    core.emit(Event::Completed { activation: id, data, state, closed: None });
    let root = definition_of(core, registry, ROOT);
    let more = root.and_then(|root| root.max_node_executions()).map_or(u64::MAX, u64::from);
    core.emit(Event::Allowed { more });
    start_node(core, place.frame, place.node.clone(), branch);
}

fn close_branch(id: u32, branch: Branch, output: NodeOutput, selected: &[EdgeIx]) -> Closed {
    let Branch { mut view, mut ancestors, .. } = branch;
    view.extend(output.data.into_iter().map(|(field, value)| (field, (value, id))));
    ancestors.insert(id);
    Closed::Done { selected: selected.iter().map(|edge| edge.get()).collect(), view, ancestors }
}

/// Decides over every node whose predecessors have all ended since `node` has.
fn settle(core: &mut Core, definition: &Definition, frame: u32, node: &str) {
    let mut ended: Vec<Arc<str>> = vec![node.into()];
    while let Some(node) = ended.pop() {
        for edge in definition.outgoing(&node) {
            let Target::Node(target) = &definition.edge(*edge).to else { continue };
            let Some(found) = core.state.frame(frame) else { return };
            let mut active = core.state.activations.values().filter(|activation| activation.frame == frame);
            if found.closed.contains_key(&**target) || active.any(|activation| activation.node == *target) {
                continue;
            }
            match decide(found, definition, target) {
                Entry::NotYet => {}
                Entry::Start(branch) => start_node(core, frame, target.clone(), Some(branch)),
                Entry::Close(closed) => {
                    core.emit(Event::NotEntered { frame, node: target.clone(), closed });
                    ended.push(target.clone());
                }
            }
        }
    }
}

/// What becomes of a node whose predecessors are looked at.
enum Entry {
    NotYet,
    Start(Branch),
    Close(Closed),
}

fn decide(frame: &Frame, definition: &Definition, node: &str) -> Entry {
    let mut joined: Vec<(&View, &BTreeSet<u32>)> = Vec::new();
    for edge in definition.incoming(node) {
        let from = &definition.edge(*edge).from;
        match frame.closed.get(&**from) {
            None => return Entry::NotYet,
            Some(Closed::Failed(_)) => {
                let message = format!("the node `{node}` needs `{from}`, which failed");
                return Entry::Close(Closed::Failed(Failure::new(FailureCode::GraphDependencyFailed, message)));
            }
            Some(Closed::Done { selected, view, ancestors }) if selected.contains(&edge.get()) => {
                joined.push((view, ancestors));
            }
            Some(Closed::Done { .. } | Closed::Skipped) => {}
        }
    }
    if joined.is_empty() {
        return Entry::Close(Closed::Skipped);
    }
    match merge(frame, &joined, node) {
        Ok((view, ancestors)) => Entry::Start(branch(view, ancestors)),
        Err(failure) => Entry::Close(Closed::Failed(failure)),
    }
}

/// Merges what the branches of a join see. A field that one wrote after the other had seen it is the later one's; a field
/// that both wrote apart is a conflict.
fn merge(frame: &Frame, branches: &[(&View, &BTreeSet<u32>)], node: &str) -> Result<(View, BTreeSet<u32>), Failure> {
    let mut view = View::new();
    let mut ancestors = BTreeSet::new();
    for (theirs, before) in branches {
        for (field, (value, writer)) in *theirs {
            let keep = match view.get(field) {
                None => false,
                Some((_, known)) if known == writer || ancestors.contains(writer) => true,
                Some((_, known)) if before.contains(known) => false,
                Some((_, known)) => return Err(conflict(frame, field, [*known, *writer], node)),
            };
            if !keep {
                view.insert(field.clone(), (value.clone(), *writer));
            }
        }
        ancestors.extend(before.iter().copied());
    }
    Ok((view, ancestors))
}

fn conflict(frame: &Frame, field: &str, writers: [u32; 2], node: &str) -> Failure {
    let name = |writer: u32| {
        let wrote = |closed: &&String| match frame.closed.get(*closed) {
            Some(Closed::Done { view, ancestors, .. }) => {
                view.get(field).is_some_and(|(_, by)| *by == writer) && ancestors.iter().next_back() == Some(&writer)
            }
            _ => false,
        };
        frame.closed.keys().find(wrote).cloned().unwrap_or_else(|| format!("activation {writer}"))
    };
    let [first, second] = writers.map(name);
    let message = format!(
        "the nodes `{first}` and `{second}` both wrote the field `{field}` on branches that join at {node}; \
         let each branch write fields of its own"
    );
    Failure::new(FailureCode::GraphOutputConflict, message)
}

/// The data of a workflow with fan-out: what the nodes that ended a path saw.
fn final_data(frame: &Frame, definition: &Definition) -> Result<BTreeMap<String, RawJson>, Failure> {
    let ends = |name: &str, selected: &[u32]| {
        let outgoing = definition.outgoing(name);
        let to_end = |edge: &&EdgeIx| selected.contains(&edge.get()) && definition.edge(**edge).to == Target::End;
        outgoing.is_empty() || outgoing.iter().any(|edge| to_end(&edge))
    };
    let last = frame.closed.iter().filter_map(|(name, closed)| match closed {
        Closed::Done { selected, view, ancestors } if ends(name, selected) => Some((view, ancestors)),
        _ => None,
    });
    let (view, _) = merge(frame, &last.collect::<Vec<_>>(), "the end")?;
    Ok(view.into_iter().map(|(field, (value, _))| (field, value)).collect())
}

pub(crate) fn definition_of(core: &Core, registry: &Registry, frame: u32) -> Option<Arc<Definition>> {
    let pin = &core.state.frame(frame)?.workflow;
    registry.get(&pin.id, &pin.version).cloned()
}

impl Pin {
    pub(crate) fn of(definition: &Definition) -> Self {
        let DefinitionPin { id, version, fingerprint } = DefinitionPin::of(definition);
        Self { id, version, fingerprint }
    }
}
