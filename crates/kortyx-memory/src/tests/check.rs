//! Proof that the indexes say exactly what the runs, questions and sessions say.

use std::collections::BTreeSet;

use kortyx_store::InterruptStatus;

use crate::{
    index::{Index, Place},
    state::State,
};

impl State {
    /// How many things it holds and index entries it keeps.
    pub(crate) fn len(&self) -> usize {
        let slots = self.run_slots.len() + self.question_slots.len() + self.session_slots.len() + self.turns.len();
        let values = self.runs.len() + self.questions.len() + self.sessions.len() + self.pins.len() + self.pairs.len();
        slots + values + self.index.len()
    }

    /// Builds every index anew from what is stored and compares.
    pub(crate) fn check(&self) {
        let mut expected = Index::default();
        self.expect_runs(&mut expected);
        self.expect_questions(&mut expected);
        self.expect_sessions(&mut expected);
        assert_eq!(self.index.open_by_session, expected.open_by_session);
        assert_eq!(self.index.open_by_pair, expected.open_by_pair);
        assert_eq!(self.index.deadlines, expected.deadlines);
        assert_eq!(self.index.active_by_session, expected.active_by_session);
        assert_eq!(self.index.leases, expected.leases);
        assert_eq!(self.index.orphans, expected.orphans);
        assert_eq!(self.index.parked, expected.parked);
        assert_eq!(self.index.ended, expected.ended);
        assert_eq!(self.index.passed, expected.passed);
        assert_eq!(self.index.crowded, expected.crowded);
        assert_eq!(self.index.idle, expected.idle);
        let pins: BTreeSet<_> = self.runs.iter().map(|(_, run)| run.pin).collect();
        let pairs: BTreeSet<_> = self.runs.iter().flat_map(|(_, run)| run.context.iter().copied()).collect();
        assert_eq!((self.pins.len(), self.pairs.len()), (pins.len(), pairs.len()));
    }

    fn expect_runs(&self, expected: &mut Index) {
        assert_eq!(self.run_slots.len(), self.runs.len());
        for (slot, run) in self.runs.iter() {
            assert_eq!(self.run_slots.get(&run.id), Some(&slot));
            expected.put(run.place(), run.ord, slot);
            if !matches!(run.place(), Place::Ended { .. }) {
                expected.active_by_session.insert((run.session, run.ord, slot));
            }
            let pending = |q: &&u32| self.questions.get(**q).is_some_and(|q| q.status == InterruptStatus::Pending);
            assert_eq!(run.open.iter().filter(pending).count(), run.open.len());
            let mut kept = run.open.len();
            let mut next = run.closed;
            while let Some(question) = next {
                kept += 1;
                let question = self.questions.get(question).unwrap();
                assert_ne!(question.status, InterruptStatus::Pending);
                next = question.next_closed;
            }
            assert_eq!(self.questions.iter().filter(|(_, question)| question.run == slot).count(), kept);
            assert!(run.inbox.iter().all(|q| self.questions.get(*q).is_some_and(|q| q.given.is_some())));
        }
    }

    fn expect_questions(&self, expected: &mut Index) {
        assert_eq!(self.question_slots.len(), self.questions.len());
        for (slot, question) in self.questions.iter() {
            assert_eq!(self.question_slots.get(&question.request_id), Some(&slot));
            let run = self.runs.get(question.run).unwrap();
            if question.status == InterruptStatus::Pending {
                expected.open_by_session.insert((run.session, question.ord, slot));
                expected.deadlines.insert((question.expires_at, question.ord, slot));
                expected.open_by_pair.extend(run.context.iter().map(|pair| (*pair, question.ord, slot)));
            }
        }
        for pair in self.runs.iter().flat_map(|(_, run)| run.context.iter()) {
            let open = expected.open_by_pair.iter().filter(|(group, ..)| group == pair).count();
            assert_eq!(self.pairs.beside(*pair).map(|open| *open as usize), Some(open));
        }
    }

    fn expect_sessions(&self, expected: &mut Index) {
        assert_eq!(self.session_slots.len(), self.sessions.len());
        let mut turns = 0;
        for (slot, session) in self.sessions.iter() {
            assert_eq!(self.session_slots.get(&session.id), Some(&slot));
            assert!(!session.is_unused());
            let runs = || self.runs.iter().filter(|(_, run)| run.session == slot);
            let active = runs().filter(|(_, run)| !run.status.is_terminal()).count();
            assert_eq!((session.runs as usize, session.active as usize), (runs().count(), active));
            let open = expected.open_by_session.iter().filter(|(group, ..)| *group == slot).count();
            assert_eq!(session.open as usize, open);
            if let Some(since) = session.idle_since {
                expected.idle.insert((since, slot));
            }
            if session.checkpoints.len() > 1 {
                expected.crowded.insert((session.checkpoints.len(), slot));
            }
            let passed = session.checkpoints.len().saturating_sub(1);
            for checkpoint in session.checkpoints.iter().take(passed) {
                expected.passed.insert((checkpoint.record.created_at, slot, checkpoint.record.turn_index));
            }
            turns += session.checkpoints.len();
        }
        assert_eq!(self.turns.len(), turns);
    }
}
