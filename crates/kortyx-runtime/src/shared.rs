//! What the scheduler, the node contexts and the one who delivers answers share while a run executes.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use kortyx_protocol::Failure;
use tokio_util::sync::CancellationToken;

use crate::{
    Captures, CompletedResponse,
    event::{Event, EventBatch},
    io::{Batch, Host, Io, RecordError},
    observe::News,
    pass::PassState,
    state::{
        Asked, CallKey, Entry, EntryValue, Kind, OpenAsk, Phase, ROOT, RunState, SNAPSHOT_VERSION, ask_key,
        parse_ask_key,
    },
    turn::{DeliveredAnswer, EngineError, OpenQuestion, RunInfo, Suspension},
    workflow::Registry,
};

/// Where the text of a state or a batch begins to grow: most are smaller.
const ENCODED_SIZE: usize = 2048;

pub(crate) struct Shared {
    pub(crate) info: RunInfo,
    pub(crate) io: Io,
    pub(crate) registry: Arc<Registry>,
    pub(crate) limits: crate::Limits,
    pub(crate) cancel: CancellationToken,
    /// The run was stored before, perhaps by other code.
    pub(crate) is_restored: bool,
    /// What content the observer asks for.
    pub(crate) captures: Captures,
    core: Mutex<Core>,
}

/// The mutable part, behind one lock that is never held while user code runs.
pub(crate) struct Core {
    host: Arc<dyn Host>,
    pub(crate) state: RunState,
    /// Applied and not on their way to storage yet.
    events: Vec<Event>,
    /// How many events there were, how many of them storage holds, and how many somebody waits for it to hold.
    counted: u64,
    stored: u64,
    wanted: u64,
    /// Who waits for storage.
    waiting: Vec<Waker>,
    pub(crate) passes: BTreeMap<u32, Box<PassState>>,
    /// The wakers of live frames: who waits for an activation of theirs to become ready.
    pub(crate) frame_wakers: BTreeMap<u32, Waker>,
    /// Questions of suspended activations that storage does not know yet.
    pub(crate) unpublished: BTreeMap<u32, Vec<OpenAsk>>,
    /// Ask keys that storage should close.
    withdrawn: Vec<String>,
    /// The response that was completed, until storage knows.
    completing: Option<CompletedResponse>,
    pub(crate) halt: Option<Halt>,
    durable: bool,
    /// The run is durable, or its first snapshot is on its way.
    is_opened: bool,
    /// A write is wanted, whatever there is to write.
    flush: bool,
    passes_begun: u64,
    /// What is to be told when the lock is free; `None` when nobody listens.
    pub(crate) news: Option<Vec<News>>,
}

/// Why the engine stops without an outcome of the run.
pub(crate) enum Halt {
    Storage(RecordError),
    Parked(Failure),
}

impl Shared {
    pub(crate) fn new(
        info: RunInfo,
        io: Io,
        registry: Arc<Registry>,
        limits: crate::Limits,
        state: RunState,
        is_restored: bool,
    ) -> Self {
        let core = Core {
            host: io.host.clone(),
            state,
            events: Vec::new(),
            counted: 0,
            stored: 0,
            wanted: 0,
            waiting: Vec::new(),
            passes: BTreeMap::new(),
            frame_wakers: BTreeMap::new(),
            unpublished: BTreeMap::new(),
            withdrawn: Vec::new(),
            completing: None,
            halt: None,
            durable: is_restored,
            is_opened: is_restored,
            flush: false,
            passes_begun: 0,
            news: io.observer.is_some().then(Vec::new),
        };
        let cancel = CancellationToken::new();
        let captures = io.observer.as_ref().map_or(Captures::nothing(), |observer| observer.captures());
        Self { info, io, registry, limits, cancel, is_restored, captures, core: Mutex::new(core) }
    }

    /// A panic while the lock is held cannot leave half a change: every change is one `apply`.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until what is decisive is stored, before an effect begins.
    pub(crate) async fn before_effect(&self) {
        let needed = {
            let core = self.lock();
            !core.durable || core.events.iter().any(Event::is_decisive)
        };
        if needed {
            self.stored().await;
        }
    }

    /// Waits until storage knows the run.
    pub(crate) async fn opened(&self) {
        if !self.lock().is_durable() {
            self.stored().await;
        }
    }

    /// Has the execution write soon, whether there is an event or not.
    pub(crate) fn flush(&self) {
        let mut core = self.lock();
        core.flush = true;
        if let Some(root) = core.frame_wakers.get(&ROOT) {
            root.wake_by_ref();
        }
    }

    /// Waits until every event so far is stored. The execution writes, not the node that waits: a node may drop its
    /// futures, or not poll them, at any time, and nothing may be lost or held up by that.
    pub(crate) async fn stored(&self) {
        let events = self.lock().want_stored();
        poll_fn(|cx| self.lock().poll_stored(events, cx.waker())).await;
    }

    /// Stores every event so far, and with `publish` also the questions of suspended activations. One at a time.
    pub(crate) async fn write(&self, publish: bool) -> Result<(), RecordError> {
        let opening = {
            let mut core = self.lock();
            (!core.durable).then(|| core.begin_opening()).transpose()?
        };
        if let Some((snapshot, events)) = opening {
            self.io.recorder.open(snapshot).await?;
            let mut core = self.lock();
            core.durable = true;
            core.note_stored(events);
            return Ok(());
        }
        let Some((batch, events)) = self.lock().begin_batch(publish)? else { return Ok(()) };
        let reply = self.io.recorder.record(batch).await?;
        let mut core = self.lock();
        core.note_stored(events);
        core.deliver(reply.answers);
        Ok(())
    }
}

impl Core {
    pub(crate) fn next_pass_number(&mut self) -> u64 {
        self.passes_begun = self.passes_begun.saturating_add(1);
        self.passes_begun
    }

    /// Whether storage knows the run.
    pub(crate) fn is_durable(&self) -> bool {
        self.durable
    }

    /// Whether there is something that storage should publish or close.
    pub(crate) fn has_news(&self) -> bool {
        self.unpublished.keys().any(|id| self.state.is_waiting(*id)) || !self.withdrawn.is_empty()
    }

    /// Applies an event and remembers it for the next durable point.
    pub(crate) fn emit(&mut self, mut event: Event) {
        if let Some(at) = event.time() {
            *at = Some(self.host.now().as_millis());
        }
        // What comes before the first snapshot is in it.
        if self.is_opened {
            self.events.push(event.clone());
        }
        self.state.apply(event);
        self.counted = self.counted.saturating_add(1);
    }

    /// Whether the step of an activation is being polled: what it does is part of the step, not of the journal.
    pub(crate) fn is_in_step(&self, activation: u32) -> bool {
        self.passes.get(&activation).is_some_and(|pass| pass.running_step.is_some())
    }

    /// How many events there were so far.
    pub(crate) fn counted(&self) -> u64 {
        self.counted
    }

    /// How many events storage holds.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// The response ends with this, unless it is complete already.
    pub(crate) fn complete_response(&mut self, response: CompletedResponse) {
        if !self.state.response_completed {
            self.completing.get_or_insert(response);
        }
    }

    /// Whether the response was completed and storage has yet to be told.
    pub(crate) fn is_completing_response(&self) -> bool {
        self.completing.is_some()
    }

    /// Whether somebody waits for storage to hold what it does not hold yet.
    pub(crate) fn is_write_wanted(&self) -> bool {
        self.flush || (!self.waiting.is_empty() && (!self.durable || self.stored < self.wanted))
    }

    /// Asks for a write of everything so far; says how many events that is.
    fn want_stored(&mut self) -> u64 {
        self.wanted = self.counted;
        if let Some(root) = self.frame_wakers.get(&ROOT) {
            root.wake_by_ref();
        }
        self.wanted
    }

    fn poll_stored(&mut self, events: u64, waker: &Waker) -> Poll<()> {
        if self.durable && self.stored >= events {
            return Poll::Ready(());
        }
        self.waiting.push(waker.clone());
        Poll::Pending
    }

    fn note_stored(&mut self, events: u64) {
        self.stored = self.stored.max(events);
        self.waiting.drain(..).for_each(Waker::wake);
    }

    /// Stops the engine; the first reason counts.
    pub(crate) fn halt_with(&mut self, halt: Halt) {
        self.halt.get_or_insert(halt);
        self.wake_frames();
    }

    /// Makes every live frame look where it stands.
    pub(crate) fn wake_frames(&self) {
        self.frame_wakers.values().for_each(Waker::wake_by_ref);
    }

    pub(crate) fn take_halt(&mut self) -> Option<EngineError> {
        match self.halt.take()? {
            Halt::Storage(error) => Some(EngineError::Storage(error)),
            Halt::Parked(failure) => Some(EngineError::Parked(failure)),
        }
    }

    /// The state as storage will know it after the next suspension: open questions published, nothing pending.
    pub(crate) fn suspension(&mut self) -> Result<Suspension, RecordError> {
        let publish = self.questions();
        for question in &publish {
            self.state.publish(question.activation, question.asked.clone());
        }
        // What goes on from it is another turn.
        let trace = self.state.trace.as_mut().map(mem::take);
        let snapshot = encode(&self.state);
        // Only in the snapshot: storage may have answers instead of taking it.
        self.state.trace = trace;
        for question in &publish {
            self.state.unpublish(question.activation);
        }
        Ok(Suspension {
            snapshot: snapshot?,
            publish,
            withdraw: self.withdrawn.clone(),
            answers_seen: self.state.answers_seen,
            workflow: self.state.pin(),
            turn: self.state.turn(),
            durable: self.durable,
            response_completed: self.state.response_completed,
        })
    }

    /// Everything so far goes into the first snapshot. Storage knows no question yet, so nothing waits in it: whoever goes
    /// on from it asks again.
    fn begin_opening(&mut self) -> Result<(Vec<u8>, u64), RecordError> {
        (self.is_opened, self.flush) = (true, false);
        let waiting: Vec<u32> = self.state.set_phases(Phase::Waiting, Phase::Ready);
        let snapshot = encode(&self.state);
        for id in waiting {
            self.state.set_phase(id, Phase::Waiting);
        }
        Ok((snapshot?, self.counted))
    }

    fn begin_batch(&mut self, publish: bool) -> Result<Option<(Batch, u64)>, RecordError> {
        let questions = if publish { self.questions() } else { Vec::new() };
        for question in &questions {
            // Applied where it is in the order of events, not when storage has replied: answers may come in between.
            let asks = vec![question.asked.clone()];
            self.emit(Event::Published { activation: question.activation, asks });
            self.unpublished.remove(&question.activation);
        }
        let withdraw = mem::take(&mut self.withdrawn);
        let events = mem::take(&mut self.events);
        let is_flush = mem::take(&mut self.flush);
        if events.is_empty() && withdraw.is_empty() && !is_flush {
            return Ok(None);
        }
        let entries = if events.is_empty() { None } else { Some(encode(&EventBatch { v: SNAPSHOT_VERSION, events })?) };
        let response = self.completing.take();
        let batch = Batch {
            entries,
            publish: questions,
            withdraw,
            answers_seen: self.state.answers_seen,
            response_completed: self.state.response_completed && response.is_none(),
            response,
        };
        Ok(Some((batch, self.counted)))
    }

    /// The questions that wait to be published, by activation and in the order they were asked. An activation that an
    /// answer has made ready will ask again, perhaps for something else.
    fn questions(&self) -> Vec<OpenQuestion> {
        let all = self.unpublished.iter().filter(|(id, _)| self.state.is_waiting(**id));
        all.flat_map(|(id, asks)| asks.iter().filter_map(|ask| self.question(*id, ask))).collect()
    }

    fn question(&self, id: u32, ask: &OpenAsk) -> Option<OpenQuestion> {
        let activation = self.state.activations.get(&id)?;
        let workflow = self.state.frame(activation.frame)?.workflow.id.to_string();
        Some(OpenQuestion {
            ask: ask_key(id, &ask.key),
            workflow,
            node: activation.node.to_string(),
            question: ask.question.clone(),
            activation: id,
            asked: Asked { key: ask.key.clone(), identity: ask.identity.clone(), group: ask.group.clone() },
        })
    }

    /// Takes answers in. One to a question that nobody waits for any more has no effect on the run.
    pub(crate) fn deliver(&mut self, answers: Vec<DeliveredAnswer>) {
        for answer in answers {
            if answer.seq <= self.state.answers_seen {
                continue;
            }
            self.emit(Event::AnswersSeen { seq: answer.seq });
            let Some((id, key)) = parse_ask_key(&answer.ask) else { continue };
            let Some(activation) = self.state.activations.get(&id) else { continue };
            let Some(ask) = activation.journal.asks.iter().find(|ask| ask.key == key) else { continue };
            let identity = ask.identity.clone();
            let entry = Entry::new(key, Kind::Interrupt, identity, EntryValue::Answer(answer.response));
            self.emit(Event::Journaled { activation: id, entry });
            self.wake(id);
        }
    }

    /// Wakes whoever can go on with an activation: its pass if it is live, else its frame, up to the root.
    fn wake(&self, activation: u32) {
        let mut next = Some(activation);
        while let Some(id) = next {
            if let Some(waker) = self.passes.get(&id).and_then(|pass| pass.waker.as_ref()) {
                waker.wake_by_ref();
            }
            let Some(frame_id) = self.state.activations.get(&id).map(|activation| activation.frame) else { return };
            if let Some(waker) = self.frame_wakers.get(&frame_id) {
                waker.wake_by_ref();
            }
            next = self.state.frame(frame_id).and_then(|frame| frame.parent.as_ref()).map(|parent| parent.activation);
        }
    }

    /// The node dropped a step or a child call before it completed.
    pub(crate) fn abandon(&mut self, activation: u32, key: CallKey) {
        let child = self.state.activations.get(&activation).and_then(|activation| {
            activation.journal.children.iter().find(|child| child.key == key).map(|child| child.frame)
        });
        if let Some(frame) = child {
            self.withdraw_frame(frame);
        }
        self.take_back_dropped(activation, &key);
        self.emit(Event::Abandoned { activation, key });
    }

    /// Closes every question of an activation that ends, and of all below it.
    pub(crate) fn withdraw_asks(&mut self, id: u32) {
        let Some(activation) = self.state.activations.get(&id) else { return };
        let own = activation.journal.asks.iter().map(|ask| ask_key(id, &ask.key));
        let keys: Vec<String> = own.chain(self.state.asks_below(id)).collect();
        self.withdrawn.extend(keys);
    }

    fn withdraw_frame(&mut self, frame: u32) {
        let keys = self.state.asks_of_frame(frame);
        self.withdrawn.extend(keys);
    }

    /// Closes published questions that a finished pass no longer waits for.
    pub(crate) fn withdraw(&mut self, activation: u32, keys: Vec<CallKey>) {
        if keys.is_empty() {
            return;
        }
        let asks = keys.iter().map(|key| ask_key(activation, key));
        self.withdrawn.extend(asks);
        self.emit(Event::Withdrawn { activation, keys });
    }
}

fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, RecordError> {
    let mut bytes = Vec::with_capacity(ENCODED_SIZE);
    match serde_json::to_writer(&mut bytes, value) {
        Ok(()) => Ok(bytes),
        Err(error) => {
            Err(RecordError { message: "the run's state does not serialize".into(), source: Some(error.into()) })
        }
    }
}
