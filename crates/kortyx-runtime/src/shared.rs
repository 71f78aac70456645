//! What the scheduler, the node contexts and the one who delivers answers share while a run executes.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

use futures_util::lock::Mutex as AsyncMutex;
use kortyx_protocol::{Failure, StreamChunk};
use tokio_util::sync::CancellationToken;

use crate::{
    event::{Event, EventBatch},
    execution::{DeliveredAnswer, EngineError, OpenQuestion, RunInfo},
    io::{Batch, Io, RecordError},
    pass::PassState,
    state::{Asked, CallKey, Entry, EntryValue, Kind, OpenAsk, RunState, SNAPSHOT_VERSION, ask_key, parse_ask_key},
    workflow::Registry,
};

pub(crate) struct Shared {
    pub(crate) info: RunInfo,
    pub(crate) io: Io,
    pub(crate) registry: Arc<Registry>,
    pub(crate) limits: crate::Limits,
    pub(crate) cancel: CancellationToken,
    core: Mutex<Core>,
    /// Held while a batch is on its way to storage, so that batches keep their order.
    flushing: AsyncMutex<()>,
}

/// The mutable part, behind one lock that is never held while user code runs.
pub(crate) struct Core {
    pub(crate) state: RunState,
    /// Applied and not stored yet.
    events: Vec<Event>,
    pub(crate) passes: HashMap<u32, PassState>,
    /// The wakers of live frames: who waits for an activation of theirs to become ready.
    pub(crate) frame_wakers: HashMap<u32, Waker>,
    /// Questions of suspended activations that storage does not know yet.
    pub(crate) unpublished: HashMap<u32, Vec<OpenAsk>>,
    /// Ask keys that storage should close.
    withdrawn: Vec<String>,
    pub(crate) halt: Option<Halt>,
    durable: bool,
    passes_begun: u64,
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
        durable: bool,
    ) -> Self {
        let core = Core {
            state,
            events: Vec::new(),
            passes: HashMap::new(),
            frame_wakers: HashMap::new(),
            unpublished: HashMap::new(),
            withdrawn: Vec::new(),
            halt: None,
            durable,
            passes_begun: 0,
        };
        let cancel = CancellationToken::new();
        Self { info, io, registry, limits, cancel, core: Mutex::new(core), flushing: AsyncMutex::new(()) }
    }

    /// A panic while the lock is held cannot leave half a change: every change is one `apply`.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores what is decisive before an effect begins. Never returns when storage refuses.
    pub(crate) async fn before_effect(&self) {
        let needed = {
            let core = self.lock();
            !core.durable || core.events.iter().any(Event::is_decisive)
        };
        if needed {
            self.flush(false).await;
        }
    }

    /// Stores every event so far, and with `publish` also the questions of suspended activations. Never returns when
    /// storage refuses: the engine stops instead.
    pub(crate) async fn flush(&self, publish: bool) {
        let turn = self.flushing.lock().await;
        if let Err(error) = self.flush_in_turn(publish).await {
            self.lock().halt_with(Halt::Storage(error));
            drop(turn);
            std::future::pending::<()>().await;
        }
    }

    async fn flush_in_turn(&self, publish: bool) -> Result<(), RecordError> {
        let opening = {
            let mut core = self.lock();
            (!core.durable).then(|| core.begin_opening()).transpose()?
        };
        if let Some(snapshot) = opening {
            self.io.recorder.open(snapshot).await?;
            self.lock().durable = true;
        }
        let Some((batch, questions)) = self.lock().begin_batch(publish)? else { return Ok(()) };
        let reply = self.io.recorder.record(batch).await?;
        let mut core = self.lock();
        core.published(&questions);
        core.deliver(reply.answers);
        Ok(())
    }

    /// Sends a chunk to the receiver.
    pub(crate) async fn send(&self, chunk: StreamChunk) {
        self.io.chunks.send(chunk).await;
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
        !self.unpublished.is_empty() || !self.withdrawn.is_empty()
    }

    /// Applies an event and remembers it for the next durable point.
    pub(crate) fn emit(&mut self, event: Event) {
        self.state.apply(event.clone());
        self.events.push(event);
    }

    /// Stops the engine; the first reason counts.
    pub(crate) fn halt_with(&mut self, halt: Halt) {
        self.halt.get_or_insert(halt);
        for waker in self.frame_wakers.values() {
            waker.wake_by_ref();
        }
    }

    pub(crate) fn take_halt(&mut self) -> Option<EngineError> {
        match self.halt.take()? {
            Halt::Storage(error) => Some(EngineError::Storage(error)),
            Halt::Parked(failure) => Some(EngineError::Parked(failure)),
        }
    }

    /// The state as storage will know it after the next suspension: open questions published, nothing pending.
    pub(crate) fn suspension(&mut self) -> Result<(Vec<u8>, Vec<OpenQuestion>, Vec<String>), RecordError> {
        let questions = self.questions();
        let before = self.state.clone_asks(&questions);
        self.publish_in_state(&questions);
        let snapshot = snapshot(&self.state);
        before.restore(&mut self.state);
        Ok((snapshot?, questions, self.withdrawn.clone()))
    }

    /// Everything so far goes into the first snapshot.
    fn begin_opening(&mut self) -> Result<Vec<u8>, RecordError> {
        self.events.clear();
        snapshot(&self.state)
    }

    fn begin_batch(&mut self, publish: bool) -> Result<Option<(Batch, Vec<OpenQuestion>)>, RecordError> {
        let questions = if publish { self.questions() } else { Vec::new() };
        let withdraw = if publish { mem::take(&mut self.withdrawn) } else { Vec::new() };
        let mut events = mem::take(&mut self.events);
        for question in &questions {
            let asks = vec![question.asked.clone()];
            events.push(Event::Published { activation: question.activation, asks });
        }
        if events.is_empty() && withdraw.is_empty() {
            return Ok(None);
        }
        let entries = match events.is_empty() {
            true => None,
            false => Some(encode(&EventBatch { v: SNAPSHOT_VERSION, events })?),
        };
        let answers_seen = self.state.answers_seen;
        Ok(Some((Batch { entries, publish: questions.clone(), withdraw, answers_seen }, questions)))
    }

    /// Storage knows these questions now.
    fn published(&mut self, questions: &[OpenQuestion]) {
        self.publish_in_state(questions);
        for question in questions {
            if let Some(asks) = self.unpublished.get_mut(&question.activation) {
                asks.retain(|ask| ask.key != question.asked.key);
            }
        }
        self.unpublished.retain(|_, asks| !asks.is_empty());
    }

    fn publish_in_state(&mut self, questions: &[OpenQuestion]) {
        for question in questions {
            let asks = vec![question.asked.clone()];
            self.state.apply(Event::Published { activation: question.activation, asks });
        }
    }

    /// The questions that wait to be published, by activation and in the order they were asked.
    fn questions(&self) -> Vec<OpenQuestion> {
        let mut ids: Vec<&u32> = self.unpublished.keys().collect();
        ids.sort_unstable();
        let all = ids.into_iter().filter_map(|id| Some((*id, self.unpublished.get(id)?)));
        all.flat_map(|(id, asks)| asks.iter().map(move |ask| self.question(id, ask))).flatten().collect()
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
            let entry = Entry { key, kind: Kind::Interrupt, identity, value: EntryValue::Answer(answer.response) };
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

/// The asks of the activations that a tentative publication touches.
struct AsksBefore(Vec<(u32, Vec<Asked>)>);

impl AsksBefore {
    fn restore(self, state: &mut RunState) {
        for (id, asks) in self.0 {
            if let Some(activation) = state.activations.get_mut(&id) {
                activation.journal.asks = asks;
            }
        }
    }
}

impl RunState {
    fn clone_asks(&self, questions: &[OpenQuestion]) -> AsksBefore {
        let mut ids: Vec<u32> = questions.iter().map(|question| question.activation).collect();
        ids.dedup();
        let asks = ids.into_iter().filter_map(|id| Some((id, self.activations.get(&id)?.journal.asks.clone())));
        AsksBefore(asks.collect())
    }
}

fn snapshot(state: &RunState) -> Result<Vec<u8>, RecordError> {
    encode(state)
}

fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, RecordError> {
    serde_json::to_vec(value).map_err(|error| RecordError {
        message: "the run's state does not serialize".into(),
        source: Some(error.into()),
    })
}
