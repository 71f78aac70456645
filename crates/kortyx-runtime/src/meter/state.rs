//! The part of a run's state that counts.

use std::{collections::BTreeMap, sync::Arc};

use kortyx_protocol::{Failure, Usage};
use serde::{Deserialize, Serialize};

use super::{Allowances, Counter, INPUT_TOKENS, Level, OUTPUT_TOKENS, TOKENS};
use crate::state::RunState;

/// What a run has used, and how much it may.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Meters {
    /// What was said when the run began; it goes with the run, whatever other processes would say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<Arc<str>, Option<u64>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    used: BTreeMap<Arc<str>, u64>,
    /// Up to where a person has allowed the run to go on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    granted: BTreeMap<Arc<str>, u64>,
    /// A person has said that the run is not to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stopped: Option<Failure>,
}

/// A limit that was reached, as it stood then. What is asked about it does not change while the question is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reached {
    pub(crate) counter: Arc<str>,
    pub(crate) allowed: u64,
    pub(crate) used: u64,
    /// How much a person gives by saying yes.
    pub(crate) fresh: u64,
}

impl Meters {
    pub(crate) fn new(limits: Allowances) -> Self {
        Self { limits: limits.0, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.used.is_empty() && self.granted.is_empty() && self.stopped.is_none()
    }

    pub(crate) fn all_used(&self) -> &BTreeMap<Arc<str>, u64> {
        &self.used
    }

    pub(crate) fn used(&self, counter: &str) -> u64 {
        self.used.get(counter).copied().unwrap_or_default()
    }

    pub(crate) fn level(&self, counter: Counter) -> Level {
        let granted = self.granted.get(counter.name()).copied();
        let allowed = self.limit(counter).map(|limit| granted.unwrap_or(limit));
        Level { used: self.used(counter.name()), allowed }
    }

    /// What the run's models used, as results tell it.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let used = |counter: Counter| self.used(counter.name());
        let usage = Usage { input: used(INPUT_TOKENS), output: used(OUTPUT_TOKENS), total: used(TOKENS) };
        (usage != Usage::default()).then_some(usage)
    }

    /// The limit that was said, or else the counter's own.
    fn limit(&self, counter: Counter) -> Option<u64> {
        self.limits.get(counter.name()).copied().unwrap_or(counter.limit)
    }

    /// What there is to ask about a counter of which nothing is left.
    pub(crate) fn reached(&self, counter: Counter) -> Option<Reached> {
        let Level { used, allowed } = self.level(counter);
        let allowed = allowed.filter(|allowed| used >= *allowed)?;
        let fresh = self.limit(counter)?.max(1);
        Some(Reached { counter: counter.name().into(), allowed, used, fresh })
    }

    pub(crate) fn spend(&mut self, counter: Arc<str>, amount: u64) {
        let used = self.used.entry(counter).or_default();
        *used = used.saturating_add(amount);
    }
}

impl RunState {
    /// A person lets the run go on: whatever waited for that has something to do.
    pub(crate) fn grant(&mut self, counter: &Arc<str>, allowed: u64) {
        self.meters.granted.insert(counter.clone(), allowed);
        for id in self.held(counter) {
            if let Some(activation) = self.activations.get_mut(&id) {
                activation.held.clear();
            }
            self.make_ready(id);
        }
    }

    /// The activations that can only wait until a person lets the run go on.
    pub(crate) fn held(&self, counter: &Arc<str>) -> Vec<u32> {
        let held = self.activations.iter().filter(|(_, activation)| activation.held.contains(counter));
        held.map(|(id, _)| *id).collect()
    }

    /// The node of the run's own workflow that an activation belongs to, directly or through children.
    pub(crate) fn root_node(&self, mut activation: u32) -> Option<Arc<str>> {
        loop {
            let found = self.activations.get(&activation)?;
            match &self.frame(found.frame)?.parent {
                Some(parent) => activation = parent.activation,
                None => return Some(found.node.clone()),
            }
        }
    }
}
