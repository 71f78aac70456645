//! What storage keeps of a run, to look at: without its workflows' code, and without a way to change it.

mod read;
mod sight;

use std::{collections::BTreeMap, sync::Arc};

use kortyx_protocol::{Failure, Timestamp};

pub use self::read::{view, visit_of};
use crate::workflow::DefinitionPin;

/// Where a stored run stands.
///
/// Values are not part of it: neither data nor results nor what was asked and answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunView {
    /// The workflows under way in it: its own first, then those of children.
    pub frames: Vec<FrameView>,
    /// Visits to nodes that have not ended, and those that ended since the snapshot, in the order in which they began.
    pub activations: Vec<ActivationView>,
    /// How many visits the run has made.
    pub executions: u64,
    /// The highest answer number received.
    pub answers_seen: u64,
    /// The response is complete: the run goes on without a reader.
    pub response_completed: bool,
    /// What it has used, by the names of counters.
    pub used: BTreeMap<Arc<str>, u64>,
    /// Entries after which nothing more could be read, and why: the view is older than what is stored.
    pub unread: Option<Unread>,
}

/// An entry that does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unread {
    /// Its place among the entries, from 0.
    pub entry: usize,
    /// What is wrong with it, a lower-case fragment.
    pub reason: String,
}

/// A workflow under way: the run's own, or a child's.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FrameView {
    /// Its number; 0 is the run's own workflow.
    pub id: u32,
    /// Of a child: the visit that called it.
    pub caller: Option<u32>,
    /// The definition that it is bound to.
    pub workflow: DefinitionPin,
    /// How often each node was entered, by `workflow/node`: a handoff changes the workflow within a frame.
    pub visits: BTreeMap<String, u32>,
    /// In a graph with fan-out: how each node ended.
    pub closed: BTreeMap<String, Closed>,
    /// How it failed.
    pub failure: Option<Failure>,
}

/// How a node of a graph with fan-out ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Closed {
    /// Well.
    Done,
    /// In a failure.
    Failed,
    /// No path led to it.
    Skipped,
}

/// A visit of the run to a node.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ActivationView {
    /// Its number, in the order in which visits begin.
    pub id: u32,
    /// The frame it belongs to.
    pub frame: u32,
    /// The node.
    pub node: Arc<str>,
    /// How often the frame had entered the node before.
    pub visit: u32,
    /// Attempts that failed.
    pub failed_attempts: u32,
    /// When it began, by the clock of who drove the run; `None` when that was not noted.
    pub began_at: Option<Timestamp>,
    /// Where it stands.
    pub standing: Standing,
    /// It is no visit: it asks whether the run may go on beyond a limit.
    pub is_about_a_limit: bool,
    /// What it has called, in the order of completion; what is under way comes last.
    pub calls: Vec<CallView>,
}

/// Where a visit stands.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Standing {
    /// It has something to do.
    Ready,
    /// It can only wait: for people, or for its children.
    Waiting,
    /// It ended well.
    Completed,
    /// It ended in a failure.
    Failed(Failure),
}

/// A call of a node to its context.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallView {
    /// What it is.
    pub kind: CallKind,
    /// The author's id.
    pub id: Arc<str>,
    /// Which use of the id it is, from 0.
    pub occurrence: u32,
    /// What identifies it besides its id: a question's contract, a child's version. Empty for steps.
    pub identity: Arc<str>,
    /// Where it stands.
    pub standing: CallStanding,
    /// When it completed, by the clock of who drove the run; `None` when that was not noted.
    pub ended_at: Option<Timestamp>,
    /// Of a question: the key by which storage knows it, unique among the run's open questions.
    pub ask: Option<String>,
    /// Of a child that is under way: its frame.
    pub frame: Option<u32>,
}

/// What kind of call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallKind {
    /// A durable step.
    Step,
    /// A question.
    Interrupt,
    /// A child workflow.
    Call,
    /// The response was completed.
    Response,
    /// A call that the node gave up before it ended; nobody knows any more what it was.
    Dropped,
}

impl CallKind {
    /// Its lower-case name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Interrupt => "interrupt",
            Self::Call => "call",
            Self::Response => "response",
            Self::Dropped => "dropped",
        }
    }
}

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallStanding {
    /// It ended.
    Done,
    /// It ended in a failure that the node saw.
    Failed,
    /// It is under way: a question that is open, a child that runs.
    Open,
    /// The node gave it up.
    Abandoned,
}
