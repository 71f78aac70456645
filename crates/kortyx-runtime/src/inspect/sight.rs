//! The state of a run as its views.

use kortyx_protocol::Timestamp;

use super::{ActivationView, CallKind, CallStanding, CallView, Closed, FrameView, RunView, Standing, Unread};
use crate::{
    event::Event,
    state::{self, Activation, CallKey, EntryValue, Frame, Kind, Phase, RunState, ask_key},
    workflow::DefinitionPin,
};

/// A whole state, with visits that are not in it any more.
pub(super) fn of(state: &RunState, ended: Vec<ActivationView>, unread: Option<Unread>) -> RunView {
    let mut activations = ended;
    activations.extend(state.activations.iter().map(|(id, activation)| visit(*id, activation)));
    activations.sort_by_key(|activation| activation.id);
    RunView {
        frames: state.frames.iter().map(|(id, frame)| self::frame(*id, frame)).collect(),
        activations,
        executions: state.executions,
        answers_seen: state.answers_seen,
        response_completed: state.response_completed,
        used: state.meters.all_used().clone(),
        unread,
    }
}

/// The visit that an event ends, as it is before that.
pub(super) fn ending(state: &RunState, event: &Event) -> Option<ActivationView> {
    let (id, standing) = match event {
        Event::Completed { activation, .. } => (*activation, Standing::Completed),
        Event::Failed { activation, failure } => (*activation, Standing::Failed(failure.clone())),
        _ => return None,
    };
    let activation = state.activations.get(&id)?;
    Some(ActivationView { standing, ..visit(id, activation) })
}

fn frame(id: u32, frame: &Frame) -> FrameView {
    let closed = |closed: &state::Closed| match closed {
        state::Closed::Done { .. } => Closed::Done,
        state::Closed::Failed(_) => Closed::Failed,
        state::Closed::Skipped => Closed::Skipped,
    };
    let pin = &frame.workflow;
    FrameView {
        id,
        caller: frame.parent.as_ref().map(|parent| parent.activation),
        workflow: DefinitionPin {
            id: pin.id.clone(),
            version: pin.version.clone(),
            fingerprint: pin.fingerprint.clone(),
        },
        visits: frame.visits.clone(),
        closed: frame.closed.iter().map(|(node, how)| (node.clone(), closed(how))).collect(),
        failure: frame.failure.clone(),
    }
}

fn visit(id: u32, activation: &Activation) -> ActivationView {
    ActivationView {
        id,
        frame: activation.frame,
        node: activation.node.clone(),
        visit: activation.visit,
        failed_attempts: activation.failures,
        began_at: activation.at.map(Timestamp::from_millis),
        standing: match activation.phase {
            Phase::Ready => Standing::Ready,
            Phase::Waiting => Standing::Waiting,
        },
        is_about_a_limit: activation.at_limit,
        calls: calls(id, activation),
    }
}

fn calls(id: u32, activation: &Activation) -> Vec<CallView> {
    let journal = &activation.journal;
    let mut calls = Vec::with_capacity(journal.log.len() + journal.asks.len() + journal.children.len());
    for entry in &journal.log {
        let (kind, standing) = match (&entry.kind, &entry.value) {
            (kind, EntryValue::Failed(_)) => (*kind, CallStanding::Failed),
            (kind, EntryValue::Value(_) | EntryValue::Answer(_)) => (*kind, CallStanding::Done),
        };
        let mut view = call(CallKind::from(kind), &entry.key, standing);
        view.identity = entry.identity.clone();
        view.ended_at = entry.at.map(Timestamp::from_millis);
        view.ask = (kind == Kind::Interrupt).then(|| ask_key(id, &entry.key));
        calls.push(view);
    }
    calls.extend(journal.asks.iter().map(|asked| CallView {
        identity: asked.identity.clone(),
        ask: Some(ask_key(id, &asked.key)),
        ..call(CallKind::Interrupt, &asked.key, CallStanding::Open)
    }));
    calls.extend(journal.children.iter().map(|child| CallView {
        identity: child.identity.clone(),
        frame: Some(child.frame),
        ..call(CallKind::Call, &child.key, CallStanding::Open)
    }));
    calls.extend(journal.abandoned.iter().map(|key| call(CallKind::Dropped, key, CallStanding::Abandoned)));
    calls
}

/// A call of which nothing more is known.
fn call(kind: CallKind, key: &CallKey, standing: CallStanding) -> CallView {
    let (id, occurrence) = (key.id.clone(), key.occ);
    CallView { kind, id, occurrence, identity: "".into(), standing, ended_at: None, ask: None, frame: None }
}

impl From<Kind> for CallKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Step => Self::Step,
            Kind::Interrupt => Self::Interrupt,
            Kind::Call => Self::Call,
            Kind::Response => Self::Response,
        }
    }
}
