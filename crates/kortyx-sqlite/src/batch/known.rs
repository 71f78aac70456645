//! Runs as the last commits left them.
//!
//! A run that starts, is answered and goes on in one process is known before each of its transitions: the writer wrote it.
//! So the writer keeps what it wrote last, decides over that, and makes one round trip instead of two. Whether another
//! process has written meanwhile is checked where it counts, in the transaction: a guard compares SQLite's data version
//! and fails before anything is written. Then nothing is known any more, and the group decides again over what it reads.
//! <https://www.sqlite.org/pragma.html#pragma_data_version>

use std::collections::{HashMap, VecDeque};

use kortyx_protocol::{RequestId, RunId, Timestamp};

use super::{Batch, Last, Question, Run, Wants};

/// How many runs are kept.
const RUNS: usize = 256;

/// The largest run that is kept, in bytes of its payloads.
const SIZE: usize = 64 * 1024;

/// What is known, all of it as of one data version.
#[derive(Debug, Default)]
pub(crate) struct Known {
    version: Option<i64>,
    /// Whether nobody else wrote between the last two looks. While others write, knowing is in vain.
    is_quiet: bool,
    /// The highest keys of runs and questions.
    last: Option<(i64, i64)>,
    runs: HashMap<i64, Kept>,
    run_keys: HashMap<RunId, i64>,
    /// The run of each pending question.
    question_keys: HashMap<RequestId, i64>,
    /// Keys in the order in which runs were kept.
    order: VecDeque<i64>,
}

#[derive(Debug)]
struct Kept {
    run: Run,
    questions: Vec<(i64, Question)>,
}

/// What a batch leaves behind once it is committed.
#[derive(Debug)]
pub(crate) struct Leftover {
    pub(super) runs: Vec<(i64, Run)>,
    pub(super) questions: HashMap<i64, Question>,
    pub(super) last: Option<(i64, i64)>,
}

impl Known {
    /// A batch with everything that is wanted, and the version that it holds for; `None` when something must be read.
    pub(crate) fn batch(&mut self, wants: &Wants, now: Timestamp) -> Option<(Batch, i64)> {
        let version = self.version.filter(|_| self.is_quiet)?;
        let keys = wants.known(self)?;
        let mut batch = Batch::new(now, "");
        if let Some((run, question)) = self.last {
            batch.last = Last { run, question, ..Last::default() };
            batch.has_keys = true;
        }
        for key in keys {
            let Some(kept) = self.remove(key) else { continue };
            batch.run_keys.insert(kept.run.record.run_id.clone(), key);
            batch.runs.insert(key, kept.run);
            for (key, question) in kept.questions {
                batch.question_keys.insert(question.record.request_id.clone(), key);
                batch.questions.insert(key, question);
            }
        }
        Some((batch, version))
    }

    /// Whether keys of new rows are known.
    pub(super) fn has_keys(&self) -> bool {
        self.last.is_some()
    }

    /// The key of a run of which answers above this place are known.
    pub(super) fn run(&self, run_id: &RunId, seen: Option<u64>) -> Option<i64> {
        let key = *self.run_keys.get(run_id)?;
        let run = &self.runs.get(&key)?.run;
        seen.is_none_or(|seen| seen >= run.answers_from).then_some(key)
    }

    /// The key of a pending question's run.
    pub(super) fn question(&self, id: &RequestId) -> Option<i64> {
        self.question_keys.get(id).copied()
    }

    /// Takes note of the version that a transaction began with.
    pub(crate) fn observe(&mut self, version: i64) {
        self.is_quiet = self.version == Some(version);
        if !self.is_quiet {
            self.forget();
            self.version = Some(version);
        }
    }

    /// Keeps what was committed.
    pub(crate) fn keep(&mut self, mut leftover: Leftover) {
        self.last = leftover.last.or(self.last);
        for (key, run) in leftover.runs {
            self.remove(key);
            if !run.is_whole || run.record.status.is_terminal() {
                continue;
            }
            let questions = run.pending.iter().filter_map(|key| Some((*key, leftover.questions.remove(key)?)));
            let kept = Kept { questions: questions.collect(), run };
            if kept.size() <= SIZE {
                self.insert(key, kept);
            }
        }
    }

    /// Drops everything that is known about rows.
    pub(crate) fn forget(&mut self) {
        *self = Self { version: self.version, is_quiet: self.is_quiet, ..Self::default() };
    }

    fn insert(&mut self, key: i64, kept: Kept) {
        while self.order.len() >= RUNS
            && let Some(oldest) = self.order.front().copied()
        {
            self.remove(oldest);
        }
        self.run_keys.insert(kept.run.record.run_id.clone(), key);
        let requests = kept.questions.iter().map(|(_, question)| question.record.request_id.clone());
        self.question_keys.extend(requests.map(|id| (id, key)));
        self.runs.insert(key, kept);
        self.order.push_back(key);
    }

    fn remove(&mut self, key: i64) -> Option<Kept> {
        let kept = self.runs.remove(&key)?;
        self.run_keys.remove(&kept.run.record.run_id);
        for (_, question) in &kept.questions {
            self.question_keys.remove(&question.record.request_id);
        }
        self.order.retain(|other| *other != key);
        Some(kept)
    }
}

impl Kept {
    fn size(&self) -> usize {
        let questions = self.questions.iter().map(|(_, question)| question.record.question.len());
        self.run.size() + questions.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kortyx_protocol::SessionId;
    use kortyx_store::{NewRun, RunStatus, WorkflowPin};

    use super::*;
    use crate::batch::Seed;

    /// A batch that stores a run with a snapshot of this size, as it is once it is committed.
    fn stored(name: &str, size: usize) -> (RunId, Leftover) {
        let workflow = WorkflowPin { id: "review".into(), version: "1".into(), fingerprint: "5e".into() };
        let run = NewRun {
            run_id: RunId::new(name).unwrap(),
            session_id: SessionId::new("session").unwrap(),
            workflow: workflow.clone(),
            context: std::collections::BTreeMap::new(),
            follows: None,
        };
        let mut batch = Batch::new(Timestamp::from_millis(1), "open");
        let snapshot = Bytes::from(vec![b'x'; size]);
        let seed =
            Seed { run: &run, workflow: &workflow, status: RunStatus::Running, snapshot: Some(&snapshot), answers: 0 };
        batch.last.run = i64::try_from(name.len()).unwrap();
        batch.add_run(&seed).unwrap();
        (run.run_id, batch.into_plan().1)
    }

    fn knows(known: &mut Known, run_id: &RunId) -> bool {
        let mut wants = Wants::default();
        wants.run(run_id);
        let batch = known.batch(&wants, Timestamp::from_millis(2));
        batch.is_some_and(|(batch, _)| batch.run_keys.contains_key(run_id))
    }

    #[test]
    fn a_run_is_known_while_nobody_else_writes() {
        let mut known = Known::default();
        known.observe(7);
        known.observe(7);
        let (run_id, leftover) = stored("run", 10);
        known.keep(leftover);
        assert!(knows(&mut known, &run_id));

        known.keep(stored("run", 10).1);
        known.observe(8);
        known.observe(8);

        assert!(!knows(&mut known, &run_id));
    }

    #[test]
    fn nothing_is_used_before_two_looks_found_the_same() {
        let mut known = Known::default();
        known.observe(7);
        let (run_id, leftover) = stored("run", 10);
        known.keep(leftover);
        assert!(!knows(&mut known, &run_id));

        known.observe(7);

        assert!(knows(&mut known, &run_id));
    }

    #[test]
    fn a_large_run_is_not_kept() {
        let mut known = Known::default();
        known.observe(7);
        known.observe(7);
        let (small, leftover) = stored("small", SIZE);
        known.keep(leftover);
        let (larger, leftover) = stored("larger", SIZE + 1);
        known.keep(leftover);

        assert!(knows(&mut known, &small));
        assert!(!knows(&mut known, &larger));
    }
}
