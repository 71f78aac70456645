//! Changes of a run's state. Live code changes the state only by applying events, so replaying them gives the same.

use std::{collections::BTreeMap, sync::Arc};

use kortyx_protocol::{Failure, RawJson};
use serde::{Deserialize, Serialize};

use crate::{
    meter::{Level, Reached},
    state::{
        Activation, Asked, Branch, CallKey, Child, Closed, Entry, Frame, Journal, Kind, Parent, Phase, Pin, ROOT,
        RunState,
    },
    step_streams::{Said, Stand},
};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Event {
    /// An activation of a node begins.
    Started {
        activation: u32,
        frame: u32,
        node: Arc<str>,
        at_limit: bool,
        branch: Option<Branch>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<i64>,
    },
    /// An activation ended well.
    Completed { activation: u32, data: BTreeMap<String, RawJson>, state: StateWrites, closed: Option<Closed> },
    /// An activation ended in a failure that is final.
    Failed { activation: u32, failure: Failure },
    /// A node of a graph with fan-out is not entered.
    NotEntered { frame: u32, node: Arc<str>, closed: Closed },
    /// A call completed.
    Journaled { activation: u32, entry: Entry },
    /// Questions are known to storage.
    Published { activation: u32, asks: Vec<Asked> },
    /// Nobody waits for these questions any more.
    Withdrawn { activation: u32, keys: Vec<CallKey> },
    /// The node dropped a step or a child call before it completed.
    Abandoned { activation: u32, key: CallKey },
    /// A child workflow begins.
    Called { activation: u32, key: CallKey, identity: Arc<str>, frame: u32, pin: Pin, input: RawJson },
    /// A chunk was delivered.
    Emitted { activation: u32, hash: Arc<str> },
    /// The clock was read.
    Clock { activation: u32, millis: i64 },
    /// A random id was given out.
    Random { activation: u32, id: String },
    /// A branch read the workflow state.
    Read { activation: u32, key: String, value: Option<RawJson> },
    /// An attempt failed and another follows.
    Retried { activation: u32 },
    /// The frame goes on in another workflow.
    HandedOff { frame: u32, pin: Pin, input: Option<RawJson> },
    /// A person allowed more node executions.
    Allowed { more: u64 },
    /// Answers up to this number were received.
    AnswersSeen { seq: u64 },
    /// A call took one of each of these from what the run may use.
    Took { activation: u32, key: CallKey, counters: Vec<Arc<str>> },
    /// A step used this much.
    Spent { counter: Arc<str>, amount: u64 },
    /// How far a counter is was read.
    LevelRead { activation: u32, level: Level },
    /// An activation can do nothing until a person lets the run exceed these limits.
    Held { activation: u32, counters: Vec<Arc<str>> },
    /// A limit is reached: an activation of the run's own asks whether to go on.
    LimitReached { activation: u32, node: Arc<str>, reached: Reached },
    /// A person lets the run go on, up to there.
    Granted { counter: Arc<str>, allowed: u64 },
    /// A person does not let the run go on.
    Stopped { failure: Box<Failure> },
    /// A node marked something for the whole run, or took the mark away.
    Marked { activation: u32, key: CallKey, mark: Arc<str>, on: bool },
    /// A tracked run wrote to a structured stream for the first time in its turn, or a step to one that it opened.
    Streamed {
        stream: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<Said>,
    },
}

/// State that an activation set; it takes effect when the activation completes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct StateWrites {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) node: BTreeMap<String, RawJson>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) workflow: BTreeMap<String, RawJson>,
}

impl Event {
    /// Where it notes when it happened. Answers have the times that storage gives them.
    pub(crate) fn time(&mut self) -> Option<&mut Option<i64>> {
        match self {
            Self::Started { at, .. } => Some(at),
            Self::Journaled { entry, .. } if entry.kind != Kind::Interrupt => Some(&mut entry.at),
            _ => None,
        }
    }

    /// Whether what follows depends on it in a way that replay could decide differently: such events are stored
    /// before the next effect begins.
    pub(crate) fn is_decisive(&self) -> bool {
        !matches!(
            self,
            Self::Emitted { .. }
                | Self::Journaled { .. }
                | Self::AnswersSeen { .. }
                | Self::Retried { .. }
                | Self::Streamed { .. }
                | Self::Took { .. }
                | Self::Spent { .. }
                | Self::Held { .. }
                | Self::Marked { .. }
        )
    }
}

/// An entry of several events, as storage keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EventBatch {
    pub(crate) v: u32,
    pub(crate) events: Vec<Event>,
}

impl RunState {
    /// Applies an event. One that refers to something gone changes nothing.
    pub(crate) fn apply(&mut self, event: Event) {
        match event {
            Event::Started { activation, frame, node, at_limit, branch, at } => {
                self.apply_started(activation, frame, node, at_limit, branch);
                if let Some(activation) = self.activations.get_mut(&activation) {
                    activation.at = at;
                }
            }
            Event::Completed { activation, data, state, closed } => {
                self.apply_completed(activation, data, state, closed);
            }
            Event::Failed { activation, failure } => self.apply_failed(activation, failure),
            Event::NotEntered { frame, node, closed } => {
                if let Some(frame) = self.frames.get_mut(&frame) {
                    frame.note_failure(&closed);
                    frame.closed.insert(node.to_string(), closed);
                }
            }
            Event::Called { activation, key, identity, frame, pin, input } => {
                self.apply_called(activation, key, identity, frame, pin, input);
            }
            Event::HandedOff { frame, pin, input } => {
                if let Some(frame) = self.frames.get_mut(&frame) {
                    frame.workflow = pin;
                    frame.input = input.unwrap_or_else(|| frame.input.clone());
                }
            }
            Event::Allowed { more } => self.allowance = self.allowance.saturating_add(more),
            Event::AnswersSeen { seq } => self.answers_seen = self.answers_seen.max(seq),
            Event::Streamed { stream, step } => {
                let is_written = step.as_ref().is_none_or(|said| said.what != Stand::TakenBack);
                if let Some(trace) = self.trace.as_mut().filter(|_| is_written) {
                    trace.write_to(stream.clone());
                }
                if let Some(said) = step {
                    self.apply_said(stream, said);
                }
            }
            Event::Abandoned { activation, key } => {
                self.close_child(activation, &key);
                if let Some(activation) = self.activations.get_mut(&activation) {
                    activation.journal.taken.retain(|taken| *taken != key);
                    activation.journal.abandoned.push(key);
                }
            }
            Event::Spent { counter, amount } => self.meters.spend(counter, amount),
            Event::LimitReached { activation, node, reached } => self.apply_limit_reached(activation, node, reached),
            Event::Granted { counter, allowed } => self.grant(&counter, allowed),
            Event::Stopped { failure } => drop(self.meters.stopped.get_or_insert(*failure)),
            Event::Took { activation, .. } | Event::Marked { activation, .. } => {
                self.apply_to_run(activation, event);
            }
            Event::Journaled { activation, .. }
            | Event::Published { activation, .. }
            | Event::Withdrawn { activation, .. }
            | Event::Emitted { activation, .. }
            | Event::Clock { activation, .. }
            | Event::Random { activation, .. }
            | Event::Read { activation, .. }
            | Event::LevelRead { activation, .. }
            | Event::Held { activation, .. }
            | Event::Retried { activation } => self.apply_to_activation(activation, event),
        }
    }

    fn apply_to_activation(&mut self, id: u32, event: Event) {
        if let Event::Journaled { entry, .. } = &event {
            self.response_completed |= entry.kind == Kind::Response;
            self.close_child(id, &entry.key);
        }
        let Some(activation) = self.activations.get_mut(&id) else { return };
        let journal = &mut activation.journal;
        match event {
            Event::Journaled { entry, .. } => {
                // What the step said counts now.
                journal.streams.retain(|stream| stream.key != entry.key);
                let answered = journal.asks.iter().position(|ask| ask.key == entry.key);
                journal.taken.retain(|taken| *taken != entry.key);
                journal.log.push(entry);
                if let Some(ask) = answered.map(|at| journal.asks.remove(at)) {
                    let others =
                        ask.group.is_some_and(|group| journal.asks.iter().any(|o| o.group.as_ref() == Some(&group)));
                    if !others {
                        self.make_ready(id);
                    }
                }
            }
            Event::Published { asks, .. } => {
                journal.asks.extend(asks);
                activation.phase = Phase::Waiting;
            }
            Event::Withdrawn { keys, .. } => journal.asks.retain(|ask| !keys.contains(&ask.key)),
            Event::Emitted { hash, .. } => {
                let count = journal.emitted.entry(hash.to_string()).or_default();
                *count = count.saturating_add(1);
            }
            Event::Clock { millis, .. } => journal.clock.push(millis),
            Event::Random { id, .. } => journal.random.push(id),
            Event::Retried { .. } => {
                activation.failures = activation.failures.saturating_add(1);
                journal.abandoned.clear();
                // What is begun again is used again.
                journal.taken.clear();
            }
            Event::LevelRead { level, .. } => journal.levels.push(level),
            Event::Held { counters, .. } => activation.held = counters,
            Event::Read { key, value, .. } => {
                if let Some(branch) = &mut activation.branch {
                    branch.reads.entry(key).or_insert(value);
                }
            }
            _ => {}
        }
    }

    /// Changes of the whole run that an activation makes once.
    fn apply_to_run(&mut self, id: u32, event: Event) {
        let journal = self.activations.get_mut(&id).map(|activation| &mut activation.journal);
        match event {
            Event::Took { key, counters, .. } => {
                for counter in counters {
                    self.meters.spend(counter, 1);
                }
                if let Some(journal) = journal {
                    journal.taken.push(key);
                }
            }
            Event::Marked { key, mark, on, .. } => {
                let _ = if on { self.marks.insert(mark) } else { self.marks.remove(&mark) };
                if let Some(journal) = journal {
                    journal.marked.push(key);
                }
            }
            _ => {}
        }
    }

    fn apply_limit_reached(&mut self, id: u32, node: Arc<str>, reached: Reached) {
        self.next_activation = self.next_activation.max(id.saturating_add(1));
        let mut asking = Activation::new(ROOT, node, 0, None);
        (asking.at_limit, asking.reached) = (true, Some(Arc::new(reached)));
        self.activations.insert(id, Box::new(asking));
    }

    fn apply_started(&mut self, id: u32, frame_id: u32, node: Arc<str>, at_limit: bool, branch: Option<Branch>) {
        let Some(frame) = self.frames.get_mut(&frame_id) else { return };
        let visits = frame.visits.entry(format!("{}/{node}", frame.workflow.id)).or_default();
        let visit = *visits;
        if !at_limit {
            *visits = visits.saturating_add(1);
            self.executions = self.executions.saturating_add(1);
        }
        self.next_activation = self.next_activation.max(id.saturating_add(1));
        if let Some(trace) = self.trace.as_mut().filter(|_| frame_id == ROOT && !at_limit) {
            trace.enter(id, &node);
        }
        let activation = Activation { at_limit, ..Activation::new(frame_id, node, visit, branch) };
        self.activations.insert(id, Box::new(activation));
    }

    fn apply_completed(
        &mut self,
        id: u32,
        data: BTreeMap<String, RawJson>,
        state: StateWrites,
        closed: Option<Closed>,
    ) {
        let Some(activation) = self.remove_activation(id) else { return };
        let Some(frame) = self.frames.get_mut(&activation.frame) else { return };
        frame.workflow_state.extend(state.workflow);
        if !state.node.is_empty() {
            let name = format!("{}/{}", frame.workflow.id, activation.node);
            frame.node_state.entry(name).or_default().extend(state.node);
        }
        match closed {
            Some(closed) => drop(frame.closed.insert(activation.node.to_string(), closed)),
            None => frame.data.extend(data),
        }
    }

    fn apply_failed(&mut self, id: u32, failure: Failure) {
        let Some(activation) = self.remove_activation(id) else { return };
        let Some(frame) = self.frames.get_mut(&activation.frame) else { return };
        let closed = Closed::Failed(failure);
        frame.note_failure(&closed);
        if activation.branch.is_some() {
            frame.closed.insert(activation.node.to_string(), closed);
        }
    }

    fn apply_called(
        &mut self,
        activation: u32,
        key: CallKey,
        identity: Arc<str>,
        frame: u32,
        pin: Pin,
        input: RawJson,
    ) {
        let Some(caller) = self.activations.get_mut(&activation) else { return };
        caller.journal.children.push(Child { key: key.clone(), identity, frame });
        caller.journal.calls = caller.journal.calls.saturating_add(1);
        let depth = self.frames.get(&caller.frame).map_or(0, |frame| frame.depth).saturating_add(1);
        self.next_frame = self.next_frame.max(frame.saturating_add(1));
        let parent = Some(Parent { activation, key });
        self.frames.insert(frame, Box::new(Frame::new(parent, depth, pin, input)));
    }

    /// The activation has something to do, and so have those that wait for it to end.
    pub(crate) fn make_ready(&mut self, activation: u32) {
        let mut next = Some(activation);
        while let Some((id, activation)) = next.and_then(|id| Some((id, self.activations.get_mut(&id)?))) {
            activation.phase = Phase::Ready;
            let frame = activation.frame;
            if let Some(trace) = self.trace.as_mut().filter(|_| frame == ROOT && !activation.at_limit) {
                trace.enter(id, &activation.node);
            }
            next = self.frames.get(&frame).and_then(|frame| frame.parent.as_ref()).map(|parent| parent.activation);
        }
    }

    /// Forgets an activation together with the children that it no longer waits for.
    fn remove_activation(&mut self, id: u32) -> Option<Box<Activation>> {
        let activation = self.activations.remove(&id)?;
        for child in &activation.journal.children {
            self.remove_frame(child.frame);
        }
        Some(activation)
    }

    fn close_child(&mut self, activation: u32, key: &CallKey) {
        let Some(caller) = self.activations.get_mut(&activation) else { return };
        let Some(at) = caller.journal.children.iter().position(|child| child.key == *key) else { return };
        let child = caller.journal.children.remove(at);
        self.remove_frame(child.frame);
    }

    fn remove_frame(&mut self, frame: u32) {
        self.frames.remove(&frame);
        let inside: Vec<u32> =
            self.activations.iter().filter(|(_, inner)| inner.frame == frame).map(|(id, _)| *id).collect();
        for id in inside {
            self.remove_activation(id);
        }
    }
}

impl Activation {
    fn new(frame: u32, node: Arc<str>, visit: u32, branch: Option<Branch>) -> Self {
        let (phase, journal) = (Phase::Ready, Journal::default());
        Self {
            frame,
            node,
            visit,
            at: None,
            failures: 0,
            phase,
            at_limit: false,
            reached: None,
            held: Vec::new(),
            journal,
            branch,
        }
    }
}

impl Frame {
    pub(crate) fn new(parent: Option<Parent>, depth: u32, workflow: Pin, input: RawJson) -> Self {
        Self {
            parent,
            depth,
            workflow,
            input,
            data: BTreeMap::new(),
            workflow_state: BTreeMap::new(),
            node_state: BTreeMap::new(),
            visits: BTreeMap::new(),
            closed: BTreeMap::new(),
            failure: None,
        }
    }

    /// Keeps the first failure: it is the one that the frame ends with.
    fn note_failure(&mut self, closed: &Closed) {
        if let (None, Closed::Failed(failure)) = (&self.failure, closed) {
            self.failure = Some(failure.clone());
        }
    }
}
