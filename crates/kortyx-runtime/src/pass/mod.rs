//! One pass over an activation: a node's future from its start to its end or to the pause where it is dropped.
//!
//! Within a pass, calls complete only *between* polls of the node, one at a time, in the order of the journal's log, and
//! not before storage holds them. Emissions complete between polls too, before any call does, whether they are sent or
//! were delivered before. Neither completes in the poll that makes it. So a node sees the same order of events whether
//! its calls run for the first time or are replayed, however its futures are combined.

mod call;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    task::Waker,
};

use kortyx_protocol::{Failure, StreamChunk};

pub(crate) use self::call::{Call, Known};
use crate::{
    Visit,
    event::StateWrites,
    meter::Held,
    shared::{Core, Halt, Shared},
    state::{CallKey, Child, Entry, EntryValue, Journal, Kind, OpenAsk},
};

/// What a node context points to: its pass.
pub(crate) struct PassRef {
    pub(crate) shared: Arc<Shared>,
    pub(crate) activation: u32,
    pub(crate) frame: u32,
    pub(crate) number: u64,
    pub(crate) workflow: Arc<str>,
    pub(crate) node: Arc<str>,
    /// The visit that it is, where somebody observes the run.
    pub(crate) visit: Option<Arc<Visit>>,
}

/// The state of a live pass.
pub(crate) struct PassState {
    pub(crate) number: u64,
    /// Wakes the loop that polls the node.
    pub(crate) waker: Option<Waker>,
    /// The node is being polled; the loop looks at the pass when it returns.
    pub(crate) polling: bool,
    /// Tracked operations under way: steps, children, emissions.
    pub(crate) in_flight: u32,
    /// Children that only wait for people.
    pub(crate) waiting_children: u32,
    pub(crate) writes: StateWrites,
    pub(crate) clock_reads: usize,
    pub(crate) random_reads: usize,
    pub(crate) level_reads: usize,
    /// Calls that wait until a person lets the run go on.
    pub(crate) held: Vec<Held>,
    /// The step whose future is being polled.
    pub(crate) running_step: Option<CallKey>,
    diverged: Option<Failure>,
    counts: BTreeMap<Arc<str>, u32>,
    recorded: BTreeMap<CallKey, Recorded>,
    requested: BTreeMap<CallKey, Requested>,
    open: Vec<OpenAsk>,
    /// Questions that the node no longer waits for, since the loop last looked.
    dropped: Vec<CallKey>,
    /// Completions before this place in the log need no more attention.
    cursor: usize,
    /// Completions before this place whose calls the node has not made are not waited for.
    given_up: usize,
    /// The node may still make the calls that it made in the pass before.
    pub(crate) is_patient: bool,
    /// Where in the log completions of this pass are, with the number of events that storage must hold before.
    unstored: VecDeque<(usize, u64)>,
    emitted: BTreeMap<Arc<str>, u32>,
    /// Emissions that the node waits for, in its order.
    outbox: VecDeque<Outgoing>,
    sent: u64,
    /// The last emission that the node does not wait for and that is sent all the same.
    pub(crate) unawaited: Option<u64>,
}

/// A chunk on its way out.
struct Outgoing {
    chunk: StreamChunk,
    hash: Arc<str>,
    /// The how-manieth chunk of this content it is in the activation.
    count: u32,
    waker: Option<Waker>,
}

/// What to do next for the emissions of a node.
pub(crate) enum Emission {
    None,
    /// It was delivered before a pause; the node goes on.
    Known,
    Send(StreamChunk),
}

/// What became of showing the node its next completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reveal {
    Shown,
    /// The node has yet to make the call whose completion is next.
    Behind,
    Nothing,
}

struct Recorded {
    kind: Kind,
    identity: Arc<str>,
    completed: bool,
    abandoned: bool,
}

/// A call that the node made in this pass.
#[derive(Default)]
struct Requested {
    waker: Option<Waker>,
    dropped: bool,
    /// What its step has used so far.
    spent: Vec<(Arc<str>, u64)>,
    /// The library whose step it is tells what it does.
    is_told: bool,
    /// Where in the log its completion is, once the node may see it.
    revealed: Option<usize>,
}

impl PassState {
    pub(crate) fn new(number: u64, journal: &Journal) -> Self {
        let mut recorded = BTreeMap::new();
        let mut note = |key: &CallKey, kind, identity: &Arc<str>, completed| {
            let abandoned = journal.abandoned.contains(key);
            recorded.insert(key.clone(), Recorded { kind, identity: identity.clone(), completed, abandoned });
        };
        for key in &journal.abandoned {
            note(key, Kind::Step, &Arc::default(), false);
        }
        for ask in &journal.asks {
            note(&ask.key, Kind::Interrupt, &ask.identity, false);
        }
        for child in &journal.children {
            note(&child.key, Kind::Call, &child.identity, false);
        }
        for entry in &journal.log {
            note(&entry.key, entry.kind, &entry.identity, true);
        }
        Self {
            number,
            waker: None,
            polling: false,
            in_flight: 0,
            waiting_children: 0,
            writes: StateWrites::default(),
            clock_reads: 0,
            random_reads: 0,
            level_reads: 0,
            held: Vec::new(),
            running_step: None,
            diverged: None,
            counts: BTreeMap::new(),
            recorded,
            requested: BTreeMap::new(),
            open: Vec::new(),
            dropped: Vec::new(),
            cursor: 0,
            given_up: 0,
            is_patient: true,
            unstored: VecDeque::new(),
            emitted: BTreeMap::new(),
            outbox: VecDeque::new(),
            sent: 0,
            unawaited: None,
        }
    }

    /// The next use of an id within the activation.
    ///
    /// Replay does not run a step that is done, so what a step uses has names of its own.
    pub(crate) fn next_key(&mut self, id: &str) -> CallKey {
        if let Some(step) = &self.running_step {
            let id = format!("{}#{}/{id}", step.id, step.occ);
            return self.count_use(&id);
        }
        self.count_use(id)
    }

    fn count_use(&mut self, id: &str) -> CallKey {
        if let Some((id, count)) = self.counts.get_key_value(id).map(|(id, count)| (id.clone(), *count)) {
            self.counts.insert(id.clone(), count.saturating_add(1));
            return CallKey { id, occ: count };
        }
        let id: Arc<str> = id.into();
        self.counts.insert(id.clone(), 1);
        CallKey { id, occ: 0 }
    }

    /// Makes the loop look at the pass, after a change that came from outside a poll of the node.
    pub(crate) fn nudge(&self) {
        if let Some(waker) = self.waker.as_ref().filter(|_| !self.polling) {
            waker.wake_by_ref();
        }
    }

    /// How often an id was used so far.
    pub(crate) fn uses(&self, id: &str) -> u32 {
        self.counts.get(id).copied().unwrap_or_default()
    }

    /// Takes a chunk; says which emission of the pass it is.
    pub(crate) fn hand_over(&mut self, chunk: StreamChunk, hash: Arc<str>) -> u64 {
        let count = self.emitted.entry(hash.clone()).or_default();
        *count = count.saturating_add(1);
        self.outbox.push_back(Outgoing { chunk, hash, count: *count, waker: None });
        self.nudge();
        self.sent.saturating_add(self.outbox.len() as u64)
    }

    /// Whether an emission is over.
    pub(crate) fn is_sent(&mut self, number: u64, waker: &Waker) -> bool {
        let Some(ahead) = number.checked_sub(self.sent).filter(|ahead| *ahead > 0) else { return true };
        let at = usize::try_from(ahead.saturating_sub(1)).unwrap_or(usize::MAX);
        if let Some(outgoing) = self.outbox.get_mut(at) {
            outgoing.waker = Some(waker.clone());
        }
        false
    }

    /// The next emission. A chunk that was delivered before is over at once.
    pub(crate) fn next_emission(&mut self, journal: &Journal) -> Emission {
        let Some(next) = self.outbox.front() else { return Emission::None };
        if next.count > journal.emitted.get(&*next.hash).copied().unwrap_or_default() {
            return Emission::Send(next.chunk.clone());
        }
        self.end_emission();
        Emission::Known
    }

    /// The first emission is over. Returns the hash of its chunk.
    pub(crate) fn end_emission(&mut self) -> Option<Arc<str>> {
        let outgoing = self.outbox.pop_front()?;
        self.sent = self.sent.saturating_add(1);
        if let Some(waker) = outgoing.waker {
            waker.wake();
        }
        Some(outgoing.hash)
    }

    /// Shows the node its next completion, in log order. One that is not `stored`, or whose call the node has yet to make,
    /// holds back those after it.
    pub(crate) fn reveal_next(&mut self, journal: &Journal, stored: u64) -> Reveal {
        while self.unstored.front().is_some_and(|(_, needed)| *needed <= stored) {
            self.unstored.pop_front();
        }
        for (at, entry) in journal.log.iter().enumerate().skip(self.cursor) {
            let is_abandoned = self.recorded.get(&entry.key).is_some_and(|recorded| recorded.abandoned);
            match self.requested.get_mut(&entry.key) {
                _ if is_abandoned => {}
                None if at < self.given_up => continue,
                None => return Reveal::Behind,
                Some(request) if request.dropped || request.revealed.is_some() => {}
                Some(_) if self.unstored.iter().any(|(unstored, _)| *unstored == at) => return Reveal::Nothing,
                Some(request) => {
                    request.revealed = Some(at);
                    request.waker.take().into_iter().for_each(Waker::wake);
                    self.close_ask(&entry.key);
                    return Reveal::Shown;
                }
            }
            if at == self.cursor {
                self.cursor = at.saturating_add(1);
            }
        }
        Reveal::Nothing
    }

    /// Whether the node has yet to make a call that waited when the pass before it ended.
    pub(crate) fn is_missing_calls(&self, journal: &Journal) -> bool {
        let is_missing = |key: &CallKey| !self.requested.contains_key(key);
        journal.asks.iter().any(|ask| is_missing(&ask.key))
            || journal.children.iter().any(|child| is_missing(&child.key))
    }

    /// The node will not make the calls that it has not made so far.
    pub(crate) fn give_up(&mut self, journal: &Journal) {
        self.given_up = journal.log.len();
        self.is_patient = false;
    }

    /// How many wakers of the node the pass keeps: when there are no others, nobody else will wake the node.
    pub(crate) fn wakers(&self, own: &Waker) -> usize {
        let waiting = self.requested.values().filter_map(|request| request.waker.as_ref());
        let waiting = waiting.chain(&self.waker).filter(|waker| waker.will_wake(own));
        waiting.count()
    }

    /// The question is no longer one that the node waits for. Whether it was.
    fn close_ask(&mut self, key: &CallKey) -> bool {
        let place = self.open.iter().position(|ask| ask.key == *key);
        place.map(|at| self.open.remove(at)).is_some()
    }

    /// Notes what the running step uses. Whether there is one.
    pub(crate) fn spend(&mut self, counter: &str, amount: u64) -> bool {
        let step = self.running_step.as_ref().and_then(|key| self.requested.get_mut(key));
        step.map(|step| step.spent.push((counter.into(), amount))).is_some()
    }

    /// Notes that the running step is told in its parts.
    pub(crate) fn tell_in_parts(&mut self) {
        if let Some(step) = self.running_step.as_ref().and_then(|key| self.requested.get_mut(key)) {
            step.is_told = true;
        }
    }

    /// Whether a step was told in its parts.
    pub(crate) fn is_told_in_parts(&self, key: &CallKey) -> bool {
        self.requested.get(key).is_some_and(|step| step.is_told)
    }

    /// Takes what a step has used.
    fn take_spent(&mut self, key: &CallKey) -> Vec<(Arc<str>, u64)> {
        self.requested.get_mut(key).map(|step| std::mem::take(&mut step.spent)).unwrap_or_default()
    }

    /// Whether the node can only wait for people.
    pub(crate) fn is_waiting(&self) -> bool {
        let has_asked = !self.open.is_empty() || self.waiting_children > 0 || !self.held.is_empty();
        self.in_flight == 0 && self.outbox.is_empty() && has_asked
    }

    /// Takes the reason why replay cannot go on: a call that does not match, or an accepted answer whose question the
    /// node did not ask again.
    pub(crate) fn take_divergence(&mut self) -> Option<Failure> {
        self.diverged.take()
    }

    /// An accepted answer whose question this pass has not asked.
    pub(crate) fn unasked_answer<'j>(&self, journal: &'j Journal) -> Option<&'j Entry> {
        let answered = |entry: &&Entry| matches!(entry.value, EntryValue::Answer(_));
        journal.log.iter().filter(answered).find(|entry| !self.requested.contains_key(&entry.key))
    }

    /// A child under way that this pass has not called.
    pub(crate) fn uncalled_child<'j>(&self, journal: &'j Journal) -> Option<&'j Child> {
        journal.children.iter().find(|child| !self.requested.contains_key(&child.key))
    }

    pub(crate) fn diverge(&mut self, failure: Failure) {
        self.diverged.get_or_insert(failure);
    }

    /// Takes the published questions that the node has dropped without an answer.
    pub(crate) fn take_dropped(&mut self, journal: &Journal) -> Vec<CallKey> {
        let is_published = |key: &CallKey| journal.asks.iter().any(|ask| ask.key == *key);
        std::mem::take(&mut self.dropped).into_iter().filter(is_published).collect()
    }

    /// Takes the questions that the node waits for.
    pub(crate) fn take_open(&mut self) -> Vec<OpenAsk> {
        std::mem::take(&mut self.open)
    }

    /// Ends the pass: detached futures of it learn that they wait in vain.
    pub(crate) fn close(self) {
        let calls = self.requested.into_values().filter_map(|request| request.waker);
        let emissions = self.outbox.into_iter().filter_map(|outgoing| outgoing.waker);
        calls.chain(emissions).for_each(Waker::wake);
    }
}

/// The pass is over; only a future that was moved out of the node can see this.
pub(crate) struct PassOver;

impl PassRef {
    /// Works on the shared state, unless this pass is over.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Core) -> R) -> Result<R, PassOver> {
        let mut core = self.shared.lock();
        match core.passes.get(&self.activation) {
            Some(pass) if pass.number == self.number => Ok(work(&mut core)),
            _ => Err(PassOver),
        }
    }

    /// Sets the run aside: what is recorded does not fit the code. The node goes no further.
    pub(crate) async fn park<T>(&self, failure: Failure) -> T {
        self.shared.lock().halt_with(Halt::Parked(failure));
        std::future::pending().await
    }

    /// Works on this pass.
    pub(crate) fn with_pass<R>(&self, work: impl FnOnce(&mut PassState) -> R) -> Result<R, PassOver> {
        let mut core = self.shared.lock();
        match core.passes.get_mut(&self.activation) {
            Some(pass) if pass.number == self.number => Ok(work(pass)),
            _ => Err(PassOver),
        }
    }
}

/// Counts a tracked operation while it is under way.
pub(crate) struct InFlight(Arc<PassRef>);

impl InFlight {
    pub(crate) fn enter(pass: &Arc<PassRef>) -> Self {
        let _ = pass.with_pass(|pass| pass.in_flight = pass.in_flight.saturating_add(1));
        Self(pass.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let _ = self.0.with_pass(|pass| {
            pass.in_flight = pass.in_flight.saturating_sub(1);
            pass.nudge();
        });
    }
}
