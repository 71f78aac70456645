//! One call of a node to its context: a question, a step or a child.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
};

use super::{PassOver, PassRef, Requested};
use crate::{
    event::Event,
    shared::Core,
    state::{CallKey, Entry, EntryValue, Kind, OpenAsk, diverged},
};

/// How the journal knows a call that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is new, or it was under way: do it.
    No,
    /// Its completion is recorded and will be revealed.
    Completed,
    /// The node dropped it once: it stays pending.
    Abandoned,
    /// It is made within a step, which could not end while it waits for people.
    InStep,
}

/// A call under way. Dropping it withdraws it.
pub(crate) struct Call {
    pass: Arc<PassRef>,
    pub(crate) key: CallKey,
    /// Work is under way, or done and not seen by the node: a drop abandons it.
    under_way: bool,
}

impl Call {
    /// Registers a call and checks it against the journal.
    pub(crate) fn begin(
        pass: &Arc<PassRef>,
        key: CallKey,
        kind: Kind,
        identity: &str,
    ) -> Result<(Self, Known), PassOver> {
        let known = pass.with(|core| {
            let place = || {
                let activation = core.state.activations.get(&pass.activation);
                activation.map(|activation| core.state.place(activation)).unwrap_or_default()
            };
            let state = core.passes.get_mut(&pass.activation)?;
            if state.running_step.is_some() {
                return Some(Known::InStep);
            }
            state.requested.insert(key.clone(), Requested::default());
            let Some(recorded) = state.recorded.get(&key) else { return Some(Known::No) };
            if recorded.abandoned {
                return Some(Known::Abandoned);
            }
            if recorded.kind == kind && *recorded.identity == *identity {
                return Some(if recorded.completed { Known::Completed } else { Known::No });
            }
            let describe = |kind: Kind, identity: &str| match identity {
                "" => format!("{} `{}` (use {})", kind.as_str(), key.id, key.occ),
                identity => format!("{} `{}` (use {}) of {identity}", kind.as_str(), key.id, key.occ),
            };
            let failure = diverged(&place(), &describe(recorded.kind, &recorded.identity), &describe(kind, identity));
            state.diverge(failure);
            Some(Known::Abandoned)
        })?;
        Ok((Self { pass: pass.clone(), key, under_way: false }, known.unwrap_or(Known::No)))
    }

    /// From here on, dropping the call abandons work.
    pub(crate) fn begin_work(&mut self) {
        self.under_way = true;
    }

    /// The work is in the journal.
    pub(crate) fn complete(&mut self, entry: Entry) -> Result<(), PassOver> {
        self.pass.with(|core| {
            let activation = self.pass.activation;
            // With the entry in one write: what a recorded step has used counts once.
            core.count_spent(activation, &self.key);
            core.emit(Event::Journaled { activation, entry });
            let log = core.state.activations.get(&activation).map_or(0, |activation| activation.journal.log.len());
            let counted = core.counted();
            if let Some(pass) = core.passes.get_mut(&activation) {
                pass.unstored.push_back((log.saturating_sub(1), counted));
            }
        })
    }

    /// Adds a question that the node waits for; the loop looks at it when the node is quiet.
    pub(crate) fn ask(&self, ask: OpenAsk) -> Result<(), PassOver> {
        self.pass.with(|core| {
            let Some(pass) = core.passes.get_mut(&self.pass.activation) else { return };
            pass.open.push(ask);
            pass.nudge();
        })
    }

    /// The completion, once the node may see it.
    pub(crate) fn poll_revealed(&self, waker: &Waker) -> Result<Option<EntryValue>, PassOver> {
        self.pass.with(|core| {
            let request = core.passes.get_mut(&self.pass.activation)?.requested.get_mut(&self.key)?;
            let Some(at) = request.revealed else {
                request.waker = Some(waker.clone());
                core.passes.get(&self.pass.activation)?.nudge();
                return None;
            };
            let journal = &core.state.activations.get(&self.pass.activation)?.journal;
            journal.log.get(at).map(|entry| entry.value.clone())
        })
    }

    /// Waits until the node may see the completion.
    pub(crate) async fn revealed(mut self) -> Result<EntryValue, PassOver> {
        let value = poll_fn(|cx| match self.poll_revealed(cx.waker()) {
            Ok(Some(value)) => Poll::Ready(Ok(value)),
            Ok(None) => Poll::Pending,
            Err(over) => Poll::Ready(Err(over)),
        });
        let value = value.await;
        self.under_way = false;
        value
    }

    /// The work failed and leaves no trace: the call is made again when the node is.
    pub(crate) fn fail(&mut self) {
        self.under_way = false;
        let _ = self.pass.with(|core| core.count_spent(self.pass.activation, &self.key));
    }
}

impl Core {
    /// Counts what a step has used.
    fn count_spent(&mut self, activation: u32, key: &CallKey) {
        let spent = self.passes.get_mut(&activation).map(|pass| pass.take_spent(key)).unwrap_or_default();
        for (counter, amount) in spent {
            self.emit(Event::Spent { counter, amount });
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let _ = self.pass.with(|core| {
            let Some(pass) = core.passes.get_mut(&self.pass.activation) else { return };
            if let Some(request) = pass.requested.get_mut(&self.key) {
                request.dropped = true;
                request.waker = None;
            }
            if pass.close_ask(&self.key) {
                pass.dropped.push(self.key.clone());
            }
            if self.under_way {
                core.count_spent(self.pass.activation, &self.key);
                core.abandon(self.pass.activation, self.key.clone());
            }
        });
    }
}
