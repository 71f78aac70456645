//! Drives a frame: polls its activations, drops those that can only wait, starts those that have something to do.

mod begin;
mod slot;

use std::{
    sync::{Arc, atomic::Ordering},
    task::{Context, Waker},
};

use kortyx_protocol::{FailureCode, RawJson};

use self::{
    begin::{Begun, begin_pass},
    slot::{Slot, SlotEnd, SlotWaker, Work, close_pass, drop_quietly, poll_slot},
};
use crate::{
    Content, End, NodeResult,
    event::Event,
    flow::{self, FrameEnd},
    io::IoFuture,
    observe::{NodeTold, VisitSpan},
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
        let core = self.shared.lock();
        if core.halt.is_some() {
            return;
        }
        let ready = core.state.activations.iter().filter(|(id, activation)| {
            activation.frame == self.frame
                && activation.phase == Phase::Ready
                && !self.slots.iter().any(|slot| slot.activation == **id)
        });
        let ready: Vec<u32> = ready.map(|(id, _)| *id).collect();
        drop(core);
        for id in ready {
            self.start_pass(id);
        }
    }

    fn start_pass(&mut self, id: u32) {
        let waker = SlotWaker::woken();
        let begun = begin_pass(&self.shared, &mut self.shared.lock(), id, &waker);
        let Some(Begun { work, pass, visit, attempt, is_own }) = begun else { return };
        let told = if is_own {
            NodeTold::nothing(&self.shared)
        } else {
            let (workflow, node, activation) = (&*pass.workflow, &*pass.node, id);
            let span = VisitSpan { workflow, node, activation, visit, attempt };
            NodeTold::begin(&self.shared, &span, pass.visit.clone())
        };
        self.slots.push(Slot::new(id, work, waker, told));
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
                SlotEnd::Waiting => {
                    let mut told = drop_quietly(self.slots.swap_remove(at));
                    told.end(End::Paused, false, None);
                }
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
        let mut told = drop_quietly(slot);
        let output = if self.shared.captures.output { told_output(&result) } else { None };
        let mut core = self.shared.lock();
        let left = self.conclude(&mut core, id, result);
        let news = core.take_news();
        drop(core);
        let retries = matches!(left, Left::Retries(..));
        told.end(left.end(), retries, output.as_ref());
        told.news(&news);
        match left {
            Left::Retries(_, sleep) => {
                let waker = SlotWaker::woken();
                self.slots.push(Slot::new(id, Work::Delay(sleep), waker, NodeTold::nothing(&self.shared)));
            }
            Left::Stopped(_) => self.shared.cancel.cancel(),
            Left::Completed | Left::Failed(_) | Left::Parked => {}
        }
    }

    /// Takes in what a node ended with.
    fn conclude(&self, core: &mut Core, id: u32, result: NodeResult) -> Left {
        let writes = match close_pass(core, id, result.is_ok()) {
            Ok(writes) => writes,
            Err(failure) => {
                core.halt_with(Halt::Parked(failure));
                return Left::Parked;
            }
        };
        let failed = match result {
            Ok(output) => flow::complete(core, &self.shared.registry, id, output, writes).err(),
            Err(error) => Some(error),
        };
        if core.state.meters.stopped.is_some() {
            return Left::Stopped(failed.map(|error| error.code()));
        }
        let Some(error) = failed else { return Left::Completed };
        if let Some(what) = error.as_unreadable().filter(|_| self.shared.is_restored) {
            let node = core.state.activations.get(&id).map(|activation| activation.node.clone()).unwrap_or_default();
            core.halt_with(Halt::Parked(unreadable(&node, what)));
            return Left::Parked;
        }
        let failure = error.code();
        let Some(delay) = flow::retry_delay(core, &self.shared.registry, id, &error) else {
            flow::fail(core, &self.shared.registry, id, error);
            return Left::Failed(failure);
        };
        let sleep = self.shared.io.host.sleep(delay);
        core.emit(Event::Retried { activation: id });
        Left::Retries(failure, sleep)
    }

    fn retry(&mut self, at: usize) {
        let slot = self.slots.swap_remove(at);
        if self.shared.cancel.is_cancelled() {
            return;
        }
        self.start_pass(slot.activation);
    }
}

/// How a node was left.
enum Left {
    Completed,
    Failed(FailureCode),
    /// It is tried again after this.
    Retries(FailureCode, IoFuture<'static, ()>),
    /// A person does not let the run go on.
    Stopped(Option<FailureCode>),
    /// The run cannot go on with this code.
    Parked,
}

impl Left {
    fn end(&self) -> End {
        match self {
            Self::Completed | Self::Stopped(None) => End::Completed,
            Self::Failed(code) | Self::Retries(code, _) | Self::Stopped(Some(code)) => End::Failed(*code),
            Self::Parked => End::Dropped,
        }
    }
}

fn told_output(result: &NodeResult) -> Option<Content> {
    let output = result.as_ref().ok()?;
    RawJson::of(&output.data).ok().map(Content::new)
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
        self.slots.drain(..).map(drop_quietly).for_each(drop);
    }
}
