//! Drives a frame: polls its activations, drops those that can only wait, starts those that have something to do.

mod begin;
mod slot;

use std::{
    sync::{Arc, atomic::Ordering},
    task::{Context, Waker},
};

use self::{
    begin::begin_pass,
    slot::{Slot, SlotEnd, SlotWaker, Work, close_pass, drop_quietly, poll_slot},
};
use crate::{
    NodeResult,
    event::Event,
    flow::{self, FrameEnd},
    shared::{Core, Halt, Shared},
    state::{Phase, ROOT, unreadable},
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
        let waker = SlotWaker::woken();
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
                let waker = SlotWaker::woken();
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
