//! How long it takes from one fact about a run to another.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use kortyx_orchestrator::{Correlation, End, Fact, ResumeOutcome, ResumeReason};
use kortyx_protocol::RunId;

use super::{names, sink::workflow};

/// Of how many runs is noted since when. A driver that gives its run up tells nothing, so notes may be left over; beyond this many all are
/// thrown away, and what is under way is not timed.
const NOTED: usize = 10_000;

/// What is timed.
#[derive(Debug, Default)]
pub(super) struct Times(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    /// Runs that are driven here.
    drives: HashMap<RunId, Drive>,
    /// When runs that are to go on here were answered.
    answered: HashMap<RunId, Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Drive {
    since: Instant,
    /// When a node began to wait for people, the last one that did.
    waiting: Option<Instant>,
}

impl Times {
    pub(super) fn note(&self, fact: &Fact) {
        match fact {
            Fact::RunStarted { about, .. } => drop(self.begin(about)),
            Fact::RunResumed { about, reason, .. } => {
                let answered = self.begin(about).filter(|_| *reason == ResumeReason::Answered);
                if let Some(answered) = answered {
                    names::RESUME.observe([workflow(about)], answered.elapsed().as_secs_f64());
                }
            }
            Fact::InterruptResolved { about, outcome: ResumeOutcome::Resumed, .. } => self.answered(about),
            Fact::NodeLeft { about, end: End::Paused, .. } => self.waits(about),
            Fact::RunSuspended { about, .. } => {
                if let Some(waiting) = self.end(about, "suspended").and_then(|drive| drive.waiting) {
                    names::PAUSE.observe([workflow(about)], waiting.elapsed().as_secs_f64());
                }
            }
            Fact::RunFinished { about, status, .. } => drop(self.end(about, status.as_str())),
            Fact::RunParked { about, .. } => drop(self.end(about, "parked")),
            Fact::LeaseLost { about, .. } => drop(self.end(about, "lost")),
            _ => {}
        }
    }

    /// Says when the run was answered, if it was.
    fn begin(&self, about: &Correlation) -> Option<Instant> {
        self.with(|noted| {
            make_room(&mut noted.drives);
            noted.drives.insert(about.run_id().clone(), Drive { since: Instant::now(), waiting: None });
            noted.answered.remove(about.run_id())
        })
    }

    /// A run that is driven here already goes on without being resumed.
    fn answered(&self, about: &Correlation) {
        self.with(|noted| {
            if !noted.drives.contains_key(about.run_id()) {
                make_room(&mut noted.answered);
                noted.answered.entry(about.run_id().clone()).or_insert_with(Instant::now);
            }
        });
    }

    fn waits(&self, about: &Correlation) {
        self.with(|noted| {
            if let Some(drive) = noted.drives.get_mut(about.run_id()) {
                drive.waiting = Some(Instant::now());
            }
        });
    }

    fn end(&self, about: &Correlation, end: &'static str) -> Option<Drive> {
        let drive = self.with(|noted| noted.drives.remove(about.run_id()))?;
        names::DRIVE.observe([workflow(about), end.into()], drive.since.elapsed().as_secs_f64());
        Some(drive)
    }

    fn with<R>(&self, look: impl FnOnce(&mut Noted) -> R) -> R {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn make_room<T>(notes: &mut HashMap<RunId, T>) {
    if notes.len() >= NOTED {
        notes.clear();
    }
}
