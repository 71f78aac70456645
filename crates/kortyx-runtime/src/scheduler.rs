//! Drives a frame: polls its activations, drops those that can only wait, starts those that have something to do.

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

use crate::{
    NodeContext, NodeError, NodeOutput, NodeResult,
    event::{Event, StateWrites},
    flow::{self, FrameEnd},
    io::IoFuture,
    meter, output,
    pass::{Emission, PassRef, PassState, Reveal},
    shared::{Core, Halt, Shared},
    state::{Child, Entry, Phase, ROOT, diverged, unreadable},
};

/// How often one activation may go on within one poll before others get their turn.
const BUDGET: u32 = 64;

/// What a frame is doing.
pub(crate) enum FrameStatus {
    /// Something is under way.
    Live,
    /// It can only wait for people.
    Waiting,
    /// It has ended.
    Ended(FrameEnd),
}

/// The live part of a frame. Dropping it ends the passes under way; the state stays as the journal has it.
pub(crate) struct FrameDriver {
    shared: Arc<Shared>,
    frame: u32,
    slots: Vec<Slot>,
    /// The one that was registered last.
    waker: Option<Waker>,
}

struct Slot {
    activation: u32,
    work: Work,
    /// The chunk on its way to the receiver.
    sending: Option<IoFuture<'static, ()>>,
    /// How long the node may take to make the calls that it made in the pass before.
    patience: Option<IoFuture<'static, ()>>,
    waker: Arc<SlotWaker>,
}

impl Slot {
    fn new(activation: u32, work: Work, waker: Arc<SlotWaker>) -> Self {
        Self { activation, work, sending: None, patience: None, waker }
    }
}

enum Work {
    Pass(IoFuture<'static, NodeResult>),
    /// The wait before another attempt.
    Delay(IoFuture<'static, ()>),
}

enum SlotEnd {
    Pending,
    Waiting,
    Done(NodeResult),
    Delayed,
}

/// Notices a wake-up that arrives while the node is being polled: then it is not quiet yet.
struct SlotWaker {
    parent: AtomicWaker,
    woken: AtomicBool,
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

impl FrameDriver {
    pub(crate) fn new(shared: Arc<Shared>, frame: u32) -> Self {
        Self { shared, frame, slots: Vec::new(), waker: None }
    }

    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> FrameStatus {
        self.register(cx.waker());
        for _ in 0..BUDGET {
            self.start_ready();
            if !self.poll_slots(cx) {
                return self.status();
            }
        }
        cx.waker().wake_by_ref();
        FrameStatus::Live
    }

    fn register(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(known) => known.clone_from(waker),
            None => self.waker = Some(waker.clone()),
        }
        let mut core = self.shared.lock();
        match core.frame_wakers.get_mut(&self.frame) {
            Some(known) => known.clone_from(waker),
            None => drop(core.frame_wakers.insert(self.frame, waker.clone())),
        }
    }

    fn status(&self) -> FrameStatus {
        let mut core = self.shared.lock();
        // A run that was asked to stop waits neither for the next attempt nor for what it does not begin any more.
        let is_stopping = self.shared.cancel.is_cancelled();
        let is_idle = self.slots.iter().all(|slot| is_stopping && matches!(slot.work, Work::Delay(_)));
        if core.halt.is_some() || !is_idle {
            return FrameStatus::Live;
        }
        if self.frame == ROOT && !is_stopping {
            core.withdraw_needless_limits();
        }
        let mut own = core.state.activations.values().filter(|activation| activation.frame == self.frame).peekable();
        if own.peek().is_none() {
            return FrameStatus::Ended(flow::end_of_frame(&core, &self.shared.registry, self.frame));
        }
        let is_waiting = is_stopping || own.all(|activation| activation.phase == Phase::Waiting);
        if is_waiting { FrameStatus::Waiting } else { FrameStatus::Live }
    }

    /// Begins a pass for every activation that has something to do and none yet. A run that was asked to stop begins
    /// nothing new.
    fn start_ready(&mut self) {
        if self.shared.cancel.is_cancelled() {
            return;
        }
        let shared = self.shared.clone();
        let mut core = shared.lock();
        if core.halt.is_some() {
            return;
        }
        let ready = core.state.activations.iter().filter(|(id, activation)| {
            activation.frame == self.frame
                && activation.phase == Phase::Ready
                && !self.slots.iter().any(|slot| slot.activation == **id)
        });
        let ready: Vec<u32> = ready.map(|(id, _)| *id).collect();
        for id in ready {
            self.start_pass(&mut core, id);
        }
    }

    fn start_pass(&mut self, core: &mut Core, id: u32) {
        let waker = Arc::new(SlotWaker { parent: AtomicWaker::new(), woken: AtomicBool::new(true) });
        if let Some(work) = begin_pass(&self.shared, core, id, &waker) {
            self.slots.push(Slot::new(id, work, waker));
        }
    }

    /// Polls every slot that was woken. `true`: some slot ended, so there may be more to start.
    fn poll_slots(&mut self, cx: &Context<'_>) -> bool {
        let mut progressed = false;
        let mut at = 0;
        while let Some(slot) = self.slots.get_mut(at) {
            slot.waker.parent.register(cx.waker());
            if !slot.waker.woken.load(Ordering::SeqCst) {
                at += 1;
                continue;
            }
            match poll_slot(&self.shared, slot) {
                SlotEnd::Pending => {
                    at += 1;
                    continue;
                }
                SlotEnd::Waiting => drop_quietly(self.slots.swap_remove(at)),
                SlotEnd::Delayed => self.retry(at),
                SlotEnd::Done(result) => self.finish(at, result),
            }
            progressed = true;
        }
        progressed
    }

    fn finish(&mut self, at: usize, result: NodeResult) {
        let slot = self.slots.swap_remove(at);
        let id = slot.activation;
        drop_quietly(slot);
        let mut core = self.shared.lock();
        let writes = match close_pass(&mut core, id, result.is_ok()) {
            Ok(writes) => writes,
            Err(failure) => return core.halt_with(Halt::Parked(failure)),
        };
        let failed = match result {
            Ok(output) => flow::complete(&mut core, &self.shared.registry, id, output, writes).err(),
            Err(error) => Some(error),
        };
        if core.state.meters.stopped.is_some() {
            drop(core);
            return self.shared.cancel.cancel();
        }
        let Some(error) = failed else { return };
        if let Some(what) = error.as_unreadable().filter(|_| self.shared.is_restored) {
            let node = core.state.activations.get(&id).map(|activation| activation.node.clone()).unwrap_or_default();
            return core.halt_with(Halt::Parked(unreadable(&node, what)));
        }
        match flow::retry_delay(&core, &self.shared.registry, id, &error) {
            Some(delay) => {
                let sleep = self.shared.io.host.sleep(delay);
                core.emit(Event::Retried { activation: id });
                let waker = Arc::new(SlotWaker { parent: AtomicWaker::new(), woken: AtomicBool::new(true) });
                self.slots.push(Slot::new(id, Work::Delay(sleep), waker));
            }
            None => flow::fail(&mut core, &self.shared.registry, id, error),
        }
    }

    fn retry(&mut self, at: usize) {
        let slot = self.slots.swap_remove(at);
        if self.shared.cancel.is_cancelled() {
            return;
        }
        let shared = self.shared.clone();
        self.start_pass(&mut shared.lock(), slot.activation);
    }
}

impl Drop for FrameDriver {
    fn drop(&mut self) {
        let mut core = self.shared.lock();
        // Another pass may drive the frame by now.
        if self.waker.as_ref().is_some_and(|own| core.frame_wakers.get(&self.frame).is_some_and(|it| it.will_wake(own)))
        {
            core.frame_wakers.remove(&self.frame);
        }
        let ended: Vec<_> = self.slots.iter().filter_map(|slot| core.passes.remove(&slot.activation)).collect();
        drop(core);
        for pass in ended {
            pass.close();
        }
        self.slots.drain(..).for_each(drop_quietly);
    }
}

fn begin_pass(shared: &Arc<Shared>, core: &mut Core, id: u32, waker: &Arc<SlotWaker>) -> Option<Work> {
    let activation = core.state.activations.get(&id)?;
    let frame = core.state.frame(activation.frame)?;
    let definition = shared.registry.get(&frame.workflow.id, &frame.workflow.version)?;
    let function = definition.node(&activation.node).map(|node| node.function.clone());
    let number = core.next_pass_number();
    let activation = core.state.activations.get(&id)?;
    let (at_limit, reached) = (activation.at_limit, activation.reached.clone());
    let pass = PassRef {
        shared: shared.clone(),
        activation: id,
        frame: activation.frame,
        number,
        workflow: definition.id().clone(),
        node: activation.node.clone(),
    };
    let mut state = PassState::new(number, &activation.journal);
    state.waker = Some(waker.clone().into());
    core.passes.insert(id, Box::new(state));
    let ctx = NodeContext(Arc::new(pass));
    if let Some(reached) = reached {
        return Some(Work::Pass(Box::pin(meter::ask_to_exceed(ctx, reached))));
    }
    Some(Work::Pass(match function {
        _ if at_limit => Box::pin(flow::ask_for_more(ctx)),
        Some(function) => Box::pin(async move {
            let result = function(ctx.clone()).await;
            ctx.0.sent_unawaited().await;
            with_output(&ctx, result?).await
        }),
        None => Box::pin(async move { Err(NodeError::message("the node is not part of the workflow")) }),
    }))
}

/// Sends what the output shows to the client, as part of the activation.
async fn with_output(ctx: &NodeContext, output: NodeOutput) -> NodeResult {
    if let Some(error) = output.error {
        return Err(output::unwritable(ctx, "the output", &error).into());
    }
    if let Some(message) = &output.ui {
        ctx.message(message.clone()).await;
    }
    if let Some(handoff) = &output.handoff {
        flow::announce_handoff(ctx, handoff).await?;
    }
    Ok(output)
}

fn poll_slot(shared: &Shared, slot: &mut Slot) -> SlotEnd {
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
                catch_unwind(AssertUnwindSafe(|| node.as_mut().poll(&mut cx)))
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
fn close_pass(core: &mut Core, id: u32, ended_well: bool) -> Result<StateWrites, Failure> {
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

/// Drops a future of the user's; a destructor that panics ends there.
fn drop_quietly(slot: Slot) {
    if catch_unwind(AssertUnwindSafe(|| drop(slot))).is_err() {
        tracing::error!("a destructor of a node panicked");
    }
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
