//! A slot: an activation under way, and what one poll of it leads to.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;
use kortyx_protocol::{Failure, StreamChunk};

use super::BUDGET;
use crate::{
    NodeError, NodeResult,
    event::{Event, StateWrites},
    io::IoFuture,
    observe::NodeTold,
    pass::{Emission, Reveal},
    shared::{Core, Halt, Shared},
    state::{Child, Entry, Phase, diverged},
};

pub(super) struct Slot {
    pub(super) activation: u32,
    pub(super) work: Work,
    /// The chunk on its way to the receiver.
    sending: Option<IoFuture<'static, ()>>,
    /// How long the node may take to make the calls that it made in the pass before.
    patience: Option<IoFuture<'static, ()>>,
    pub(super) waker: Arc<SlotWaker>,
    /// Last: it is told of an end when everything of the node is gone.
    pub(super) told: NodeTold,
}

impl Slot {
    pub(super) fn new(activation: u32, work: Work, waker: Arc<SlotWaker>, told: NodeTold) -> Self {
        Self { activation, work, sending: None, patience: None, waker, told }
    }
}

pub(super) enum Work {
    Pass(IoFuture<'static, NodeResult>),
    /// The wait before another attempt.
    Delay(IoFuture<'static, ()>),
}

pub(super) enum SlotEnd {
    Pending,
    Waiting,
    Done(NodeResult),
    Delayed,
}

/// Notices a wake-up that arrives while the node is being polled: then it is not quiet yet.
pub(super) struct SlotWaker {
    pub(super) parent: AtomicWaker,
    pub(super) woken: AtomicBool,
}

impl SlotWaker {
    /// Woken already: what it is for is yet to be polled.
    pub(super) fn woken() -> Arc<Self> {
        Arc::new(Self { parent: AtomicWaker::new(), woken: AtomicBool::new(true) })
    }
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.parent.wake();
    }
}

pub(super) fn poll_slot(shared: &Shared, slot: &mut Slot) -> SlotEnd {
    let task: Waker = slot.waker.clone().into();
    for _ in 0..BUDGET {
        slot.waker.woken.store(false, Ordering::SeqCst);
        let mut cx = Context::from_waker(&task);
        poll_sending(shared, slot, &mut cx);
        let poll = match &mut slot.work {
            Work::Delay(delay) => match delay.as_mut().poll(&mut cx) {
                Poll::Ready(()) => return SlotEnd::Delayed,
                Poll::Pending => return SlotEnd::Pending,
            },
            Work::Pass(node) => {
                if let Some(pass) = shared.lock().passes.get_mut(&slot.activation) {
                    pass.polling = true;
                }
                let span = slot.told.span();
                catch_unwind(AssertUnwindSafe(|| span.in_scope(|| node.as_mut().poll(&mut cx))))
            }
        };
        match poll {
            Ok(Poll::Ready(result)) => return SlotEnd::Done(result),
            Err(panic) => {
                return SlotEnd::Done(Err(NodeError::message(format!("the node panicked: {}", text(&panic)))));
            }
            Ok(Poll::Pending) => {}
        }
        let mut core = shared.lock();
        if core.halt.is_some() {
            return SlotEnd::Pending;
        }
        match core.look(slot) {
            Look::Again => {}
            Look::Send(chunk) => {
                core.note_stream(&chunk, None);
                drop(core);
                let sink = shared.io.chunks.clone();
                slot.sending = Some(Box::pin(async move { sink.send(chunk).await }));
                if !poll_sending(shared, slot, &mut cx) {
                    return SlotEnd::Pending;
                }
            }
            Look::Behind => {
                drop(core);
                if !poll_patience(shared, slot, &task) {
                    return SlotEnd::Pending;
                }
            }
            Look::Pending => return SlotEnd::Pending,
            Look::Waiting => {
                core.suspend_pass(slot.activation);
                return SlotEnd::Waiting;
            }
            Look::Diverged(failure) => {
                core.halt_with(Halt::Parked(failure));
                return SlotEnd::Pending;
            }
        }
    }
    task.wake();
    SlotEnd::Pending
}

/// Goes on with the chunk on its way. `true`: nothing is on its way any more.
fn poll_sending(shared: &Shared, slot: &mut Slot, cx: &mut Context<'_>) -> bool {
    let Some(sending) = &mut slot.sending else { return true };
    if sending.as_mut().poll(cx).is_pending() {
        return false;
    }
    slot.sending = None;
    let mut core = shared.lock();
    let hash = core.passes.get_mut(&slot.activation).and_then(|pass| pass.end_emission());
    if let Some(hash) = hash {
        core.emit(Event::Emitted { activation: slot.activation, hash });
    }
    true
}

/// Waits for a node that has yet to make a call that it made in the pass before: it may wait for something that the engine
/// does not know of. `true`: it has waited long enough, or for nothing.
fn poll_patience(shared: &Shared, slot: &mut Slot, task: &Waker) -> bool {
    if slot.patience.is_none() {
        let known = shared.lock().passes.get(&slot.activation).map_or(0, |pass| pass.wakers(task));
        // Besides those: the slot's own and the one that the node is polled with.
        if Arc::strong_count(&slot.waker) > known.saturating_add(2) {
            slot.patience = Some(shared.io.host.sleep(shared.limits.replay_patience));
        }
    }
    let is_over =
        slot.patience.as_mut().is_none_or(|wait| wait.as_mut().poll(&mut Context::from_waker(task)).is_ready());
    if is_over {
        slot.patience = None;
        shared.lock().give_up(slot.activation);
    }
    is_over
}

/// What a node that returned `Pending` is up to.
enum Look {
    Again,
    Send(StreamChunk),
    /// It has yet to make a call that it made in the pass before.
    Behind,
    Pending,
    Waiting,
    Diverged(Failure),
}

impl Core {
    fn look(&mut self, slot: &mut Slot) -> Look {
        let (id, stored) = (slot.activation, self.stored());
        let (Some(pass), Some(activation)) = (self.passes.get_mut(&id), self.state.activations.get(&id)) else {
            return Look::Pending;
        };
        pass.polling = false;
        if let Some(failure) = pass.take_divergence() {
            return Look::Diverged(failure);
        }
        if slot.waker.woken.load(Ordering::SeqCst) {
            return Look::Again;
        }
        if slot.sending.is_some() {
            return Look::Pending;
        }
        let dropped = pass.take_dropped(&activation.journal);
        if !dropped.is_empty() {
            self.withdraw(id, dropped);
            return Look::Again;
        }
        match pass.next_emission(&activation.journal) {
            Emission::Known => return Look::Again,
            Emission::Send(chunk) => return Look::Send(chunk),
            Emission::None => {}
        }
        match pass.reveal_next(&activation.journal, stored) {
            Reveal::Behind => return Look::Behind,
            Reveal::Shown => {
                slot.patience = None;
                return Look::Again;
            }
            Reveal::Nothing if !pass.is_waiting() => return Look::Pending,
            Reveal::Nothing if pass.is_patient && pass.is_missing_calls(&activation.journal) => return Look::Behind,
            Reveal::Nothing => {}
        }
        match self.unasked(id) {
            Some(failure) => Look::Diverged(failure),
            None => Look::Waiting,
        }
    }

    /// The failure of a pass that did not ask a question whose answer was accepted, or not call a child under way.
    fn unasked(&self, id: u32) -> Option<Failure> {
        let activation = self.state.activations.get(&id)?;
        let pass = self.passes.get(&id)?;
        let place = || self.state.place(activation);
        if let Some(Entry { key, identity, .. }) = pass.unasked_answer(&activation.journal) {
            let recorded = format!("an accepted answer to interrupt `{}` (use {}) of {identity}", key.id, key.occ);
            return Some(diverged(&place(), &recorded, "the node does not ask it"));
        }
        let Child { key, identity, .. } = pass.uncalled_child(&activation.journal)?;
        let recorded = format!("call `{}` (use {}) of {identity}, which is under way", key.id, key.occ);
        Some(diverged(&place(), &recorded, "the node does not make it"))
    }

    /// The node will not make the calls that it has not made in this pass.
    fn give_up(&mut self, id: u32) {
        if let (Some(pass), Some(activation)) = (self.passes.get_mut(&id), self.state.activations.get(&id)) {
            pass.give_up(&activation.journal);
        }
    }

    /// The node can only wait: its questions are to be published, those it no longer asks to be withdrawn.
    fn suspend_pass(&mut self, id: u32) {
        let Some(mut pass) = self.passes.remove(&id) else { return };
        let open = pass.take_open();
        self.note_held(id, &pass.held);
        if let Some(activation) = self.state.activations.get_mut(&id) {
            activation.phase = Phase::Waiting;
            let asked = &activation.journal.asks;
            let gone = asked.iter().map(|ask| &ask.key).filter(|key| !open.iter().any(|ask| ask.key == **key));
            let gone = gone.cloned().collect();
            let new = open.into_iter().filter(|ask| !asked.iter().any(|known| known.key == ask.key)).collect();
            self.unpublished.insert(id, new);
            self.withdraw(id, gone);
        }
        self.unpublished.retain(|_, asks| !asks.is_empty());
        pass.close();
    }
}

/// Ends the pass of a node that has returned and takes the state that it set.
pub(super) fn close_pass(core: &mut Core, id: u32, ended_well: bool) -> Result<StateWrites, Failure> {
    let unasked = if ended_well { core.unasked(id) } else { None };
    if let Some(failure) = unasked {
        return Err(failure);
    }
    core.unpublished.remove(&id);
    let Some(mut pass) = core.passes.remove(&id) else { return Ok(StateWrites::default()) };
    let divergence = pass.take_divergence();
    let writes = std::mem::take(&mut pass.writes);
    pass.close();
    divergence.map_or(Ok(writes), Err)
}

/// Drops a future of the user's; a destructor that panics ends there. What is told of the node is left.
pub(super) fn drop_quietly(slot: Slot) -> NodeTold {
    let Slot { work, sending, patience, waker, told, .. } = slot;
    let span = told.span();
    let all = AssertUnwindSafe(|| span.in_scope(|| drop((work, sending, patience, waker))));
    if catch_unwind(all).is_err() {
        tracing::error!("a destructor of a node panicked");
    }
    told
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
