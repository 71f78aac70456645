//! Content on its way out: only where it is switched on, without what is taken out of it, and no more than allowed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kortyx_orchestrator::Content as Captured;
use kortyx_protocol::RawJson;
use serde_json::Value;

use crate::{
    Redaction,
    studio::{StudioConfig, counts::Counts},
};

/// What is let through.
pub(super) struct Content {
    input: bool,
    output: bool,
    redaction: Redaction,
    most: usize,
}

impl Content {
    pub(super) fn new(config: &StudioConfig) -> Self {
        let redaction = config.redaction.clone();
        Self { input: config.input, output: config.output, redaction, most: config.bounds.content }
    }

    /// What a person, a run, a model or a tool was given.
    pub(super) fn input(&self, content: Option<&Captured>, counts: &Counts) -> Option<Value> {
        content.filter(|_| self.input).and_then(|content| self.shown(content.json(), counts))
    }

    /// What it said.
    pub(super) fn output(&self, content: Option<&Captured>, counts: &Counts) -> Option<Value> {
        content.filter(|_| self.output).and_then(|content| self.shown(content.json(), counts))
    }

    pub(super) fn is_output_on(&self) -> bool {
        self.output
    }

    /// What is left of it; `None` when it is too large, cannot be read exactly, or cannot be judged.
    pub(super) fn shown(&self, json: &RawJson, counts: &Counts) -> Option<Value> {
        let is_small = json.get().len() <= self.most;
        let judge = || if is_small { self.redaction.apply(json) } else { None };
        let shown = catch_unwind(AssertUnwindSafe(judge)).ok().flatten();
        counts.note_omitted(usize::from(shown.is_none()));
        shown
    }
}
