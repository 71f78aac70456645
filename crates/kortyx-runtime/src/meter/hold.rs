//! Taking from what a run may use, and waiting where nothing is left.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
};

use super::{Counter, Draw, Level};
use crate::{
    NodeContext, NodeError,
    event::{Event, StateWrites},
    pass::{PassOver, PassRef},
    shared::Core,
    state::{CallKey, Phase},
};

/// A call that waits until a person lets the run go on.
pub(crate) struct Held {
    key: CallKey,
    pub(crate) counter: Arc<str>,
    waker: Waker,
}

/// Takes what a call needs, once for each call, however often it is made again after a crash. Waits while a limit is reached.
pub(crate) async fn take(pass: &Arc<PassRef>, key: &CallKey, draws: &[Draw]) -> Result<(), PassOver> {
    let _released = Released { pass, key };
    poll_fn(|cx| match pass.with(|core| core.take(pass.activation, key, draws, cx.waker())) {
        Ok(true) => Poll::Ready(Ok(())),
        Ok(false) => Poll::Pending,
        Err(over) => Poll::Ready(Err(over)),
    })
    .await
}

/// Waits no longer once it is dropped.
struct Released<'a> {
    pass: &'a PassRef,
    key: &'a CallKey,
}

impl Drop for Released<'_> {
    fn drop(&mut self) {
        let _ = self.pass.with_pass(|pass| {
            let before = pass.held.len();
            pass.held.retain(|held| held.key != *self.key);
            if pass.held.len() < before {
                pass.nudge();
            }
        });
    }
}

impl NodeContext {
    /// Says what the step that is running has used of a counter.
    ///
    /// It counts when the step ends, well or not, in the same breath as the result: whatever happens to the process, what a recorded
    /// step has used counts once. It is not held against the limit now but when the next step [draws](Draw::Measured) on it.
    ///
    /// # Errors
    /// No step is running, or the activation is over.
    pub fn spend(&self, counter: Counter, amount: u64) -> Result<(), NodeError> {
        let spent = self.0.with_pass(|pass| pass.spend(counter.name(), amount))?;
        spent.then_some(()).ok_or_else(|| {
            let name = counter.name();
            NodeError::message(format!("`{name}` is spent outside of a step: say it in the step that uses it"))
        })
    }

    /// How far a counter of the run is, the same in every replay. Within a step it is what counts at that moment.
    ///
    /// # Errors
    /// The activation is over.
    pub fn level(&self, counter: Counter) -> Result<Level, NodeError> {
        let id = self.0.activation;
        let level = self.0.with(|core| {
            let now = core.state.meters.level(counter);
            if core.is_in_step(id) {
                return now;
            }
            let Some(pass) = core.passes.get_mut(&id) else { return now };
            let at = pass.level_reads;
            pass.level_reads = at.saturating_add(1);
            let journal = core.state.activations.get(&id).map(|activation| &activation.journal);
            if let Some(recorded) = journal.and_then(|journal| journal.levels.get(at)) {
                return *recorded;
            }
            core.emit(Event::LevelRead { activation: id, level: now });
            now
        })?;
        Ok(level)
    }
}

impl Core {
    /// Takes what a call needs, or has it wait. Whether it may begin.
    fn take(&mut self, id: u32, key: &CallKey, draws: &[Draw], waker: &Waker) -> bool {
        let Some(activation) = self.state.activations.get(&id) else { return false };
        if activation.journal.taken.contains(key) {
            return true;
        }
        if let Some(counter) = draws.iter().map(|draw| draw.counter()).find(|counter| self.is_reached(*counter)) {
            self.hold(id, key, counter, waker);
            return false;
        }
        let one = |draw: &Draw| match draw {
            Draw::One(counter) => Some(counter.name().into()),
            Draw::Measured(_) => None,
        };
        let counters = draws.iter().filter_map(one).collect();
        self.emit(Event::Took { activation: id, key: key.clone(), counters });
        true
    }

    fn is_reached(&self, counter: Counter) -> bool {
        let level = self.state.meters.level(counter);
        level.left() == Some(0)
    }

    fn hold(&mut self, id: u32, key: &CallKey, counter: Counter, waker: &Waker) {
        if let Some(pass) = self.passes.get_mut(&id) {
            pass.held.retain(|held| held.key != *key);
            pass.held.push(Held { key: key.clone(), counter: counter.name().into(), waker: waker.clone() });
            pass.nudge();
        }
        self.ask_to_exceed(id, counter);
    }

    /// Asks whether the run may go on, unless that is asked already or was answered with no.
    fn ask_to_exceed(&mut self, id: u32, counter: Counter) {
        let asked = |reached: &&super::Reached| *reached.counter == *counter.name();
        let mut open = self.state.activations.values().filter_map(|activation| activation.reached.as_deref());
        if self.state.meters.stopped.is_some() || open.any(|reached| asked(&reached)) {
            return;
        }
        let Some(reached) = self.state.meters.reached(counter) else { return };
        let Some(node) = self.state.root_node(id) else { return };
        let activation = self.state.next_activation;
        self.emit(Event::LimitReached { activation, node, reached });
        self.wake_frames();
    }

    /// Lets every call look again whether it may begin.
    pub(crate) fn wake_held(&self) {
        self.passes.values().flat_map(|pass| &pass.held).for_each(|held| held.waker.wake_by_ref());
        self.wake_frames();
    }

    /// Withdraws the questions whether to go on that nobody waits for any more. Only for a run that can do nothing but wait: while
    /// something is under way it may come to wait.
    pub(crate) fn withdraw_needless_limits(&mut self) {
        if self.state.activations.values().any(|activation| activation.phase != Phase::Waiting) {
            return;
        }
        let asking =
            self.state.activations.iter().filter_map(|(id, found)| Some((*id, &found.reached.as_ref()?.counter)));
        let needless: Vec<u32> =
            asking.filter(|(_, counter)| self.state.held(counter).is_empty()).map(|(id, _)| id).collect();
        for id in needless {
            self.withdraw_asks(id);
            self.unpublished.remove(&id);
            let (data, state) = (std::collections::BTreeMap::new(), StateWrites::default());
            self.emit(Event::Completed { activation: id, data, state, closed: None });
        }
    }

    /// Notes which limits an activation waits for that can only wait.
    pub(crate) fn note_held(&mut self, id: u32, held: &[Held]) {
        let mut counters: Vec<Arc<str>> = held.iter().map(|held| held.counter.clone()).collect();
        counters.sort_unstable();
        counters.dedup();
        if self.state.activations.get(&id).is_some_and(|activation| activation.held != counters) {
            self.emit(Event::Held { activation: id, counters });
        }
    }
}
