//! What an operator's inspector reads: pages of runs, in the order of their slots, and all that is kept of one.

use kortyx_protocol::RunId;
use kortyx_store::{RunHistory, RunPage, RunQuery, StoreError};

use crate::{run::Payload, slab::Slot, state::Transition};

/// What a cursor starts with; the slot that the page begins with follows, in hex.
const CURSOR: &str = "runs.";
/// How many runs one call looks at before it gives what it has.
const SCAN: usize = 10_000;

impl Transition<'_> {
    pub(crate) fn list_runs(&self, query: &RunQuery) -> Result<RunPage, StoreError> {
        let first = query.cursor.as_deref().map(|cursor| self.parse_runs_cursor(cursor)).transpose()?.unwrap_or(0);
        let limit = query.limit.clamp(1, 200) as usize;
        let mut page = RunPage::default();
        for (seen, (slot, _)) in self.state.runs.from(first).enumerate() {
            let mut record = self.run_record(slot)?;
            let is_wanted = query.matches(&record);
            if seen == SCAN || (is_wanted && page.runs.len() == limit) {
                page.next = Some(format!("{CURSOR}{slot:08x}"));
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

    fn parse_runs_cursor(&self, cursor: &str) -> Result<Slot, StoreError> {
        let digits = cursor.strip_prefix(CURSOR).filter(|digits| digits.len() == 8);
        let slot = digits.and_then(|digits| Slot::from_str_radix(digits, 16).ok());
        slot.ok_or_else(|| self.invalid("the cursor is malformed"))
    }
}
