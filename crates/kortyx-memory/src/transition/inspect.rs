//! What an operator's inspector reads: pages of runs and sessions, in the order of their slots, counts, and all that is kept of a run.

use kortyx_protocol::RunId;
use kortyx_store::{RunHistory, RunPage, RunQuery, SessionPage, SessionQuery, SessionRecord, StoreError, StoreStats};

use crate::{run::Payload, slab::Slot, state::Transition};

/// What cursors start with; the slot that the page begins with follows, in hex.
const RUNS: &str = "runs.";
const SESSIONS: &str = "sessions.";
/// How many runs one call looks at before it gives what it has.
const SCAN: usize = 10_000;

impl Transition<'_> {
    pub(crate) fn list_runs(&self, query: &RunQuery) -> Result<RunPage, StoreError> {
        let first = query.cursor.as_deref().map(|cursor| self.parse_slot(RUNS, cursor)).transpose()?.unwrap_or(0);
        let limit = query.limit.clamp(1, 200) as usize;
        let mut page = RunPage::default();
        for (seen, (slot, _)) in self.state.runs.from(first).enumerate() {
            let mut record = self.run_record(slot)?;
            let is_wanted = query.matches(&record);
            if seen == SCAN || (is_wanted && page.runs.len() == limit) {
                page.next = Some(format!("{RUNS}{slot:08x}"));
                break;
            }
            if is_wanted {
                record.outcome = None;
                page.runs.push(record);
            }
        }
        Ok(page)
    }

    pub(crate) fn history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        let (Some(slot), Some(record)) = (self.find_run(run_id), self.run(run_id)?) else { return Ok(None) };
        let run = self.run_at(slot)?;
        let mut history = RunHistory::new(record);
        if let Payload::Snapshot(snapshot) = &run.payload {
            history.snapshot = Some(snapshot.clone());
        }
        history.entries.clone_from(&run.entries);
        let (mut slots, mut closed) = (run.open.clone(), run.closed);
        while let Some(slot) = closed {
            slots.push(slot);
            closed = self.question_at(slot)?.next_closed;
        }
        slots.sort_by_key(|slot| self.state.questions.get(*slot).map(|question| question.ord));
        let mut context = None;
        for slot in slots {
            history.questions.push(self.record_sharing(slot, &mut context)?);
        }
        Ok(Some(history))
    }

    pub(crate) fn list_sessions(&self, query: &SessionQuery) -> Result<SessionPage, StoreError> {
        let first = query.cursor.as_deref().map(|cursor| self.parse_slot(SESSIONS, cursor)).transpose()?.unwrap_or(0);
        let limit = query.limit.clamp(1, 200) as usize;
        let mut page = SessionPage::default();
        for (slot, session) in self.state.sessions.from(first) {
            let Some(head) = session.head() else { continue };
            if page.sessions.len() == limit {
                page.next = Some(format!("{SESSIONS}{slot:08x}"));
                break;
            }
            page.sessions.push(SessionRecord {
                session_id: session.id.clone(),
                head: head.record.checkpoint.id.clone(),
                turn_index: head.record.turn_index,
                head_at: head.record.created_at,
                active_runs: session.active.into(),
            });
        }
        Ok(page)
    }

    pub(crate) fn stats(&self) -> StoreStats {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let mut stats = StoreStats::default();
        for (_, run) in self.state.runs.from(0) {
            stats.runs.add(run.status, 1);
        }
        let in_time = self.state.index.deadlines.iter().rev().take_while(|(deadline, ..)| *deadline > self.now);
        stats.open_questions = number(in_time.count());
        stats.sessions = number(self.state.sessions.from(0).filter(|(_, session)| session.head().is_some()).count());
        stats.checkpoints = number(self.state.turns.len());
        stats
    }

    /// The slot that a cursor names.
    fn parse_slot(&self, kind: &str, cursor: &str) -> Result<Slot, StoreError> {
        let digits = cursor.strip_prefix(kind).filter(|digits| digits.len() == 8);
        let slot = digits.and_then(|digits| Slot::from_str_radix(digits, 16).ok());
        slot.ok_or_else(|| self.invalid("the cursor is malformed"))
    }
}
