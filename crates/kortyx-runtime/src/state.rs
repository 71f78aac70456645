//! The whole state of a run: what a snapshot holds.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use kortyx_contracts::Question;
use kortyx_protocol::{Failure, FailureCode, RawJson, ResumeResponse};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, Visitor},
};

use crate::{
    meter::{Level, Meters, Reached},
    step_streams::StepStream,
    trace::Trace,
    workflow::DefinitionPin,
};

/// The version of the snapshot format. A snapshot with a higher one is refused.
pub(crate) const SNAPSHOT_VERSION: u32 = 1;
/// The root frame's id.
pub(crate) const ROOT: u32 = 0;
/// The writer of data that a run starts with.
pub(crate) const INITIAL_WRITER: u32 = 0;

/// Fields of data, each with the activation that wrote it.
pub(crate) type View = BTreeMap<String, (RawJson, u32)>;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunState {
    pub(crate) v: u32,
    /// The request context, an object of the application.
    pub(crate) context: RawJson,
    /// Earlier messages of the conversation, as the client sent them.
    pub(crate) history: RawJson,
    /// Boxed, as are activations: the leaf of a map has room for eleven, used or not.
    pub(crate) frames: BTreeMap<u32, Box<Frame>>,
    pub(crate) activations: BTreeMap<u32, Box<Activation>>,
    pub(crate) next_frame: u32,
    pub(crate) next_activation: u32,
    /// Node activations so far, and how many are allowed before the run asks whether to go on.
    pub(crate) executions: u64,
    pub(crate) allowance: u64,
    /// The highest answer number received.
    pub(crate) answers_seen: u64,
    /// The response is complete: the run goes on without a reader.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) response_completed: bool,
    /// What the turn under way did; only of tracked runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<Box<Trace>>,
    /// What the run has used, and how much it may.
    #[serde(default, skip_serializing_if = "Meters::is_empty")]
    pub(crate) meters: Meters,
    /// What nodes have marked for the whole run.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) marks: BTreeSet<Arc<str>>,
    /// Where the drive that stored it is found in tracing, as a `traceparent` of W3C Trace Context. For whoever drives it next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace_parent: Option<Arc<str>>,
}

/// One execution of a workflow within the run: the root's, or a child's.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Frame {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<Parent>,
    pub(crate) depth: u32,
    pub(crate) workflow: Pin,
    pub(crate) input: RawJson,
    pub(crate) data: BTreeMap<String, RawJson>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) workflow_state: BTreeMap<String, RawJson>,
    /// By `workflow/node`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) node_state: BTreeMap<String, BTreeMap<String, RawJson>>,
    /// How often each `workflow/node` was entered.
    pub(crate) visits: BTreeMap<String, u32>,
    /// In a graph with fan-out: how each node ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) closed: BTreeMap<String, Closed>,
    /// How a frame that has ended did so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<Failure>,
}

/// The call that a child frame answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Parent {
    pub(crate) activation: u32,
    pub(crate) key: CallKey,
}

/// The exact definition that a frame is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pin {
    #[serde(deserialize_with = "shared_text")]
    pub(crate) id: Arc<str>,
    #[serde(deserialize_with = "shared_text")]
    pub(crate) version: Arc<str>,
    #[serde(deserialize_with = "shared_text")]
    pub(crate) fingerprint: Arc<str>,
}

/// How a node of a graph with fan-out ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Closed {
    Done {
        /// The outgoing edges it selected.
        selected: Vec<u32>,
        view: View,
        /// Every activation before it, its own included.
        ancestors: BTreeSet<u32>,
    },
    Failed(Failure),
    Skipped,
}

/// One visit of the run to a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Activation {
    pub(crate) frame: u32,
    #[serde(deserialize_with = "shared_text")]
    pub(crate) node: Arc<str>,
    pub(crate) visit: u32,
    /// When it began, in epoch milliseconds by the host's clock: to look at, nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<i64>,
    /// Failed attempts so far.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) failures: u32,
    pub(crate) phase: Phase,
    /// The activation asks whether the run may exceed its limit before the node is entered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) at_limit: bool,
    /// The activation is no visit: it asks whether the run may go on beyond this limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reached: Option<Arc<Reached>>,
    /// The limits that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) held: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Journal::is_empty")]
    pub(crate) journal: Journal,
    /// In a graph with fan-out: the data it sees, and the activations before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<Branch>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Branch {
    pub(crate) view: View,
    pub(crate) ancestors: BTreeSet<u32>,
    /// What it read of the workflow state, so that replay reads the same.
    pub(crate) reads: BTreeMap<String, Option<RawJson>>,
}

/// Whether an activation has something to do. One that asked is waiting, never running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    Ready,
    Waiting,
}

/// A call within an activation: the author's id, and which use of it this is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct CallKey {
    #[serde(deserialize_with = "shared_text")]
    pub(crate) id: Arc<str>,
    pub(crate) occ: u32,
}

/// What an activation has already done.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// Completed calls, in the order of their completion; replay reveals them in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) log: Vec<Entry>,
    /// Published questions without an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asks: Vec<Asked>,
    /// Children that have started and not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<Child>,
    /// Calls that the node dropped before they completed: replay leaves them pending, it does not run them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) abandoned: Vec<CallKey>,
    /// Calls under way that have taken from what the run may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) taken: Vec<CallKey>,
    /// Marks set or cleared so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) marked: Vec<CallKey>,
    /// How far counters were, read by read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) levels: Vec<Level>,
    /// Child calls made so far.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) calls: u32,
    /// Hashes of delivered emissions, with how often each was delivered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) emitted: BTreeMap<String, u32>,
    /// What the clock said, call by call, in epoch milliseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) clock: Vec<i64>,
    /// Random ids given out, call by call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) random: Vec<String>,
    /// Structured streams of steps that are not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) streams: Vec<StepStream>,
}

impl Journal {
    pub(crate) fn is_empty(&self) -> bool {
        self.log.is_empty()
            && self.asks.is_empty()
            && self.children.is_empty()
            && self.abandoned.is_empty()
            && self.taken.is_empty()
            && self.marked.is_empty()
            && self.levels.is_empty()
            && self.calls == 0
            && self.emitted.is_empty()
            && self.clock.is_empty()
            && self.random.is_empty()
            && self.streams.is_empty()
    }
}

/// What kind of call an entry records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Step,
    Interrupt,
    Call,
    Response,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Interrupt => "interrupt",
            Self::Call => "call",
            Self::Response => "completion of the response",
        }
    }
}

/// A completed call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) key: CallKey,
    pub(crate) kind: Kind,
    /// What identifies the call besides its id: a question's contract, a child's version. Empty for steps.
    #[serde(default, skip_serializing_if = "str_is_empty", deserialize_with = "shared_text")]
    pub(crate) identity: Arc<str>,
    pub(crate) value: EntryValue,
    /// When it completed, in epoch milliseconds by the host's clock: to look at, nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<i64>,
}

impl Entry {
    pub(crate) fn new(key: CallKey, kind: Kind, identity: Arc<str>, value: EntryValue) -> Self {
        Self { key, kind, identity, value, at: None }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum EntryValue {
    /// A step's result, a child's output, or null.
    Value(RawJson),
    /// A question's answer.
    Answer(ResumeResponse),
    /// A child's failure.
    Failed(Box<Failure>),
}

/// A published question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) key: CallKey,
    #[serde(deserialize_with = "shared_text")]
    pub(crate) identity: Arc<str>,
    /// Questions with the same group make sense only together: the node is entered again when all are answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<CallKey>,
}

/// A child that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Child {
    pub(crate) key: CallKey,
    #[serde(deserialize_with = "shared_text")]
    pub(crate) identity: Arc<str>,
    pub(crate) frame: u32,
}

/// A question that a node waits for and that storage does not know yet.
#[derive(Debug, Clone)]
pub(crate) struct OpenAsk {
    pub(crate) key: CallKey,
    pub(crate) identity: Arc<str>,
    pub(crate) group: Option<CallKey>,
    pub(crate) question: Question,
}

impl RunState {
    pub(crate) fn frame(&self, id: u32) -> Option<&Frame> {
        self.frames.get(&id).map(|frame| &**frame)
    }

    /// The definition that the run is bound to.
    pub(crate) fn pin(&self) -> DefinitionPin {
        let pin = |frame: &Frame| {
            (frame.workflow.id.clone(), frame.workflow.version.clone(), frame.workflow.fingerprint.clone())
        };
        let (id, version, fingerprint) = self.frame(ROOT).map(pin).unwrap_or_default();
        DefinitionPin { id, version, fingerprint }
    }

    /// Whether an activation can only wait for people.
    pub(crate) fn is_waiting(&self, activation: u32) -> bool {
        self.activations.get(&activation).is_some_and(|activation| activation.phase == Phase::Waiting)
    }

    /// Adds a published question to an activation that waits.
    pub(crate) fn publish(&mut self, activation: u32, asked: Asked) {
        if let Some(activation) = self.activations.get_mut(&activation) {
            activation.journal.asks.push(asked);
        }
    }

    /// Takes the last published question back.
    pub(crate) fn unpublish(&mut self, activation: u32) {
        if let Some(activation) = self.activations.get_mut(&activation) {
            activation.journal.asks.pop();
        }
    }

    /// Moves every activation of a phase to another and says which.
    pub(crate) fn set_phases(&mut self, from: Phase, to: Phase) -> Vec<u32> {
        let changed = self.activations.iter_mut().filter(|(_, activation)| activation.phase == from);
        changed.map(|(id, activation)| (*id, activation.phase = to).0).collect()
    }

    pub(crate) fn set_phase(&mut self, activation: u32, phase: Phase) {
        if let Some(activation) = self.activations.get_mut(&activation) {
            activation.phase = phase;
        }
    }

    /// The published, unanswered questions of an activation's children, as ask keys.
    pub(crate) fn asks_below(&self, activation: u32) -> Vec<String> {
        let Some(activation) = self.activations.get(&activation) else { return Vec::new() };
        activation.journal.children.iter().flat_map(|child| self.asks_of_frame(child.frame)).collect()
    }

    /// The published, unanswered questions of a frame and of all below it, as ask keys.
    pub(crate) fn asks_of_frame(&self, frame: u32) -> Vec<String> {
        let mut keys = Vec::new();
        for (id, activation) in self.activations.iter().filter(|(_, activation)| activation.frame == frame) {
            keys.extend(activation.journal.asks.iter().map(|ask| ask_key(*id, &ask.key)));
            keys.extend(self.asks_below(*id));
        }
        keys
    }

    /// The place of a frame in the tree of calls: stable across replays and recoveries.
    pub(crate) fn path(&self, frame: u32) -> String {
        let mut parts = Vec::new();
        let mut current = self.frames.get(&frame);
        while let Some(parent) = current.and_then(|frame| frame.parent.as_ref()) {
            let Some(activation) = self.activations.get(&parent.activation) else { break };
            let place = self.place(activation);
            parts.push(format!("{place}/{}#{}", parent.key.id, parent.key.occ));
            current = self.frames.get(&activation.frame);
        }
        parts.reverse();
        parts.join("/")
    }

    /// `workflow/node#visit`.
    pub(crate) fn place(&self, activation: &Activation) -> String {
        let workflow = self.frames.get(&activation.frame).map_or("", |frame| &*frame.workflow.id);
        format!("{workflow}/{}#{}", activation.node, activation.visit)
    }
}

/// The ask key that storage keeps for a question: `activation:occurrence:id`.
pub(crate) fn ask_key(activation: u32, key: &CallKey) -> String {
    format!("{activation}:{}:{}", key.occ, key.id)
}

/// The inverse of [`ask_key`].
pub(crate) fn parse_ask_key(text: &str) -> Option<(u32, CallKey)> {
    let mut parts = text.splitn(3, ':');
    let activation = parts.next()?.parse().ok()?;
    let occ = parts.next()?.parse().ok()?;
    Some((activation, CallKey { id: parts.next()?.into(), occ }))
}

/// A failure that says that replay and journal disagree.
pub(crate) fn diverged(place: &str, recorded: &str, now: &str) -> Failure {
    Failure::new(
        FailureCode::ReplayDiverged,
        format!(
            "replay of {place} does not match its journal: recorded {recorded}, now {now}; deploy code that matches \
             the journal, or cancel the run"
        ),
    )
}

/// A failure that says that the node cannot read what the run has stored.
pub(crate) fn unreadable(node: &str, what: impl std::fmt::Display) -> Failure {
    Failure::new(
        FailureCode::ReplayDiverged,
        format!(
            "the node `{node}` cannot read what the run has stored: {what}; deploy code that reads it, or cancel the run"
        ),
    )
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn str_is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

/// Reads a text to share, without a `String` on the way.
fn shared_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    struct Text;

    impl Visitor<'_> for Text {
        type Value = Arc<str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Arc<str>, E> {
            Ok(text.into())
        }
    }

    deserializer.deserialize_str(Text)
}
