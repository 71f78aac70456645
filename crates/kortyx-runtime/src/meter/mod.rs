//! Limits that a run shares with its branches and its children.

mod hold;
mod question;
mod state;

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

pub(crate) use self::{
    hold::{Held, take},
    question::{answered, ask_to_exceed},
    state::{Meters, Reached},
};

/// Children that a run calls, at any depth. 1,000 unless somebody says otherwise.
pub const CHILD_CALLS: Counter = Counter::new("child_calls").limit(1_000);
/// Tokens that models read and wrote, as their providers count. 2,000,000 unless somebody says otherwise.
pub const TOKENS: Counter = Counter::new("tokens").limit(2_000_000);
/// Tokens that models read. No limit unless somebody sets one.
pub const INPUT_TOKENS: Counter = Counter::new("input_tokens");
/// Tokens that models wrote. No limit unless somebody sets one.
pub const OUTPUT_TOKENS: Counter = Counter::new("output_tokens");

/// Something that a run uses up, counted for the run as a whole: all its nodes, its branches, and its children at any depth.
///
/// ```
/// use kortyx_runtime::Counter;
///
/// const SEARCHES: Counter = Counter::new("searches").limit(20);
/// assert_eq!(SEARCHES.name(), "searches");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter {
    name: &'static str,
    limit: Option<u64>,
}

impl Counter {
    /// A counter without a limit of its own. The name is what clients and stored runs know it by.
    pub const fn new(name: &'static str) -> Self {
        Self { name, limit: None }
    }

    /// The limit where neither the run nor its workflow nor the engine says otherwise.
    #[must_use]
    pub const fn limit(mut self, most: u64) -> Self {
        self.limit = Some(most);
        self
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

/// What a step uses up, and by which limits it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// One, taken when the step begins: of those that begin at once no more do than there are left.
    One(Counter),
    /// What [`spend`](crate::NodeContext::spend) says while the step runs. How much that is nobody knows before: the step begins when
    /// anything is left, and what it uses beyond is used.
    Measured(Counter),
}

impl Draw {
    fn counter(self) -> Counter {
        let (Self::One(counter) | Self::Measured(counter)) = self;
        counter
    }
}

/// How much of what a run may use before it asks a person whether to go on.
///
/// ```
/// use kortyx_runtime::{Allowances, CHILD_CALLS, TOKENS};
///
/// let allowances = Allowances::new().limit(CHILD_CALLS, 20).unlimited(TOKENS);
/// # let _ = allowances;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Allowances(pub(crate) BTreeMap<Arc<str>, Option<u64>>);

impl Allowances {
    /// Says nothing: every counter has its own limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// This many.
    pub fn limit(mut self, counter: Counter, most: u64) -> Self {
        self.0.insert(counter.name.into(), Some(most));
        self
    }

    /// Any number.
    pub fn unlimited(mut self, counter: Counter) -> Self {
        self.0.insert(counter.name.into(), None);
        self
    }

    /// What these say, and where they say nothing, what others do.
    pub(crate) fn or(&self, others: &Self) -> Self {
        let mut all = others.0.clone();
        all.extend(self.0.iter().map(|(name, most)| (name.clone(), *most)));
        Self(all)
    }
}

/// How far a counter of a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Level {
    /// What the run has used so far.
    pub used: u64,
    /// How much it may use before it asks, what people have allowed since included; `None` without a limit.
    pub allowed: Option<u64>,
}

impl Level {
    /// What is left; `None` without a limit.
    pub fn left(&self) -> Option<u64> {
        self.allowed.map(|allowed| allowed.saturating_sub(self.used))
    }
}
