//! What an observer is told of a run under way.

mod call;
mod content;
mod node;
mod tell;
mod visit;

use std::sync::Arc;

use kortyx_protocol::{Failure, Usage};

pub(crate) use self::{
    call::{ChildTold, StepTold},
    node::{NodeTold, VisitSpan},
    tell::{News, paused},
};
pub use self::{
    content::{Captures, Content},
    visit::{CallName, End, ModelName, ParentCall, Visit},
};

/// Is told what happens while a run executes, in the order in which it happens.
///
/// Only of work that is done now: what replay finds in the journal is not told again. A run that goes on from its last durable point after
/// a crash does the work since that point once more, and tells of it once more. The observer is called on the task that drives the run,
/// inside the tracing span that the moment belongs to: hand the moment on and return. It cannot change what happens, and one that panics is
/// ignored with a line in the log. The engine has no clock: when something happened is the time of the call.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use kortyx_runtime::{Moment, Observer};
///
/// #[derive(Default)]
/// struct Steps(AtomicUsize);
///
/// impl Observer for Steps {
///     fn observe(&self, moment: &Moment<'_>) {
///         if matches!(moment, Moment::StepEnded { .. }) {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait Observer: Send + Sync + 'static {
    /// Takes a moment in.
    fn observe(&self, moment: &Moment<'_>);

    /// What content the moments hold. Nothing by default.
    fn captures(&self) -> Captures {
        Captures::default()
    }
}

/// Something that happened in a run. Ids, names, numbers and codes; content only where [`Observer::captures`] asks for it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Moment<'a> {
    /// A node is entered, for the first time or again after a pause or a failed attempt.
    NodeEntered {
        /// Which.
        visit: &'a Arc<Visit>,
    },
    /// A node is left.
    NodeLeft {
        /// Which.
        visit: &'a Arc<Visit>,
        /// How.
        end: End,
        /// It failed and is tried again.
        retries: bool,
        /// The data that it gave, an object.
        output: Option<&'a Content>,
    },
    /// A step begins.
    StepStarted {
        /// Where.
        visit: &'a Arc<Visit>,
        /// Which.
        call: &'a CallName,
    },
    /// A step has ended. One that ended well is stored a moment later.
    StepEnded {
        /// Where.
        visit: &'a Arc<Visit>,
        /// Which.
        call: &'a CallName,
        /// How.
        end: End,
        /// Its result; not that of a step whose library [tells](crate::NodeContext::tell) what it does.
        output: Option<&'a Content>,
    },
    /// A child workflow is called, or goes on after a pause.
    ChildStarted {
        /// Where.
        visit: &'a Arc<Visit>,
        /// Which call.
        call: &'a CallName,
        /// The child's workflow.
        workflow: &'a Arc<str>,
        /// Its version.
        version: &'a Arc<str>,
        /// It was called before and goes on.
        again: bool,
        /// The child's input, when it is called.
        input: Option<&'a Content>,
    },
    /// A child workflow has ended, or pauses with its caller.
    ChildEnded {
        /// Where.
        visit: &'a Arc<Visit>,
        /// Which call.
        call: &'a CallName,
        /// The child's workflow.
        workflow: &'a Arc<str>,
        /// Its version.
        version: &'a Arc<str>,
        /// How.
        end: End,
        /// Its output.
        output: Option<&'a Content>,
    },
    /// A node that has ended leads to another.
    Transitioned {
        /// The node that has ended.
        visit: &'a Arc<Visit>,
        /// The next one; `None` at the end of a path.
        to: Option<&'a Arc<str>>,
        /// The condition that the node gave.
        condition: Option<&'a str>,
    },
    /// A node hands the run over to another workflow.
    HandedOff {
        /// The node that does.
        visit: &'a Arc<Visit>,
        /// The workflow that goes on.
        workflow: &'a Arc<str>,
        /// Its version.
        version: &'a Arc<str>,
    },
    /// What is recorded does not fit the code: the run goes no further here.
    Diverged {
        /// Why, with the recorded call and the one made now.
        failure: &'a Failure,
    },
    /// Part of a step, told by the library whose step it is.
    Work {
        /// Where.
        visit: &'a Arc<Visit>,
        /// What.
        work: Work<'a>,
    },
}

/// What a library that works inside steps tells of them, with [`NodeContext::tell`](crate::NodeContext::tell).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Work<'a> {
    /// A model is asked.
    ModelStarted {
        /// The step that asks it.
        step: &'a str,
        /// Which model.
        model: &'a ModelName,
        /// What it is given.
        input: Option<&'a Content>,
    },
    /// A model has answered, or has not.
    ModelEnded {
        /// The step that asked it.
        step: &'a str,
        /// Which model.
        model: &'a ModelName,
        /// How.
        end: End,
        /// The tokens that it used, when the provider told.
        usage: Option<Usage>,
        /// Why it stopped, in the words of the provider's interface: `stop`, `tool_calls`, `length`, …
        finish: Option<&'a str>,
        /// How many tools it calls.
        tool_calls: usize,
        /// What it said.
        output: Option<&'a Content>,
    },
    /// A tool is run.
    ToolStarted {
        /// The step that runs it.
        step: &'a str,
        /// Its name.
        tool: &'a str,
        /// The call's id.
        call_id: &'a str,
        /// A person had to approve the call.
        approved: bool,
        /// The arguments.
        input: Option<&'a Content>,
    },
    /// A tool has ended.
    ToolEnded {
        /// The step that ran it.
        step: &'a str,
        /// Its name.
        tool: &'a str,
        /// The call's id.
        call_id: &'a str,
        /// How: `Paused` when it asks a person and is called again with the answer.
        end: End,
        /// The result.
        output: Option<&'a Content>,
    },
}
