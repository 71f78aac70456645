//! What is seen of the nodes while they run, and what can be said against it at once.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
};

use kortyx_protocol::ResumeResponse;
use kortyx_runtime::OpenQuestion;

use crate::{
    model_language::Scope,
    support::{Wait, text},
};

/// Watches the nodes of a run through all its processes.
#[derive(Default)]
pub(crate) struct Probe {
    seen: Mutex<Seen>,
    random: Mutex<Random>,
    actor: Mutex<Option<Actor>>,
}

/// Acts on the world wherever something waits.
pub(crate) type Actor = Box<dyn FnMut(&mut Random) + Send>;

#[derive(Default)]
pub(crate) struct Seen {
    /// Every effect that happened: its address by its idempotency key.
    pub(crate) effects: HashMap<String, Effect>,
    /// Which branch of a select was first, by address.
    pub(crate) winners: BTreeMap<String, usize>,
    /// What the activations counted up to at their ends.
    pub(crate) counts: BTreeMap<(String, Scope), u32>,
    pub(crate) crashes: u32,
    /// The addresses whose questions were answered.
    pub(crate) answered: BTreeSet<String>,
    /// What must not happen and did.
    pub(crate) violations: Vec<String>,
    finished: BTreeSet<String>,
    attempted: BTreeSet<String>,
}

pub(crate) struct Effect {
    pub(crate) address: String,
    payload: String,
    /// After how many crashes it happened last.
    crashes: u32,
}

impl Probe {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Mutex::new(Random(seed)), ..Self::default() }
    }

    pub(crate) fn reseed(&self, seed: u64) {
        *self.random.lock().unwrap() = Random(seed);
    }

    pub(crate) fn seen<R>(&self, look: impl FnOnce(&mut Seen) -> R) -> R {
        look(&mut self.seen.lock().unwrap())
    }

    pub(crate) fn act_by(&self, actor: Actor) {
        *self.actor.lock().unwrap() = Some(actor);
    }

    /// Lets the actor act, then says how long to wait.
    pub(crate) fn meddle(&self) -> Wait {
        let mut random = self.random.lock().unwrap();
        if let Some(actor) = &mut *self.actor.lock().unwrap() {
            actor(&mut random);
        }
        random.wait()
    }

    /// How long a node's own code dawdles between two calls. It waits for nothing but itself: a node that asks is dropped
    /// while it waits for anything else that is no call.
    pub(crate) fn dawdle(&self) -> Wait {
        Wait::Polls(self.random.lock().unwrap().below(3))
    }

    /// An effect happens. One that is known to be recorded must not, nor one that this process has begun before.
    pub(crate) fn effect(&self, key: String, address: &str, payload: &str) {
        self.seen(|seen| {
            if seen.finished.contains(address) {
                seen.violations.push(format!("the step {address} ran again after it had finished"));
            }
            let crashes = seen.crashes;
            let effect = Effect { address: address.to_owned(), payload: payload.to_owned(), crashes };
            let Some(before) = seen.effects.insert(key, effect) else { return };
            if before.address != address {
                seen.violations.push(format!("{} and {address} have one idempotency key", before.address));
            }
            if before.payload != payload {
                seen.violations.push(format!("{address} was done with {} and with {payload}", before.payload));
            }
            if before.crashes == crashes {
                seen.violations.push(format!("the step {address} ran twice without a crash"));
            }
        });
    }

    /// A step returned to its node.
    pub(crate) fn finished(&self, address: &str, result: &str) {
        self.seen(|seen| {
            if address != result {
                seen.violations.push(format!("the step {address} got the result of {result}"));
            }
            seen.finished.insert(address.to_owned());
        });
    }

    /// An ask returned to its node.
    pub(crate) fn answered(&self, address: &str, answer: &str) {
        if answer != answer_to(address) {
            self.seen(|seen| seen.violations.push(format!("the ask {address} got the answer {answer}")));
        }
    }

    /// Whether nobody has asked this for the address before.
    pub(crate) fn is_first_attempt(&self, address: &str) -> bool {
        self.seen(|seen| seen.attempted.insert(address.to_owned()))
    }

    /// A branch was first.
    pub(crate) fn won(&self, address: &str, branch: usize) {
        self.seen(|seen| {
            let before = seen.winners.insert(address.to_owned(), branch);
            if before.is_some_and(|before| before != branch) {
                seen.violations.push(format!("the select {address} was won by {before:?}, then by {branch}"));
            }
        });
    }
}

/// How people answer: the answer carries the address of its ask, which is the text of the question.
pub(crate) fn respond(probe: &Arc<Probe>) -> impl Fn(&OpenQuestion) -> ResumeResponse + use<> {
    let probe = probe.clone();
    move |question| {
        let address = question.question.question().unwrap();
        probe.seen(|seen| seen.answered.insert(address.to_owned()));
        text(&answer_to(address))
    }
}

/// The answer to the question asked at an address: it says whom it is for.
pub(crate) fn answer_to(address: &str) -> String {
    format!("to {address}")
}

/// A generator that only ever says 0 when it was given 0.
#[derive(Default)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u8) -> u8 {
        if self.0 == 0 {
            return 0;
        }
        // SplitMix64, by Sebastiano Vigna.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15).max(1);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u8::try_from((mixed ^ (mixed >> 31)) % u64::from(bound)).unwrap()
    }

    fn wait(&mut self) -> Wait {
        match self.below(6) {
            1 | 2 => Wait::Polls(self.below(4)),
            3 => Wait::Rounds(self.below(4)),
            4 => Wait::Millis(self.below(50)),
            _ => Wait::Polls(0),
        }
    }
}
