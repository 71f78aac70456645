//! The ids of spans, and when they began. Used where tracing gives none.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kortyx_orchestrator::{Correlation, Visit};
use kortyx_protocol::RunId;
use sha2::{Digest as _, Sha256};

use crate::studio::{queue::Noted, recent::Recent};

/// How many open spans are remembered.
const OPEN: usize = 16_384;

/// What a span is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    run: RunId,
    part: Option<(u32, Sort, Arc<str>, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sort {
    Node,
    Step,
    Child,
    Generation,
    Tool,
}

impl Key {
    pub(super) fn run(about: &Correlation) -> Self {
        Self { run: about.run_id().clone(), part: None }
    }

    pub(super) fn node(about: &Correlation, visit: &Visit) -> Self {
        Self::call(about, visit.activation, Sort::Node, &visit.node, 0)
    }

    pub(super) fn call(about: &Correlation, activation: u32, sort: Sort, id: &str, occurrence: u32) -> Self {
        Self { run: about.run_id().clone(), part: Some((activation, sort, id.into(), occurrence)) }
    }
}

/// Where an event belongs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) span: Option<String>,
    pub(super) parent: Option<String>,
}

impl Placed {
    pub(super) fn nowhere() -> Self {
        Self::default()
    }
}

/// The open spans.
pub(super) struct Spans(Recent<Key, Open>);

struct Open {
    since: Instant,
    placed: Placed,
}

impl Spans {
    pub(super) fn new() -> Self {
        Self(Recent::new(OPEN))
    }

    /// A span begins.
    pub(super) fn begin(&mut self, key: Key, above: Option<&Key>, noted: &Noted) -> Placed {
        let mut random = [0; 8];
        // Without random numbers there are no events either.
        let is_random = getrandom::fill(&mut random).is_ok() && random != [0; 8];
        let parent = above.and_then(|above| self.0.get(above)).and_then(|open| open.placed.span.clone());
        let placed = Placed { span: is_random.then(|| format!("{:016x}", u64::from_be_bytes(random))), parent };
        self.0.insert(key, Open { since: noted.instant, placed: placed.clone() });
        placed
    }

    /// It has ended: how long it took, in milliseconds, where its beginning was told.
    pub(super) fn end(&mut self, key: &Key, noted: &Noted) -> (Placed, Option<u64>) {
        match self.0.remove(key) {
            Some(open) => (open.placed, Some(millis(noted.instant.saturating_duration_since(open.since)))),
            None => (Placed::nowhere(), None),
        }
    }

    /// Something happens in it.
    pub(super) fn within(&self, key: &Key) -> Placed {
        self.0.get(key).map(|open| open.placed.clone()).unwrap_or_default()
    }
}

/// The trace of a run, the same in every process: the first half of a hash of its id.
pub(super) fn trace_of(run: &RunId) -> String {
    let hash = Sha256::new().chain_update("kortyx trace 1\0").chain_update(run.as_str()).finalize();
    let half = hash.iter().take(16).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    format!("{half:032x}")
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
